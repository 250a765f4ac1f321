//go:build linux

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestChatShows checks that the answer is rendered as Markdown, that code keeps its text, and that control sequences
// have no effect.
func TestChatShows(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press(`@say # Head\n\nlist[int] [/INST] **un\u001b[2Jclosed\n\n` + "```go" + `\nfunc main() {\n\tx()\n}\n` + "```" +
		`\n\n- a\n- \x07b` + "\x0a" +
		`@plan completed:Read in_progress:Write` + "\x0a" + `@tool edit "Change it" path=a.txt old="one" new="1\n2"` +
		"\x0a@tokens 1234 56\r")
	s.sees("Head\n\nlist[int] [/INST] **un␛[2Jclosed\n\n```go\nfunc main() {\n        x()\n}\n```\n\n• a\n• ␇b\n")
	s.shows("\tx()\r\n") // Code has no indentation, so that it can be copied.
	s.expect("  ✓ Read\r\n  ▸ Write\r\n")
	s.expect("Change it (+2 −1)")
	s.expect("1,234 tokens in, 56 out")
	s.prompt("")
	s.press("@usage 50 100 cost=1.5\x0a@tokens 1234 56\r")
	s.finds("1,234 tokens in, 56 out · context 50% · 1.50 USD so far( · " + aWhile + ")?\r\n")
	s.prompt("")
	s.press("@usage 1 1000 cost=0\x0a@tokens 0 0\x0a@say nothing is counted\r")
	s.sees("\nnothing is counted\n")
	s.prompt("")
	if all := s.drawn().All(); !regexp.MustCompile(`\nnothing is counted\n(` + aWhile + `\n)?\n`).MatchString(all) {
		t.Errorf("something is said of it:\n%s", all)
	}
	s.press("@thought secret thinking\r")
	s.prompt("")
	if strings.Contains(s.text(), "  secret thinking") {
		t.Error("thoughts are shown unasked")
	}
	s.press("/thoughts\r")
	s.expect("thoughts are shown")
	s.prompt("")
	s.press("@thought deep thinking\r")
	s.expect("\x1b[K  deep thinking\r\n")
	s.prompt("")
	s.bye()
	if strings.Contains(s.text(), "\x1b[2J") {
		t.Error("the agent can clear the terminal")
	}
	w.audit()
}

// TestChatDumb checks that a dumb terminal gets few control sequences, and that a person can edit the line there.
func TestChatDumb(t *testing.T) {
	for name, c := range map[string]struct{ env, mark, first, bad string }{
		"TERM=dumb": {"TERM=dumb", ">", "( ask)?", `\x1b`},
		"NO_COLOR":  {"NO_COLOR=1", "❯", " ask", `\x1b\[[0-9;]*m`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env = append(w.env, c.env)
			s := w.terminal(nil)
			s.finds("predictable" + c.first + " " + c.mark + " ")
			s.press("hello wrold\x1b[D\x1b[D\x1b[D\x7for\x1b[D\x7f\x1b[3~\x05 中\r") // The edited line is "hello wold 中".
			s.expect("You said: hello w")
			s.finds("predictable( ask)? " + c.mark + " ")
			s.press(question + "\r")
			s.ask("Run it")
			s.press("y")
			s.expect("permission: allow-once")
			s.finds("predictable( ask)? " + c.mark + " ")
			s.bye()
			if found := regexp.MustCompile(c.bad).FindString(s.text()); found != "" {
				t.Errorf("it was sent %q: %q", found, s.text())
			}
			w.audit()
		})
	}
}

// TestChatResize checks that the line is drawn again when the terminal's width changes.
func TestChatResize(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.press(strings.Repeat("word ", 12))
	s.prompt(strings.Repeat("word ", 12))
	if err := pty.Setsize(s.pty, &pty.Winsize{Rows: 50, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	s.expect("word word word w\x1b[K\r\n")
	s.press("\r")
	s.expect("You said: word")
	s.prompt("")
	s.press("@tool execute \"0123456789 0123456789\" command=make steps=in_progress\x0a@hang\r")
	s.expect("\rrunning: 0123456789 0123456789 ")
	if err := pty.Setsize(s.pty, &pty.Winsize{Rows: 50, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	s.expect("\r\x1b[1Arunning: 01234") // The drawing begins at the first row that the old line has at the new width.
	s.expect("\x1b[J")
	s.press("\x03")
	s.expect("┆ interrupted") // The screen is narrow now.
	s.prompt("")
	s.bye()
	w.audit()
}
