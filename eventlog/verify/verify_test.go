package verify_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/tree"
	"github.com/perlica/perlica/eventlog/verify"
)

// judge is an Auditor that objects to one event.
type judge struct{ against event.Seq }

func (judge) Wants(event.Type) bool { return false }
func (judge) Gap()                  {}
func (j judge) Event(e *event.Event) []*message.Text {
	if e.Seq == j.against {
		return []*message.Text{{Text: "this one is against the rules"}}
	}
	return nil
}

// tampering is a change of the pieces of a log. Every source that can show this kind of damage must report the
// finding.
type tampering struct {
	name string
	do   func(p *pieces)
	kind verify.Damage // empty means no damage
	seq  event.Seq     // the first bad event
	near bool          // the finding may begin earlier, because the sources have different checkpoints

	against                  event.Seq
	pruned, withheld, absent int64
}

func tamperings() []tampering {
	swap := func(p *pieces, i, j int) { p.events[i], p.events[j] = p.events[j], p.events[i]; p.renumber() }
	return []tampering{
		{name: "nothing", do: func(*pieces) {}},
		{name: "a payload", do: func(p *pieces) { p.events[at-1].Payload = []byte("x") }, kind: verify.Edited, seq: at},
		{name: "a payload and its hash",
			do:   func(p *pieces) { leaf := p.events[at-1].LeafHash; p.rewriteEvent(); p.events[at-1].LeafHash = leaf },
			kind: verify.Edited, seq: at},
		{name: "a header", do: func(p *pieces) { p.events[at-1].Actor = "user" }, kind: verify.Edited, seq: at},
		{name: "a leaf", do: func(p *pieces) { p.events[at-1].LeafHash = tlog.Hash{1} }, kind: verify.Edited, seq: at},
		{name: "an event deleted", do: func(p *pieces) { p.events = slices.Delete(p.events, at-1, at) }, kind: verify.Deleted,
			seq: at},
		{name: "many deleted", do: func(p *pieces) { p.events = slices.Delete(p.events, at-1, at+300) }, kind: verify.Deleted,
			seq: at},
		{name: "deleted and renumbered", do: func(p *pieces) { p.events = slices.Delete(p.events, at-1, at); p.renumber() },
			kind: verify.Deleted, seq: at},
		{name: "inserted and renumbered", do: func(p *pieces) {
			p.events = slices.Insert(p.events, at-1,
				p.events[7])
			p.renumber()
		}, kind: verify.Inserted, seq: at},
		{name: "neighbours swapped", do: func(p *pieces) { swap(p, at-1, at) }, kind: verify.Reordered, seq: at},
		{name: "far ones swapped", do: func(p *pieces) { swap(p, at-1, size-1) }, kind: verify.Reordered, seq: at},
		{name: "the end cut", do: func(p *pieces) { p.events = p.events[:at] }, kind: verify.Truncated, seq: at + 1},
		{name: "all of it gone", do: func(p *pieces) { p.events = nil }, kind: verify.Truncated, seq: 1},
		{name: "a signature forged", do: func(p *pieces) {
			c := &p.heads[len(p.heads)-1]
			i := strings.LastIndexByte(c.Note, ' ') + 12
			c.Note = c.Note[:i] + map[bool]string{true: "B", false: "A"}[c.Note[i] == 'A'] + c.Note[i+1:]
		}, kind: verify.Checkpoint},
		{name: "a checkpoint of another log", do: func(p *pieces) {
			c := &p.heads[len(p.heads)-1]
			other := evidence.Checkpoint{Origin: c.Origin + "x", Size: c.Size, Root: c.Root}
			c.Note = other.Text() + c.Note[strings.Index(c.Note, "\n\n")+1:]
			c.Origin = other.Origin
		}, kind: verify.Checkpoint, near: true, seq: 1},
		{name: "rewritten with its leaf", do: func(p *pieces) { p.rewriteEvent(); p.bare = true }, kind: verify.Checkpoint,
			seq: at, near: true},
		{name: "rewritten, and no checkpoint left", do: func(p *pieces) { p.rewriteEvent(); p.heads = nil },
			kind: verify.Anchor, seq: at, near: true},
		{name: "the list of open runs", do: func(p *pieces) { p.sql = `DELETE FROM open_runs` }, kind: verify.Tree, seq: 4},
		{name: "the tables", do: func(p *pieces) { p.sql = `ALTER TABLE entries ADD COLUMN more TEXT` }, kind: verify.Schema},
		{name: "a rule", do: func(*pieces) {}, against: 9, kind: verify.Rule, seq: 9},
		{name: "pruned", do: func(p *pieces) { p.removePayload(at-1, event.Pruned); p.removePayload(5, event.Pruned) },
			pruned: 2},
		{name: "pruned without a word", do: func(p *pieces) { p.removePayload(299, event.Missing) }, kind: verify.Deleted,
			seq: 300},
		{name: "withheld", do: func(p *pieces) { p.removePayload(299, event.Masked) }, withheld: 1},
		{name: "a part", do: func(p *pieces) {
			var r tree.Range
			for _, e := range p.events[128:256] {
				r.Add(e.LeafHash)
			}
			p.absent = []tree.Subtree{{Seq: 129, Level: 7, Hash: r.Root()}}
			p.events, p.heads, p.bare = slices.Delete(p.events, 128, 256), p.heads[len(p.heads)-1:], true
		}, absent: 128},
	}
}

// TestSources checks that all sources of a log give the same result for every tampering, or list the kind of damage
// in NotChecked.
func TestSources(t *testing.T) {
	whole, keys := newPieces(t)
	for _, d := range tamperings() {
		p := whole.copyPieces()
		d.do(&p)
		for name, source := range sources {
			t.Run(d.name+"/"+name, func(t *testing.T) {
				rep, err := source(t, p)(verify.Options{Keys: keys, Audit: judge{d.against}})
				if err != nil {
					t.Fatal(err)
				}
				d := d
				if slices.Contains(rep.NotChecked, d.kind) {
					d.kind, d.seq, d.near = "", 0, false
				}
				d.check(t, rep, whole)
			})
		}
	}
}

func (d tampering) check(t *testing.T, rep verify.Report, whole pieces) {
	t.Helper()
	first := rep.FirstBad == d.seq || d.near && rep.FirstBad <= d.seq
	switch {
	case d.kind == "":
		if !rep.OK() || rep.Events+rep.Absent != size {
			t.Errorf("%+v", rep)
		}
	case !first || !slices.ContainsFunc(rep.Findings, func(f verify.Finding) bool {
		return f.Kind == d.kind &&
			(d.near || f.Seq == d.seq)
	}):
		t.Errorf("want %s at %d: %+v", d.kind, d.seq, rep)
	}
	if d.kind == "" && (rep.Pruned != d.pruned || rep.Withheld != d.withheld || rep.Absent != d.absent) {
		t.Errorf("%d pruned, %d withheld, %d absent", rep.Pruned, rep.Withheld, rep.Absent)
	}
	if d.name == "nothing" && (rep.Root != whole.root() || rep.Signed != size) {
		t.Errorf("%+v", rep)
	}
	// The report must list every kind of damage except for the missing signature and the place.
	if n := len(rep.Checked) + len(rep.NotChecked); n != 11 {
		t.Errorf("%d kinds: %q, %q", n, rep.Checked, rep.NotChecked)
	}
}

// TestKeptElsewhere checks that Options.Since is compared with every source.
func TestKeptElsewhere(t *testing.T) {
	whole, keys := newPieces(t)
	last := whole.heads[len(whole.heads)-1]
	other := evidence.Checkpoint{Origin: last.Origin + "x", Size: last.Size, Root: last.Root}
	cut, rewritten := whole.copyPieces(), whole.copyPieces()
	cut.events, cut.heads, cut.bare = cut.events[:at], cut.heads[:1], true
	rewritten.rewriteEvent()
	rewritten.heads, rewritten.bare = nil, true
	for name, source := range sources {
		for _, tc := range []struct {
			p    pieces
			kind verify.Damage
			seq  event.Seq
		}{{whole, "", 0}, {cut, verify.Truncated, at + 1}, {rewritten, verify.Checkpoint, 1}} {
			rep, err := source(t, tc.p)(verify.Options{Keys: keys, Since: &last})
			if err != nil || rep.FirstBad != tc.seq || (tc.kind == "") != rep.OK() || tc.kind != "" &&
				rep.Findings[0].Kind != tc.kind {
				t.Errorf("%s: want %q at %d: %+v, %v", name, tc.kind, tc.seq, rep, err)
			}
		}
		if _, err := source(t, whole)(verify.Options{Since: &other}); !errors.Is(err, verify.ErrOtherLog) {
			t.Errorf("%s: another log's: %v", name, err)
		}
	}
}

// TestDamagedExport changes the lines of an export.
func TestDamagedExport(t *testing.T) {
	p, keys := newPieces(t)
	lines := p.lines(t)
	swap := func(i, j int) []string {
		list := slices.Clone(lines)
		list[i], list[j] = list[j], list[i]
		return list
	}
	replace := func(i int, old, with string) []string {
		list := slices.Clone(lines)
		list[i] = strings.Replace(list[i], old, with, 1)
		return list
	}
	whole := ended(lines, 0, 0)
	end := strings.LastIndex(whole, `{"end"`)
	for name, tc := range map[string]struct {
		text string
		kind verify.Damage
		seq  event.Seq
		says string
	}{
		"as it is":   {text: whole},
		"neighbours": {ended(swap(at, at+1), 0, 0), verify.Reordered, at, "event 150 is stored after event 151"},
		"far apart":  {ended(swap(at, size), 0, 0), verify.Reordered, at, "event 150 is stored after event 600"},
		"twice": {ended(slices.Insert(slices.Clone(lines), at, lines[at]), 0, 0), verify.Inserted, at,
			"more than one event 150"},
		"no JSON": {ended(replace(at, `{"seq":`, `{seq:`), 0, 0), verify.Unreadable, at,
			"event 150 cannot be read: line 151: it is not JSON"},
		"one too many": {ended(slices.Insert(slices.Clone(lines), at, "{}"), 0, 0), verify.Unreadable, 0,
			"the log cannot be read after event 149: line 151"},
		"the last, no JSON": {ended(replace(size, `{"seq":`, `{seq:`), 0, 0), verify.Unreadable, size,
			"event 600 cannot be read: line 601"},
		"far away": {ended(replace(at, `{"seq":150,`, `{"seq":1125899906842624,`), 0, 0), verify.Deleted, at,
			"are missing"},
		"an impossible one": {ended(replace(at, `{"seq":150,`, `{"seq":9223372036854775807,`), 0, 0), verify.Inserted, at,
			"impossible number"},
		"an absurd part": {ended(slices.Insert(slices.Clone(lines), at,
			`{"absent":{"seq":150,"level":3,"hash":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}`), 0, 1), verify.Inserted,
			at, "is not possible for a log"},
		"the selection": {strings.Replace(whole, `"selection":{}`, `"selection":{"run_id":"r"}`, 1), verify.Edited, 0,
			"their SHA-256 differs"},
		"the count": {strings.Replace(whole, `"withheld":0`, `"withheld":1`, 1), verify.Edited, 0,
			"lines are missing or too many"},
		"cut at a line": {whole[:end], verify.Truncated, 0, "its last line is missing"},
		"cut within one": {whole[:strings.Index(whole, `{"seq":500,`)+30], verify.Truncated, 500,
			"the log ends with event 499, but the header of the export covers 600 events"},
		"more behind it": {whole + "{}\n", verify.Edited, 0, "something follows the end"},
	} {
		rep, err := verifyExport(t, tc.text)(verify.Options{Keys: keys})
		if err != nil || (tc.kind == "") != rep.OK() || rep.FirstBad != tc.seq {
			t.Errorf("%s: %+v, %v", name, rep, err)
		} else if tc.kind != "" && (rep.Findings[0].Kind != tc.kind || !strings.Contains(rep.Findings[0].What, tc.says)) {
			t.Errorf("%s: %+v", name, rep.Findings)
		}
	}
}
