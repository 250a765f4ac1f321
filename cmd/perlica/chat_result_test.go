//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lines returns numbered lines, like a script of the predictable agent.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `%03d\n`, i+1)
	}
	return b.String()
}

// TestChatResult checks that only a part of a tool call's result is shown. /show shows the whole result page by
// page.
func TestChatResult(t *testing.T) {
	for _, columns := range []uint16{60, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			w := newWorld(t)
			s := w.terminalOf(columns, 12, nil)
			s.expect("predictable ask ❯ ")
			s.pressNow("/show\r")
			s.sees("perlica: no result was folded in this chat yet")
			s.pressNow(`@tool execute "测试" command="go test ./..." exit=2 text="` + lines(30) + "\"\r")
			s.sees("\n✗ 测试 (exit 2)\n  output  │ 001\n          │ 002\n          │ 003\n          │ 004\n  … 26 more " +
				"lines: /show 1\n")
			s.prompt("")
			s.pressNow(`@tool edit Edit path=a.go old="a\nb\n" new="a\nB\n"` + "\r")
			s.sees("\n✓ Edit (+1 −1)\n  diff    │ a.go\n          │ @@ -1,2 +1,2 @@\n          │  a\n          │ -b\n       " +
				"   │ +B\n")
			s.prompt("")
			s.pressNow(`@tool edit Edit path=a.go old="a\n" new="b\n" steps=pending,failed` + "\r")
			s.sees("\n✗ Edit\n")
			s.prompt("")
			s.pressNow("/show 9\r")
			s.sees("is no number of a folded result: they go")
			s.pressNow("/show 1\r")
			s.sees("\n          │ 009\n-- 11 of 32 rows: Space, Enter, q --")
			s.pressNow("\r")
			s.sees("\n          │ 010\n-- 12 of 32 rows: Space, Enter, q --")
			s.pressNow(" ")
			s.sees("-- 23 of 32 rows: Space, Enter, q --")
			s.pressNow("q/show\r") // Keys that were typed before the prompt are not lost.
			s.sees("-- 11 of 32 rows: Space, Enter, q --")
			s.pressNow("  ")
			s.sees("\n          │ 030\n")
			s.prompt("")
			s.bye()
			if all := s.drawn(); len(all.Strange) > 0 {
				t.Errorf("the terminal was sent %q", all.Strange)
			}
			w.audit()
		})
	}
}

// TestChatPager checks that the program in PAGER shows a whole result, and that the chat reports the program's
// failure.
func TestChatPager(t *testing.T) {
	w := newWorld(t)
	seen := filepath.Join(t.TempDir(), "seen")
	w.env = append(w.env, "PAGER=cat > "+seen+"; exit 3")
	s := w.terminalOf(80, 25, nil)
	s.expect("predictable ask ❯ ")
	s.press(`@tool execute test text="` + lines(30) + "\"\r")
	s.sees("… 26 more lines: /show 1\n")
	s.prompt("")
	s.press("/show\r")
	s.sees("exit status 3")
	s.prompt("")
	s.bye()
	b, err := os.ReadFile(seen)
	if err != nil || !strings.Contains(string(b), "\n          │ 030\n") || strings.Contains(string(b), "\x1b") {
		t.Errorf("the pager was handed %q, %v", b, err)
	}
}

// TestUnaskedStory checks that the story of a run lists tool calls that ran without asking, with their changes and
// the approval that allowed them.
func TestUnaskedStory(t *testing.T) {
	w := newWorld(t)
	s := w.terminalOf(100, 40, nil)
	s.expect("predictable ask ❯ ")
	s.press(`@ask execute make command="make x"` + "\r")
	s.ask()
	s.press("4")
	s.expect("any other key to go back.\r\n")
	s.press("y")
	s.sees("permission: allow-always")
	s.prompt("")
	s.press(`@tool execute "make y" command="make y"` + "\x0a" + `@tool edit "Edit a.go" path=a.go old="a\n" new="b\n"` +
		"\r")
	s.sees("✓ Edit a.go")
	s.prompt("")
	s.bye()
	j := w.run("log", "show")
	j.exits(0)
	story := j.stdout.String()
	for _, want := range []string{
		"ran unasked: make y (execute): it ran without a question, because of an earlier 'always allow'",
		`           input   │ {"command":"make y"}`,
		"allowed by an earlier permanent yes to “predictable asks: make”",
		"answered from chat at ", "! always “Always allow”",
		"ran unasked: Edit a.go (edit): it ran and nobody was asked",
		"           path    │ a.go\n           diff    │ a.go\n                   │ @@ -1,1 +1,1 @@\n                   │ " +
			"-a\n                   │ +b\n",
	} {
		if !strings.Contains(story, want) {
			t.Errorf("the story does not say %q:\n%s", want, story)
		}
	}
}
