package eventlog

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/verify"
)

// spoil makes a copy of the victim's log. It changes the copy's database as d says, and the copy's anchor with the
// function "edit". If the anchor is then empty, spoil removes it.
func spoil(t *testing.T, v *victim, d tampering, edit func(string) string) verify.Report {
	t.Helper()
	path := v.copyLog(t)
	d.applyTo(t, path, v.n, 100)
	b, err := os.ReadFile(anchor.Path(path))
	if err != nil {
		t.Fatal(err)
	}
	if text := edit(string(b)); text == "" {
		err = os.Remove(anchor.Path(path))
	} else {
		err = os.WriteFile(anchor.Path(path), []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return verifyFile(t, path, verify.Options{Keys: v.verifiers})
}

func asIs(s string) string { return s }
func gone(string) string   { return "" }

// TestEachWitnessAlone checks that stored hashes, checkpoints and the anchor each show damage without the other two.
func TestEachWitnessAlone(t *testing.T) {
	v := newVictim(t, 600)
	forge := func(old string) string { // another signature in the name of the same key
		at := strings.LastIndexByte(old, ' ') + 12
		c := byte('A')
		if old[at] == c {
			c = 'B'
		}
		return old[:at] + string(c) + old[at+1:]
	}
	stranger := func(old string) string { // another signature in the name of another key
		at := strings.LastIndexByte(old, ' ') + 1
		c := byte('A')
		if old[at] == c {
			c = 'B'
		}
		return old[:at] + string(c) + old[at+1:]
	}
	cps, err := readerOf(t, v.path).Checkpoints(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	forged := forge(cps[1].Note)
	for name, tc := range map[string]struct {
		do     tampering
		anchor func(string) string
		kind   verify.Damage
		seq    event.Seq
	}{
		"only the stored hashes": {do: tampering{sql: `DELETE FROM checkpoints`, do: rewrite(false)}, anchor: gone,
			kind: verify.Tree, seq: 1},
		"only the checkpoints": {do: tampering{do: rewrite(true)}, anchor: gone, kind: verify.Checkpoint, seq: 1},
		"only the anchor": {do: tampering{sql: `DELETE FROM checkpoints`, do: rewrite(true)}, anchor: asIs,
			kind: verify.Anchor, seq: 1},
		"a stored hash, and it alone": {do: tampering{sql: `UPDATE nodes SET hash = zeroblob(32) WHERE n = 1`}, anchor: asIs,
			kind: verify.Tree},
		"a stored hash is missing": {do: tampering{sql: `DELETE FROM nodes WHERE n = 1`}, anchor: asIs,
			kind: verify.Tree},
		"a cut end, by a checkpoint": {do: tampering{sql: `DELETE FROM events WHERE seq > 590; DELETE FROM checkpoints WHERE size < {n}`}, anchor: gone,
			kind: verify.Truncated, seq: 591},
		"a cut end, by a stored hash": {do: tampering{sql: `DELETE FROM events WHERE seq > 500; DELETE FROM checkpoints`},
			anchor: gone, kind: verify.Truncated, seq: 501},
		"a forged signature": {do: tampering{sql: `UPDATE checkpoints SET note = '` + forged + `' WHERE id = 2`},
			anchor: gone, kind: verify.Checkpoint},
		"a forged line":             {do: tampering{sql: `DELETE FROM checkpoints`}, anchor: forge, kind: verify.Anchor},
		"a line that nobody stored": {anchor: stranger, kind: verify.Anchor},
		"a checkpoint of another size": {do: tampering{sql: `UPDATE checkpoints SET size = 100 WHERE id = 2`}, anchor: gone,
			kind: verify.Checkpoint},
	} {
		tc.do.name = name
		rep := spoil(t, v, tc.do, tc.anchor)
		if rep.OK() || rep.Findings[0].Kind != tc.kind || rep.FirstBad != tc.seq {
			t.Errorf("%s: %+v", name, rep)
		}
	}
}

// TestAPruningCoversThePast checks that a log.pruned covers only earlier events, even if its Until is larger.
func TestAPruningCoversThePast(t *testing.T) {
	v := newVictim(t, 50)
	l, err := Open(t.Context(), v.path, Options{Context: "default", Keys: v.keys})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(t.Context(), event.NewFact(event.LogPruned, "user", event.Refs{},
		event.Pruning{Until: 1000, By: "alice"}), fact(event.Truncated, event.Refs{}))
	if err := errors.Join(err, l.Close(),
		execFile(v.path, `UPDATE events SET payload = NULL WHERE seq IN (50, 52)`)); err != nil {
		t.Fatal(err)
	}
	if rep := verifyFile(t, v.path, verify.Options{Keys: v.verifiers}); rep.FirstBad != 52 || rep.Pruned != 1 {
		t.Errorf("%+v", rep)
	}
}
