package origin

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// authored is a file whose lines have authors. It is the truth of TestGenerated.
type authored struct {
	rnd    *rand.Rand
	lines  []string
	author []event.RunID // "" is a person, a shell command, or a commit from elsewhere
}

// trivialLines are lines that every author writes.
var trivialLines = []string{"}", "", "\treturn nil", "\tif err != nil {", "\t\treturn err", "})", "// TODO",
	"\tvar err error"}

// block returns new lines of an author. Some of them occur elsewhere in the file, too.
func (a *authored) block(most int) (lines []string) {
	for range 1 + a.rnd.IntN(most) {
		if a.rnd.IntN(4) == 0 {
			lines = append(lines, trivialLines[a.rnd.IntN(len(trivialLines))])
		} else {
			lines = append(lines, fmt.Sprintf("\tvalue%d := compute(%d)", a.rnd.IntN(1e6), a.rnd.IntN(1e6)))
		}
	}
	return lines
}

// placed is a change of one place: the lines from "from" to "to" are replaced by "lines".
type placed struct {
	from, to int
	lines    []string
}

// random returns a random change. A change that changes nothing is replaced by another one.
func (a *authored) random() placed {
	for {
		p := placed{from: a.rnd.IntN(len(a.lines) + 1)}
		p.to = p.from
		kind := a.rnd.IntN(4)
		if kind > 0 {
			p.to = min(len(a.lines), p.from+1+a.rnd.IntN(6))
		}
		if kind < 3 {
			p.lines = a.block(12)
		}
		if p = a.minimal(p); p.from < p.to || len(p.lines) > 0 {
			return p
		}
	}
}

// minimal returns the same change without the lines that it leaves as they are. An insertion stands at the last of its
// possible places.
func (a *authored) minimal(p placed) placed {
	after := slices.Concat(a.lines[:p.from], p.lines, a.lines[p.to:])
	n := 0
	for n < min(len(a.lines), len(after)) && a.lines[n] == after[n] {
		n++
	}
	end := 0
	for end < min(len(a.lines), len(after))-n && a.lines[len(a.lines)-1-end] == after[len(after)-1-end] {
		end++
	}
	return placed{n, len(a.lines) - end, after[n : len(after)-end]}
}

// apply changes the file. The new lines belong to the run.
func (a *authored) apply(p placed, run event.RunID) {
	a.lines = slices.Concat(a.lines[:p.from], p.lines, a.lines[p.to:])
	a.author = slices.Concat(a.author[:p.from], slices.Repeat([]event.RunID{run}, len(p.lines)), a.author[p.to:])
}

func (a *authored) text() string { return strings.Join(a.lines, "\n") + "\n" }

// hunk returns the texts of a place before and after a change, with unchanged lines around it.
func (a *authored) hunk(p placed, around int) (before, after []string) {
	from, to := max(0, p.from-around), min(len(a.lines), p.to+around)
	return a.lines[from:to], slices.Concat(a.lines[from:p.from], p.lines, a.lines[p.to:to])
}

// isPlace reports whether the file has a text exactly once, so that a tool accepts it as the place of a change.
func (a *authored) isPlace(lines []string) bool {
	text := strings.Join(lines, "\n")
	return strings.TrimSpace(text) != "" && strings.Count(a.text(), text) == 1
}

// asJSON returns a value as JSON.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// update records a report about a tool call.
func (s *scene) update(kind, call string, members map[string]any) {
	members["sessionUpdate"], members["toolCallId"] = kind, call
	s.frame(asJSON(map[string]any{"jsonrpc": "2.0", "method": "session/update",
		"params": map[string]any{"sessionId": "c", "update": members}}))
}

type members = map[string]any

// diffOf returns a diff as the content of a tool call.
func diffOf(before, after any) []any {
	return []any{members{"type": "diff", "path": "/project/a.go", "oldText": before, "newText": after}}
}

// writers record a change of a file in the way of an agent. They return false if the agent's tool could not make the
// change. The last report has the status.
var writers = map[string]func(s *scene, a *authored, p placed, status string) bool{
	"claude": func(s *scene, a *authored, p placed, status string) bool {
		before, after := a.hunk(p, 1)
		if !a.isPlace(before) {
			return false
		}
		old, text := strings.Join(before, "\n"), strings.Join(after, "\n")
		s.update("tool_call", "t", members{"status": "pending", "kind": "edit", "rawInput": members{}})
		s.update("tool_call_update", "t", members{"rawInput": members{"file_path": "/project/a.go", "old_string": old,
			"new_string": text}, "content": diffOf(old, text)})
		before, after = a.hunk(p, 3)
		if len(before) > 0 && status == "completed" {
			s.update("tool_call_update", "t", members{"content": diffOf(strings.Join(before, "\n"), strings.Join(after, "\n"))})
		}
		s.update("tool_call_update", "t", members{"status": status})
		return true
	},
	"claude without hunks": func(s *scene, a *authored, p placed, status string) bool {
		before, after := a.hunk(p, 1)
		if !a.isPlace(before) {
			return false
		}
		s.update("tool_call", "t", members{"rawInput": members{"file_path": "/project/a.go",
			"old_string": strings.Join(before, "\n"), "new_string": strings.Join(after, "\n")}})
		s.update("tool_call_update", "t", members{"status": status})
		return true
	},
	"codex": func(s *scene, a *authored, p placed, status string) bool {
		before, after := a.hunk(p, 3)
		s.update("tool_call", "t", members{"status": "in_progress", "content": []any{members{"type": "diff",
			"path": "/project/a.go", "oldText": joined(before), "newText": joined(after), "_meta": members{"kind": "update"}}}})
		s.update("tool_call_update", "t", members{"status": status})
		return true
	},
	"gemini": func(s *scene, a *authored, p placed, status string) bool {
		after := slices.Concat(a.lines[:p.from], p.lines, a.lines[p.to:])
		s.update("tool_call", "t", members{"status": status, "content": diffOf(a.text(), joined(after))})
		return true
	},
	"opencode": func(s *scene, a *authored, p placed, status string) bool {
		before, after := a.hunk(p, 2)
		if !a.isPlace(before) {
			return false
		}
		s.update("tool_call", "t", members{"status": "in_progress", "rawInput": members{"filePath": "a.go",
			"oldString": joined(before), "newString": joined(after)}})
		s.update("tool_call_update", "t", members{"status": status, "content": []any{members{"type": "content",
			"content": members{"type": "text", "text": "Edit applied successfully."}}}})
		return true
	},
	"cline": func(s *scene, a *authored, p placed, status string) bool {
		patch := "*** Begin Patch\n*** Update File: a.go\n@@\n"
		from, to := max(0, p.from-3), min(len(a.lines), p.to+3)
		for i, part := range [][]string{a.lines[from:p.from], a.lines[p.from:p.to], p.lines, a.lines[p.to:to]} {
			for _, line := range part {
				patch += []string{" ", "-", "+", " "}[i] + line + "\n"
			}
		}
		s.update("tool_call", "t", members{"rawInput": members{"input": patch + "*** End Patch\n"}})
		s.update("tool_call_update", "t", members{"status": status})
		return true
	},
}

// joined returns lines as a text that ends with a line feed.
func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestGenerated makes random changes of a file by hand and by the tools of several agents. Some tool calls fail, and
// some have no end. It knows the author of each line. At least 95 of 100 lines that tools wrote have their run, and
// no line has another run.
func TestGenerated(t *testing.T) {
	right, of := 0, 0
	for seed := range uint64(40) {
		a := &authored{rnd: rand.New(rand.NewPCG(seed, 38))}
		log := newLog(t)
		if seed%2 == 0 { // a committed file
			a.lines = a.block(300)
			a.author = make([]event.RunID, len(a.lines))
		} else {
			a.lines = a.block(300)
			a.author = slices.Repeat([]event.RunID{"first"}, len(a.lines))
			s := newScene("first", "gemini")
			s.update("tool_call", "t", members{"status": "completed", "content": diffOf("", a.text())})
			s.record(t, log)
		}
		names := slices.Sorted(maps.Keys(writers))
		for step := range 40 {
			p := a.random()
			name := names[a.rnd.IntN(len(names))]
			agent, _, _ := strings.Cut(name, " ")
			run := event.RunID(fmt.Sprintf("run %d", step))
			s := newScene(string(run), agent)
			switch a.rnd.IntN(20) {
			case 0, 1, 2: // by hand or by a shell command
				for range 1 + a.rnd.IntN(3) {
					a.apply(a.random(), "")
				}
			case 3:
				writers[name](s, a, p, "failed")
				s.record(t, log)
			case 4: // The record has no end, but the change may have happened.
				if writers[name](s, a, p, "in_progress") && a.rnd.IntN(2) == 0 {
					a.apply(p, "")
				}
				s.record(t, log)
			default:
				if writers[name](s, a, p, "completed") {
					a.apply(p, run)
					s.record(t, log)
				}
			}
		}
		f, err := viewOf(t, log).Blame(t.Context(), []string{"/project/a.go"}, a.text())
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range f.Lines {
			if a.author[i] != "" {
				of++
			}
			if l.Change < 0 {
				continue
			}
			if got := f.Changes[l.Change].Run; got == a.author[i] {
				right++
			} else {
				t.Errorf("seed %d: line %d %q is of %q, not of %q", seed, i+1, l.Text, a.author[i], got)
			}
		}
	}
	t.Logf("%d of %d lines that tools wrote have their run: %.1f %%", right, of, 100*float64(right)/float64(of))
	if right*100 < of*95 {
		t.Errorf("%d of %d lines", right, of)
	}
}
