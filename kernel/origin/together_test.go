package origin

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// edit records a report about an edit of the file a.go.
func (s *scene) edit(call, old, text, status string) {
	s.update("tool_call", call, members{"status": status, "kind": "edit", "content": diffOf(old, text)})
}

// ask records a request for permission with the content of a tool call.
func (s *scene) ask(id, call, title string, content []any) {
	s.frame(asJSON(members{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": "session/request_permission",
		"params": members{"sessionId": "c",
			"toolCall": members{"toolCallId": call, "title": title, "kind": "edit", "content": content},
			"options":  []any{members{"optionId": "y", "name": "Yes", "kind": "allow_once"}}}}))
}

// reply records the answer of the policy to a request.
func (s *scene) reply(id string) {
	s.fact(event.ReplySent, fact.ReplySent{RequestID: id, Outcome: "selected", Kind: "allow_once", Option: "y",
		By: "policy"})
}

// keep writes the events until now to the log.
func (s *scene) keep(t *testing.T, log *eventlog.Log) {
	t.Helper()
	if _, err := log.Append(t.Context(), s.events...); err != nil {
		t.Fatal(err)
	}
	s.events = nil
}

// origins returns for each line of the file a.go the run and the decision, or "unknown".
func origins(t *testing.T, log *eventlog.Log, content string) (list []string) {
	t.Helper()
	f, err := viewOf(t, log).Blame(t.Context(), []string{"/project/a.go"}, content)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range f.Lines {
		text := "unknown"
		if l.Change >= 0 {
			c := f.Changes[l.Change]
			text = strings.TrimSpace(strings.Join([]string{string(c.Run), c.Kind, c.Who, c.Why}, " "))
		}
		list = append(list, strings.Join(strings.Fields(text), " "))
	}
	return list
}

func wantOrigins(t *testing.T, log *eventlog.Log, content string, want ...string) {
	t.Helper()
	if got := origins(t, log, content); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDecisionsOfOpenRequests checks that each of several open requests has its own decision: with different titles,
// with one title, and with an id that the agent uses again.
func TestDecisionsOfOpenRequests(t *testing.T) {
	const first, second = "the first content of many letters\n", "the second content of many letters\n"
	decide := func(s *scene, id, title, by string) {
		s.fact(event.PolicyDecided, fact.PolicyDecided{Request: id, Title: title, Effect: "allow", By: by,
			Why: "of " + by, Option: "y"})
	}
	for _, titles := range [][2]string{{"Edit A", "Edit B"}, {"Edit", "Edit"}} {
		log := newLog(t)
		s := newScene("r", "claude")
		s.ask("1", "a", titles[0], diffOf("x", first))
		s.ask("2", "b", titles[1], diffOf("y", second))
		decide(s, "1", titles[0], "rule")
		decide(s, "2", titles[1], "mode")
		s.reply("1")
		s.reply("2")
		s.edit("a", "x", first, "completed")
		s.edit("b", "y", second, "completed")
		s.record(t, log)
		wantOrigins(t, log, first+second, "r rule of rule", "r mode of mode")
	}
	log := newLog(t)
	s := newScene("r", "claude")
	s.ask("1", "a", "Edit", diffOf("x", first))
	decide(s, "1", "Edit", "rule")
	s.reply("1")
	s.edit("a", "x", first, "completed")
	s.ask("1", "b", "Edit", diffOf("y", second))
	s.reply("1") // without a decision
	s.edit("b", "y", second, "completed")
	s.record(t, log)
	wantOrigins(t, log, first+second, "r rule of rule", "r policy")
}

// TestOrderOfCalls checks that the tool calls of concurrent runs count in the order of their ends. The order of the
// ends of the runs, the clock and a late report about an ended call do not count.
func TestOrderOfCalls(t *testing.T) {
	const one, two, three = "the line number one of the file\n", "the line number two of the file\n",
		"the line number two was replaced\n"
	for _, ends := range []string{"second first", "first second", "second", "first", ""} {
		log := newLog(t)
		a, b := newScene("first", "gemini"), newScene("second", "gemini")
		a.edit("t", "", one+two, "completed")
		a.keep(t, log)
		b.edit("t", two, three, "completed")
		b.keep(t, log)
		a.update("tool_call_update", "t", members{"title": "Written"})
		a.keep(t, log)
		for _, run := range strings.Fields(ends) {
			map[string]*scene{"first": a, "second": b}[run].record(t, log)
		}
		got := origins(t, log, one+three)
		if len(got) != 2 || !strings.HasPrefix(got[0], "first ") || !strings.HasPrefix(got[1], "second ") {
			t.Errorf("%q: %q", ends, got)
		}
	}
}

// TestOrderOfRepeatedContent checks that the newest of several calls with the same content is the origin.
func TestOrderOfRepeatedContent(t *testing.T) {
	const old, text = "the old line of the file here\n", "the new line of the file here\n"
	log := newLog(t)
	a, b := newScene("first", "claude"), newScene("second", "claude")
	b.edit("t", old, text, "completed")
	b.edit("u", text, old, "completed")
	b.keep(t, log)
	a.edit("t", old, text, "completed")
	a.keep(t, log)
	a.record(t, log)
	b.record(t, log)
	if got := origins(t, log, text); len(got) != 1 || !strings.HasPrefix(got[0], "first ") {
		t.Errorf("%q", got)
	}
}

// TestFolders checks that a folder selects the files below it, and no file whose path only begins in the same way.
// Paths have the separator of the system.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	log := newLog(t)
	for _, closed := range []bool{true, false} {
		s := newScene("closed", "gemini")
		if !closed {
			s = newScene("open", "gemini")
		}
		for _, name := range []string{"src/a", "src/deep/b", "src2/c", "src-d", "src"} {
			s.update("tool_call", name, members{"status": "completed", "content": []any{members{"type": "diff",
				"path": filepath.Join(dir, filepath.FromSlash(name)), "oldText": "", "newText": "text"}}})
		}
		if s.keep(t, log); closed {
			s.record(t, log)
		}
	}
	for folder, want := range map[string]int{filepath.Join(dir, "src"): 3, dir: 5, filepath.Join(dir, "sr"): 0,
		filepath.VolumeName(dir) + string(filepath.Separator): 5} {
		list, err := viewOf(t, log).Changes(t.Context(), Wanted{Paths: []string{folder}})
		if err != nil || len(list) != 2*want {
			t.Errorf("%s: %+v, %v; want %d changes of each run", folder, list, err, want)
		}
	}
}

// TestUnaskedByTheRecord checks that a change without a question is unasked only if the record says so.
func TestUnaskedByTheRecord(t *testing.T) {
	const text = "a line that nobody was asked about\n"
	for _, reported := range []bool{false, true} {
		log := newLog(t)
		s := newScene("r", "claude")
		s.edit("a", "x", text, "completed")
		want := "r unknown"
		if reported {
			s.fact(event.PolicyUnasked, fact.UnaskedTool{ToolSeen: fact.ToolSeen{ID: "a"}, Why: "it ran"})
			want = "r unasked it ran"
		}
		s.record(t, log)
		wantOrigins(t, log, text, want)
	}
}

// TestApprovedContent checks that a yes counts only for the content of the request. The request must come before the
// end of the tool call. A longer report of the same change keeps its approver.
func TestApprovedContent(t *testing.T) {
	const old, text, evil = "the old line\n", "harmless content of many letters\n", "evil content that nobody saw\n"
	for _, test := range []struct{ made, before, want string }{
		{text, "", "r person bob"},
		{evil, "", "r unasked it wrote another content than the allowed one"},
		{text + evil, "", "r unasked it wrote another content than the allowed one"},
		{evil, "completed", "r unknown"},
		{text, "in_progress", "r person bob"},
	} {
		log := newLog(t)
		s := newScene("r", "claude")
		if test.before != "" {
			s.edit("a", old, test.made, test.before)
		}
		s.ask("1", "a", "Edit", diffOf(old, text))
		s.answer("1", "allow_once")
		s.edit("a", "before\n"+old, "before\n"+test.made, "completed")
		s.record(t, log)
		got := origins(t, log, "before\n"+test.made)
		if got[len(got)-1] != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

// TestApprovedInput checks that a yes counts for a content that only the input of the request shows.
func TestApprovedInput(t *testing.T) {
	const text, evil = "harmless content of many letters\n", "evil content that nobody saw\n"
	for made, want := range map[string]string{
		text: "r person bob",
		evil: "r unasked it wrote another content than the allowed one",
	} {
		log := newLog(t)
		s := newScene("r", "claude")
		s.update("tool_call", "a", members{"kind": "edit", "locations": []any{members{"path": "/project/a.go"}},
			"rawInput": members{"file_path": "/project/a.go", "content": text}})
		other := members{"type": "diff", "path": "/project/b.go", "oldText": "", "newText": "b"}
		s.ask("1", "a", "Edit", []any{other})
		s.answer("1", "allow_once")
		content := append(diffOf("the old line\n", made), other)
		s.update("tool_call_update", "a", members{"status": "completed", "content": content})
		s.record(t, log)
		if got := origins(t, log, made); got[0] != want {
			t.Errorf("%s: %q; want %q", made, got[0], want)
		}
	}
}

// TestCopiedBlock checks a tool's copy of an older block. After a person has deleted the copy, the older block must
// not have the tool as its origin.
func TestCopiedBlock(t *testing.T) {
	const block = "\tfirst := computeSomethingLong(1)\n\tsecond := computeSomethingLong(2)\n"
	const end = "// the end of the file\n"
	log := newLog(t)
	s := newScene("first", "gemini")
	s.update("tool_call", "t", members{"status": "completed", "content": diffOf("", "package a\n"+block+end)})
	s.record(t, log)
	s = newScene("copy", "claude")
	s.edit("t", end, end+block+"// a new end\n", "completed")
	s.record(t, log)
	f, err := viewOf(t, log).Blame(t.Context(), []string{"/project/a.go"}, "package a\n"+block+"// by hand\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range f.Lines {
		if l.Change >= 0 && f.Changes[l.Change].Run == "copy" {
			t.Errorf("%q is of the copy", l.Text)
		}
	}
}

// TestEqualLineOfAPerson checks that a person's line has no run if an agent inserted an equal line at another place and
// the person removed that one.
func TestEqualLineOfAPerson(t *testing.T) {
	const place, line = "// place A marker line here\n", "\tresult := computeSomethingLong()\n"
	log := newLog(t)
	s := newScene("r", "claude")
	s.edit("t", place, place+line, "completed")
	s.record(t, log)
	wantOrigins(t, log, "package a\n"+place+"\nfunc b() {\n"+line+"\treturn result\n",
		"unknown", "unknown", "unknown", "unknown", "unknown", "unknown")
}

// TestStates checks the state of a change, also if its content is too short to give lines an origin.
func TestStates(t *testing.T) {
	for name, c := range map[string]struct {
		old, new, now string
		want          State
	}{
		"a short line stands":           {"x = 1", "x = 2", "package a\nvar x = 2\n", Present},
		"a new file has a line more":    {"", "one\ntwo\n", "one\ntwo\nthree\n", Partly},
		"one of two lines stands":       {"a", "a\nshort\nother", "a\nshort\nelse\n", Partly},
		"no line stands":                {"x = 1", "x = 2", "package a\nvar x = 3\n", Absent},
		"only an unchanged line does":   {"keep\nx = 1", "keep\nx = 2", "keep\nx = 3\n", Absent},
		"only blank lines are the same": {"x", "x\n\ny", "z\n\n", Absent},
	} {
		log := newLog(t)
		s := newScene("r", "gemini")
		s.update("tool_call", "t", members{"status": "completed", "content": diffOf(c.old, c.new)})
		s.record(t, log)
		f, err := viewOf(t, log).Blame(t.Context(), []string{"/project/a.go"}, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if f.States[0] != c.want {
			t.Errorf("%s: %s", name, f.States[0])
		}
	}
}
