package kernel

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// observations returns the recorded observations of work trees.
func observations(t *testing.T, r *Runner) (list []fact.TreeObserved) {
	t.Helper()
	if err := r.log.Sync(); err != nil {
		t.Fatal(err)
	}
	for e, err := range r.log.Events(t.Context(), event.Query{Types: []event.Type{event.TreeObserved}}) {
		if err != nil {
			t.Fatal(err)
		}
		f, err := fact.Decode[fact.TreeObserved](e)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

// TestObservedTree checks the two observations of a turn: a file that appears during the turn is in the second one.
// Without the option, or outside of a work tree, nothing is recorded.
func TestObservedTree(t *testing.T) {
	limit := treeLimit
	treeLimit = time.Hour // A busy machine may be slow.
	t.Cleanup(func() { treeLimit = limit })
	r := openRunner(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", ".git/HEAD"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wrote := false
	turn := func(in string) {
		t.Helper()
		res, err := hostileTurn(t, r, "hello", func(turn *Turn) {
			turn.Dir = in
			turn.Show = func(record.Notice) {
				if wrote || !r.opt.ObserveTree || in != dir {
					return
				}
				for len(observations(t, r)) == 0 { // The first observation ends by itself.
				}
				if err := os.WriteFile(filepath.Join(dir, "b.txt"), []byte("b\n"), 0o644); err != nil {
					t.Error(err)
				}
				wrote = true
			}
		})
		if err != nil || res.Outcome != record.OutcomeResponded {
			t.Fatal(res, err)
		}
		r.observing.Wait()
	}
	turn(dir)
	r.opt.ObserveTree = true
	turn(t.TempDir())
	if list := observations(t, r); len(list) > 0 {
		t.Errorf("%+v, want nothing", list)
	}
	turn(dir)
	list := observations(t, r)
	if len(list) != 2 {
		t.Fatalf("%+v, want two observations", list)
	}
	before, after := list[0], list[1]
	if before.When != "before" || len(before.Dirty) != 1 || before.Dirty[0].Path != "a.txt" || before.Changed != nil {
		t.Errorf("before: %+v", before)
	}
	if after.When != "after" || len(after.Changed) != 1 || after.Changed[0].Path != "b.txt" || after.Late || after.More {
		t.Errorf("after: %+v", after)
	}
}
