package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// recordInput writes a turn with this input. If outcome is true, the turn has an answer.
func recordInput(t *testing.T, r *Runner, in Input, outcome bool) {
	t.Helper()
	files, err := in.files()
	if err != nil {
		t.Fatal(err)
	}
	refs := event.Refs{Session: "s", Run: event.RunID("run of " + in.ID), Input: in.ID}
	append1(t, r,
		event.NewFact(event.MessageReceived, "user", refs, fact.MessageReceived{Text: in.Text, Provider: "p"}),
		event.NewFact(event.Requested, "perlica", refs, fact.Requested{Provider: "p", Input: in.digest(files)}))
	if outcome {
		append1(t, r, event.NewFact(event.Responded, "agent", refs, fact.Responded{Text: "answer"}))
	}
}

// TestSameIDAnotherInput checks that an input id can only be repeated with the same text and the same attachments, even
// while the call is running.
func TestSameIDAnotherInput(t *testing.T) {
	r := pruneRunner(t)
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b, empty, large := write("a", "A"), write("b", "A"), write("empty", ""), write("large",
		strings.Repeat("x", maxEmbedded+1))
	called := map[event.InputID]Input{
		"plain": {ID: "plain", Text: "hello"},
		"with":  {ID: "with", Text: "hello", Attachments: []string{a, empty}},
		"large": {ID: "large", Text: "hello", Attachments: []string{large}},
	}
	for _, in := range called {
		recordInput(t, r, in, true)
	}
	recordInput(t, r, Input{ID: "running", Text: "hello"}, false)
	lock, err := filelock.Acquire(filelock.Run(r.opt.Paths.Locks, "run of running"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	for _, in := range called {
		if res, ok, err := r.replayInput(t.Context(), in); err != nil || !ok || res.Text != "answer" ||
			len(res.Warnings) > 0 {
			t.Errorf("%+v: %+v, %t, %v", in, res, ok, err)
		}
	}
	for _, in := range []Input{
		{ID: "plain", Text: "hello\n"},
		{ID: "plain", Text: ""},
		{ID: "plain", Text: "hello", Attachments: []string{a}},
		{ID: "with", Text: "hello"},
		{ID: "with", Text: "other", Attachments: []string{a, empty}},
		{ID: "with", Text: "hello", Attachments: []string{empty, a}},
		{ID: "with", Text: "hello", Attachments: []string{b, empty}},
		{ID: "with", Text: "hello", Attachments: []string{a, large}},
		{ID: "large", Text: "hello", Attachments: []string{a}},
		{ID: "running", Text: "other"},
	} {
		res, ok, err := r.replayInput(t.Context(), in)
		var other *InputConflictError
		if !ok || !errors.As(err, &other) || other.Recorded == other.Given || other.Input != in.ID || res.Text != "" {
			t.Errorf("%+v: %+v, %t, %v", in, res, ok, err)
		}
	}
	if _, _, err := r.replayInput(t.Context(), Input{ID: "running", Text: "hello"}); !errors.Is(err, ErrInputRunning) {
		t.Errorf("the same input, under way: %v", err)
	}
	if _, _, err := r.replayInput(t.Context(), Input{ID: "plain", Text: "hello",
		Attachments: []string{"missing"}}); !isUsage(err) {
		t.Errorf("an attachment that is missing: %v", err)
	}
	if _, ok, err := r.replayInput(t.Context(), Input{ID: "new", Text: "hello"}); ok || err != nil {
		t.Errorf("an input that was never called: %t, %v", ok, err)
	}
}

// TestInputThatCannotBeCompared checks that a repeated input with a pruned intent gets the recorded result with a
// warning.
func TestInputThatCannotBeCompared(t *testing.T) {
	r := pruneRunner(t)
	turns(t, r, "old")
	recordInput(t, r, Input{ID: "pruned", Text: "hello"}, true)
	if _, err := r.Prune(t.Context(), event.Pruning{Until: 1000, Run: "run of pruned"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []event.InputID{"input old", "pruned"} {
		res, ok, err := r.replayInput(t.Context(), Input{ID: id, Text: "other"})
		if err != nil || !ok || res.Outcome != record.OutcomeResponded || len(res.Warnings) != 1 ||
			res.Warnings[0].Code != "kernel.not-compared" {
			t.Errorf("%s: %+v, %t, %v", id, res, ok, err)
		}
	}
}

// TestReservedIDs checks that only a flow and a schedule use the ids of their inputs. Otherwise an agent could take the
// call of a step or of a planned time away. The test fails if the kernel answers such an input of another front end.
func TestReservedIDs(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	reserved := map[event.InputID][]string{
		"flow:review/first":                 {"run", "chat", "send", "web", "acp", "telegram", "schedule", ""},
		"schedule:day@2026-11-27T08:00:00Z": {"chat", "send", "web", "acp", "telegram", "flow", ""},
	}
	for id, sources := range reserved {
		for _, source := range sources {
			in := Turn{Input: Input{ID: id, Text: "@say x", Source: source}, Permissions: policy.ModeDeny}
			var invalid *InputError
			if _, err := c.Run(t.Context(), in); !errors.As(err, &invalid) {
				t.Errorf("%s from %q in a conversation: %v", id, source, err)
			}
			if _, err := r.Run(t.Context(), in); !errors.As(err, &invalid) {
				t.Errorf("%s from %q: %v", id, source, err)
			}
		}
	}
	for _, in := range []Input{{ID: "flow:review/first", Source: "flow"}, {ID: "schedule:day@x", Source: "schedule"},
		{ID: "schedule:night@x", Source: "run"}, {ID: "flows", Source: "web"}, {ID: "x/flow:y", Source: "web"}} {
		in.Text = "@say x"
		res, err := c.Run(t.Context(), Turn{Input: in, Permissions: policy.ModeDeny})
		if err != nil || res.Text != "x" {
			t.Errorf("%s from %q: %+v, %v", in.ID, in.Source, res, err)
		}
	}
}
