package team

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// home returns the folder of the user's own files on a machine.
func (m machine) home(t testing.TB) string {
	t.Helper()
	for _, v := range m.opt.Environ {
		if dir, ok := strings.CutPrefix(v, "PERLICA_HOME="); ok {
			return dir
		}
	}
	t.Fatal("no home")
	return ""
}

// clone returns another machine with copies of all this machine's files.
func (m machine) clone(t testing.TB) machine {
	t.Helper()
	c := newMachine(t, m.opt.URL)
	err := os.CopyFS(c.home(t), os.DirFS(m.home(t)))
	if err == nil {
		err = filepath.WalkDir(c.home(t), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return os.Chmod(path, 0o600)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open opens the team as an earlier member.
func (m machine) open(t testing.TB) *Team {
	t.Helper()
	j, err := Open(t.Context(), m.opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() }) // j may be closed already
	return j
}

// refuses runs a worker that must refuse to work.
func (m machine) refuses(t testing.TB, j *Team) *hub.ForkError {
	t.Helper()
	w, err := NewWorker(t.Context(), j, WorkerOptions{Slots: 1, Projects: map[string]string{"website": m.dir},
		Note: func(s string) { t.Log(j.As, s) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err = w.Run(ctx, ctx)
	var fork *hub.ForkError
	if !errors.As(err, &fork) {
		t.Fatalf("it works: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	return fork
}

// verified verifies the copy of a worker's log.
func verified(t testing.TB, h *hub.Hub, j *Team, opt verify.Options) (rep verify.Report) {
	t.Helper()
	err := hub.ReadCopy(t.Context(), h, j.As, tree.Range{}, func(src *hub.CopySource) (err error) {
		opt.Keys = j.keys.Verifiers(src.Origin)
		rep, err = verify.Check(t.Context(), src, opt)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// isWhole fails unless the copy is sound and contains the whole log.
func isWhole(t testing.TB, j *Team) (rep verify.Report) {
	t.Helper()
	size, root, err := j.Log().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rep = verified(t, j.Hub, j, verify.Options{}); !rep.OK() || rep.Events != size || rep.Root != root {
		t.Errorf("the copy of %d events: %+v", size, rep)
	}
	return rep
}

// fill puts lines on a worker's log like an agent's updates.
func fill(t testing.TB, j *Team, events int, payload []byte) {
	t.Helper()
	for range events {
		if err := j.Log().Record(event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent",
			Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Log().Sync(); err != nil {
		t.Fatal(err)
	}
}

// TestCopy checks that a worker's whole log is on the hub after the worker has drained. The copy is
// signed, and contains only the log of the team's context.
func TestCopy(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	large := strings.Repeat("0123456789abcdef", 5<<16) // 5 MiB in one line, because the agent sends each line separately
	submit(t, alice, asks("a", "@say One"), asks("large", "@say Two\n"+large))
	drain := m.work(t, alice, 1)
	ended(t, alice, "a", nil)
	ended(t, alice, "large", nil)
	drain()
	rep := isWhole(t, alice)
	if rep.Signed == 0 || rep.Checkpoints < 2 {
		t.Errorf("signed: %+v", rep)
	}
	if n := s.SQL(t, db, "SELECT max(length(payload)) > 5000000, count(DISTINCT worker) FROM perlica.events"); n != "t|1" {
		t.Error(n)
	}
	list, err := hub.ListCopies(t.Context(), alice.Hub)
	if err != nil || len(list) != 1 || list[0].Size != rep.Events || list[0].Checkpoint != rep.Signed ||
		list[0].Forked != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestClonedWorker checks that a machine with the same key and log is detected when the logs
// differ. Both machines stop and take nothing further.
func TestClonedWorker(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	submit(t, alice, asks("a", "@say One"))
	drain := m.work(t, alice, 1)
	ended(t, alice, "a", nil)
	drain()
	c := m.clone(t)
	submit(t, alice, asks("b", "@say Two"))
	drain = m.work(t, alice, 1)
	ended(t, alice, "b", nil)
	drain()
	clone := c.open(t)
	if fork := c.refuses(t, clone); fork.Worker != "alice" || !strings.Contains(fork.Error(), "clone") {
		t.Error(fork)
	}
	submit(t, alice, asks("c", "@say Three"))
	if fork := m.refuses(t, alice); fork.Worker != "alice" {
		t.Error(fork)
	}
	if st := stateOf(alice, "c"); st != hub.Queued {
		t.Errorf("taken: %s", st)
	}
}

// TestClonesAtOnce checks two machines with one log that work at the same time. The machine that sends second stops
// first, and the other machine stops afterwards.
func TestClonesAtOnce(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)
	sender := hub.NewCopySender(alice.Hub, &alice.Log().Reader, "alice")
	if _, err := alice.Log().Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sender.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	clone := m.clone(t).open(t)
	other := hub.NewCopySender(clone.Hub, &clone.Log().Reader, "alice")
	if err := other.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(t, alice, 3, []byte("a"))
	fill(t, clone, 2, []byte("b"))
	if err := sender.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	var fork *hub.ForkError
	if err := other.Send(t.Context()); !errors.As(err, &fork) {
		t.Errorf("the clone goes on: %v", err)
	}
	fill(t, alice, 1, []byte("a"))
	if err := sender.Send(t.Context()); !errors.As(err, &fork) {
		t.Errorf("the other goes on: %v", err)
	}
	if n := s.SQL(t, db, "SELECT count(*) FROM perlica.events WHERE payload = 'b'"); n != "0" {
		t.Errorf("%s events of the clone are in the copy", n)
	}
}

// TestRewrittenHistory checks that the hub detects a worker's log that was restored from a backup
// or edited before its last event.
func TestRewrittenHistory(t *testing.T) {
	for name, rewrite := range map[string]func(t *testing.T, path string){
		"an event in the middle": func(t *testing.T, path string) {
			e := sixth(t, path)
			e.Payload = []byte("never said")
			e.PayloadLen, e.PayloadSHA256 = int64(len(e.Payload)), sha256.Sum256(e.Payload)
			e.LeafHash = e.Leaf()
			db := sqlx.MustOpen("sqlite", store.DSN(path))
			defer db.Close()
			db.MustExec(`DROP TRIGGER events_lose_nothing_but_payloads`)
			db.MustExec(`UPDATE entries SET payload = ?, payload_len = ?, payload_sha256 = ?, leaf = ? WHERE seq = 6`, e.Payload,
				e.PayloadLen, e.PayloadSHA256[:], e.LeafHash[:])
		},
		"its end is gone": func(t *testing.T, path string) {
			db := sqlx.MustOpen("sqlite", store.DSN(path))
			defer db.Close()
			db.MustExec(`DROP TRIGGER events_are_not_deleted`)
			db.MustExec(`DELETE FROM entries WHERE seq > 6`)
		},
		"another end": func(t *testing.T, path string) {
			db := sqlx.MustOpen("sqlite", store.DSN(path))
			defer db.Close()
			db.MustExec(`DROP TRIGGER events_lose_nothing_but_payloads`)
			db.MustExec(`UPDATE entries SET leaf = zeroblob(32) WHERE seq = (SELECT max(seq) FROM entries)`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, db := hubtest.Shared(t)
			_, alice := founded(t, s, db)
			fill(t, alice, 10, []byte("line"))
			if _, err := alice.Log().Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := hub.NewCopySender(alice.Hub, &alice.Log().Reader, "alice").Send(t.Context()); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "eventlog.db")
			sqlx.MustOpen("sqlite", store.DSN(alice.Log().Path())).MustExec(`VACUUM INTO ?`, path)
			same, err := store.OpenReader(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer same.Close()
			if err := hub.NewCopySender(alice.Hub, same, "alice").Check(t.Context()); err != nil {
				t.Fatalf("as it was: %v", err)
			}
			rewrite(t, path)
			var fork *hub.ForkError
			if err := hub.NewCopySender(alice.Hub, same, "alice").Send(t.Context()); !errors.As(err, &fork) ||
				!strings.Contains(err.Error(), "rewritten") {
				t.Errorf("not found: %v", err)
			}
			if err := hub.NewCopySender(alice.Hub, &alice.Log().Reader, "alice").Send(t.Context()); !errors.As(err, &fork) {
				t.Errorf("not stopped: %v", err)
			}
		})
	}
}

// sixth returns the sixth event of a log.
func sixth(t *testing.T, path string) (found event.Event) {
	t.Helper()
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Events(t.Context(), event.Query{After: 5, Until: 6}) {
		if err != nil {
			t.Fatal(err)
		}
		found = e
	}
	return found
}
