package logtrust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// user returns the store of a new user with keys.
func user(t *testing.T) Store {
	t.Helper()
	dir := t.TempDir()
	return Store{Dir: filepath.Join(dir, "logs"), Keys: evidence.UseKeys(filepath.Join(dir, "keys"))}
}

// write appends events to the log at path, with checkpoints signed by these keys. If keys is nil, the checkpoints are
// not signed.
func write(t *testing.T, path string, keys *evidence.Keys, types ...event.Type) {
	t.Helper()
	log, err := eventlog.Open(t.Context(), path, eventlog.Options{Context: "default", Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	appendRun(t, log, types...)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// appendRun appends an event of each type. event.CallEnforced also makes a checkpoint.
func appendRun(t *testing.T, log *eventlog.Log, types ...event.Type) {
	t.Helper()
	refs := event.Refs{Run: event.RunID(log.Writer()), Input: event.InputID(log.Writer())}
	for _, typ := range types {
		write := log.Append
		if typ == event.CallEnforced {
			write = log.EndRun
		}
		if _, err := write(t.Context(), event.NewFact(typ, "user", refs, struct{}{})); err != nil {
			t.Fatal(err)
		}
	}
}

// elsewhere copies a log to a new path that no store knows.
func elsewhere(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "eventlog.db")
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

func add(t *testing.T, s Store, path string) {
	t.Helper()
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Add(t.Context(), r), r.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	me, other := user(t), user(t)
	run := []event.Type{event.Requested, event.Responded, event.CallEnforced}
	for name, tc := range map[string]struct {
		make func(path string)
		why  string // the reason in the UnknownError; empty means that the log must be known
	}{
		"no file":   {func(string) {}, ""},
		"empty":     {func(path string) { write(t, path, nil) }, ""},
		"mine":      {func(path string) { write(t, path, me.Keys, run...) }, ""},
		"another's": {func(path string) { write(t, path, other.Keys, run...) }, "no key that is known"},
		"nobody's":  {func(path string) { write(t, path, nil, run...) }, "no key that is known"},
		"mine, with a death": {func(path string) {
			write(t, path, me.Keys, run...)
			write(t, path, nil,
				event.MessageReceived)
		}, ""},
		"an outcome added": {func(path string) {
			write(t, path, me.Keys, run...)
			write(t, path, nil, event.MessageReceived, event.Responded)
		}, "is an outcome that no key known here signed"},
		"another's over mine": {func(path string) {
			write(t, path, me.Keys, run...)
			write(t, path, other.Keys, event.MessageReceived, event.CallEnforced)
		}, "no key that is known"},
		"mine over another's": {func(path string) {
			write(t, path, other.Keys, run...)
			write(t, path, me.Keys, event.MessageReceived, event.CallEnforced)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "eventlog.db")
			tc.make(path)
			err := me.Check(t.Context(), path)
			var unknown *UnknownError
			if tc.why == "" && err != nil || tc.why != "" && (!errors.As(err, &unknown) ||
				!strings.Contains(unknown.Why, tc.why)) {
				t.Errorf("%v, want %q", err, tc.why)
			}
			if err := (Store{}).Check(t.Context(), path); err != nil {
				t.Errorf("without a store: %v", err)
			}
		})
	}
}

// TestMadeHere checks that a log that was added is known, signed or not, as long as its file is the same.
func TestMadeHere(t *testing.T) {
	me, other := user(t), user(t)
	path := filepath.Join(t.TempDir(), "eventlog.db")
	write(t, path, nil)
	add(t, me, path)
	write(t, path, nil, event.Requested, event.Responded)
	if err := me.Check(t.Context(), path); err != nil {
		t.Errorf("made here, unsigned: %v", err)
	}
	if err := other.Check(t.Context(), path); err == nil {
		t.Error("somebody else knows it")
	}
	moved := filepath.Join(t.TempDir(), "eventlog.db")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if now, err := identity(moved); err != nil {
		t.Fatal(err)
	} else if err := me.Check(t.Context(), moved); err != nil && now != "" {
		t.Errorf("moved: %v", err)
	}
	if err := os.Rename(moved, path); err != nil {
		t.Fatal(err)
	}
	copied := elsewhere(t, path)
	if err := me.Check(t.Context(), copied); err == nil {
		t.Error("an unsigned copy is known")
	}
	if err := os.Rename(copied, path); err != nil {
		t.Fatal(err)
	}
	if now, err := identity(path); err != nil {
		t.Fatal(err)
	} else if err := me.Check(t.Context(), path); err == nil && now != "" {
		t.Error("another file in its place is known")
	}
}

// TestAnotherFileBehindTheCheck replaces the log's file after its check and before its opening. The new file must be
// checked, too, and must not count as made here.
func TestAnotherFileBehindTheCheck(t *testing.T) {
	me, other := user(t), user(t)
	foreign := filepath.Join(t.TempDir(), "eventlog.db")
	write(t, foreign, other.Keys, event.Requested, event.Responded, event.CallEnforced)
	for name, types := range map[string][]event.Type{"nothing there": nil,
		"mine there": {event.Requested, event.Responded, event.CallEnforced}} {
		path := filepath.Join(t.TempDir(), "eventlog.db")
		if types != nil {
			write(t, path, me.Keys, types...)
		}
		before, err := me.checkFiles(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(elsewhere(t, foreign), path); err != nil {
			t.Fatal(err)
		}
		var unknown *UnknownError
		if err := me.admitFiles(t.Context(), path, before); !errors.As(err, &unknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "eventlog.db")
	for _, why := range []string{"made", "again"} {
		log, kept, err := me.Open(t.Context(), path, eventlog.Options{Context: "default"})
		if err != nil || kept != nil {
			t.Fatal(why, err, kept)
		}
		if _, err := log.Append(t.Context(), event.NewFact(event.Responded, "agent",
			event.Refs{Run: event.RunID(log.Writer())}, struct{}{})); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGrownLog checks that a log is not refused if another process appends to it and closes it during the comparison. A
// copy of the earlier state is refused.
func TestGrownLog(t *testing.T) {
	me := user(t)
	path := filepath.Join(t.TempDir(), "eventlog.db")
	write(t, path, nil, event.Requested)
	add(t, me, path)
	earlier := elsewhere(t, path)
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	before, err := newest(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, nil, event.Responded, event.CallEnforced)
	now, err := newest(t.Context(), r)
	if err != nil || now.Seq <= before.Seq {
		t.Fatalf("the log did not grow: %d events, then %d (%v)", before.Seq, now.Seq, err)
	}
	me.Seen(path, now)
	if err := me.compareNewest(t.Context(), r, before); err != nil {
		t.Errorf("the grown log: %v", err)
	}
	old, err := store.OpenReader(t.Context(), earlier)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	var unknown *UnknownError
	if err := me.Compare(t.Context(), old); !errors.As(err, &unknown) {
		t.Errorf("the earlier state: %v", err)
	}
}

// TestTrustedKey checks that after Trust with a key, later states of the same log are known as far as the key signed
// them. Other logs with this key are not known.
func TestTrustedKey(t *testing.T) {
	me, other := user(t), user(t)
	path := filepath.Join(t.TempDir(), "eventlog.db")
	write(t, path, other.Keys, event.Requested, event.Responded, event.CallEnforced)
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	origin, err := r.Origin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var unknown *UnknownError
	if err := me.Trust(t.Context(), r, me.Keys.VerifierKeys(origin)[0]); !errors.As(err, &unknown) {
		t.Errorf("trusted with a key that did not sign it: %v", err)
	}
	if err := me.Trust(t.Context(), r, "x+1+y"); !errors.Is(err, evidence.ErrVerifierKey) {
		t.Errorf("no key: %v", err)
	}
	if err := errors.Join(me.Trust(t.Context(), r, other.Keys.VerifierKeys(origin)[0]), r.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, path, other.Keys, event.MessageReceived, event.CallEnforced)
	if err := me.Check(t.Context(), elsewhere(t, path)); err != nil {
		t.Errorf("a later state of it: %v", err)
	}
	another := filepath.Join(t.TempDir(), "eventlog.db")
	write(t, another, other.Keys, event.Requested, event.Responded, event.CallEnforced)
	if err := me.Check(t.Context(), another); err == nil {
		t.Error("another log of that key is known")
	}
	me.Trusted = []string{other.Keys.VerifierKeys("perlica/of-whatever-name")[0]}
	if err := me.Check(t.Context(), another); err != nil {
		t.Errorf("another log, with the key in the environment: %v", err)
	}
}
