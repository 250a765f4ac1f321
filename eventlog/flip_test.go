package eventlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// TestFlips flips bits in the database, its write-ahead log and the anchor. If Verify does not find a flipped bit, a
// reader must read every event unchanged, and SQLite's own check must find nothing either.
func TestFlips(t *testing.T) {
	leaveToOtherBuild(t)
	seed := rand.Uint64()
	v := newVictim(t, 60)
	want := collect(t, readerOf(t, v.path), event.Query{})
	live, n := liveVictim(t, v)
	for _, tc := range []struct{ dir, file string }{
		{filepath.Dir(v.path), "eventlog.db"}, {filepath.Dir(v.path), "eventlog.anchor"},
		{live, "eventlog.db-wal"}, {live, "eventlog.db"}, {live, "eventlog.anchor"},
	} {
		t.Run(filepath.Base(filepath.Dir(tc.dir))+"/"+tc.file, func(t *testing.T) {
			all := want
			if tc.dir == live {
				all = n
			}
			f := flipper{v: v, dir: tc.dir, file: tc.file, want: all, rnd: rand.New(rand.NewPCG(seed, uint64(len(tc.file))))}
			for range *flips {
				f.flipBit(t)
			}
			t.Logf("seed %d: of %d flips %d were found, %d mean nothing", seed, *flips, f.found, *flips-f.found)
			if tc.file == "eventlog.anchor" && f.found < *flips {
				t.Errorf("every bit of the anchor means something")
			}
			// In a log in use, the write-ahead log may have newer copies of all pages of the database. Flips in the
			// database may then have no effect.
			if f.found == 0 && (tc.dir != live || tc.file != "eventlog.db") {
				t.Errorf("nothing was found")
			}
		})
	}
}

// liveVictim copies a log and its write-ahead log while another handle has the log open.
func liveVictim(t *testing.T, v *victim) (dir string, events []event.Event) {
	t.Helper()
	path := v.copyLog(t)
	l, err := Open(t.Context(), path, Options{Context: "default", Keys: v.keys})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "live")
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "eventlog.db-shm")); err != nil { // The other handle made this file.
		t.Fatal(err)
	}
	events = collect(t, &l.Reader, event.Query{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, events
}

type flipper struct {
	v         *victim
	dir, file string
	want      []event.Event
	rnd       *rand.Rand
	found     int
}

func (f *flipper) flipBit(t *testing.T) {
	dir, err := os.MkdirTemp(t.TempDir(), "flip")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(filepath.Join(dir, "log"), os.DirFS(f.dir)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "log", f.file)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at, bit := f.rnd.IntN(len(b)), f.rnd.IntN(8)
	b[at] ^= 1 << bit
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	what := fmt.Sprintf("byte %d, bit %d of %s", at, bit, f.file)
	rep, events, err := f.verifyAndRead(t, what, filepath.Join(dir, "log", "eventlog.db"))
	switch {
	case err != nil:
		f.found++
	case !rep.OK():
		f.found++
		for _, k := range rep.Findings {
			if k.Kind == "" || k.What == "" {
				t.Errorf("%s: found, and not named: %+v", what, rep)
			}
		}
	case len(rep.Warnings) > 0 && f.file == "eventlog.anchor":
		f.found++ // With the flipped bit, the last line looks like a torn line.
	case !same(events, f.want):
		t.Errorf("%s was not found, and %d of %d events read back otherwise", what, differing(events, f.want), len(f.want))
	}
}

// verifyAndRead verifies and reads the log.
func (f *flipper) verifyAndRead(t *testing.T, what, path string) (rep verify.Report, events []event.Event, err error) {
	ctx := t.Context()
	r, err := store.OpenReader(ctx, path)
	if err != nil {
		return rep, nil, err
	}
	defer r.Close()
	if rep, err = verify.Log(ctx, r, verify.Options{Keys: f.v.verifiers}); err != nil || !rep.OK() {
		return rep, nil, err
	}
	if err := r.CheckIntegrity(ctx); err != nil {
		t.Errorf("%s was not found by Verify, but by SQLite: %v", what, err)
	}
	for e, err := range r.Events(ctx, event.Query{}) {
		if err != nil {
			return rep, events, nil // The caller then finds that the events differ.
		}
		events = append(events, e)
	}
	return rep, events, nil
}

func same(a, b []event.Event) bool { return len(a) == len(b) && differing(a, b) == 0 }

func differing(a, b []event.Event) (n int) {
	for i := range min(len(a), len(b)) {
		if !reflect.DeepEqual(a[i], b[i]) {
			n++
		}
	}
	return n + max(len(a), len(b)) - min(len(a), len(b))
}
