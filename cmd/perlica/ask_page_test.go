//go:build linux

package main

import (
	"iter"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/mattn/go-runewidth"
)

// attack returns a prompt that asks for a long command. If the question had no pages, a person would see only the
// command's harmless end above the options.
func attack(filler string) string {
	return `@ask execute "Tidy up" command="rm -rf src #` + filler + `go test ./..."` + "\n"
}

// lastPage turns to the last page of a question and returns the number of pages.
func (s *terminal) lastPage() (pages int) {
	s.w.t.Helper()
	for from := s.from; ; {
		pages++
		s.finds("(page [0-9]+ of [0-9]+: |from elsewhere)[^\n]*\n")
		s.w.logged(0, "interaction.answered")
		if strings.Contains(sgr.ReplaceAllString(s.text(), "")[from:], "from elsewhere") {
			return pages
		}
		s.taken("y")
	}
}

// TestPages checks at every screen size that a yes counts only after the whole command was on the screen.
func TestPages(t *testing.T) {
	long := strings.Repeat("echo one two three four five; ", 60) + "rm -rf src"
	for name, c := range map[string]struct {
		columns, rows uint16
		script        string
		parts         []string // texts that must have been visible, in this order
		pages         int
	}{
		"blanks 100x24": {100, 24, attack(strings.Repeat(" ", 3600)), []string{"│ rm -rf src #⟨3600 blanks⟩go test ./..."},
			1},
		"blanks 60x10": {60, 10, attack(strings.Repeat(" ", 3600)), []string{"│ rm -rf src #⟨3600 blanks⟩go test ./..."},
			0},
		"lines 100x24": {100, 24, attack(strings.Repeat(`\n`, 61)),
			[]string{"│ rm -rf src #", "│ ⟨60 blank lines⟩", "│ go test ./..."}, 1},
		"invisible 60x10": {60, 10, attack(`\u200b\u202e`), []string{"⟨U+200B⟩⟨U+202E⟩"}, 0},
		// The question must look as on a screen of 80×24.
		"unknown size": {0, 0, `@ask execute "Long" command="` + long + `"`, []string{"│ echo one", "rm -rf src"}, 2},
		"long 100x24":  {100, 24, `@ask execute "Long" command="` + long + `"`, []string{"│ echo one", "rm -rf src"}, 2},
		"long 60x10":   {60, 10, `@ask execute "Long" command="` + long + `"`, []string{"│ echo one", "rm -rf src"}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.terminalOf(c.columns, c.rows, nil, "run", w.script(c.script))
			if c.columns == 0 {
				c.columns = 80
			}
			pages := s.lastPage()
			if c.pages > 0 && pages < c.pages {
				t.Errorf("a yes after %d pages", pages)
			}
			shown := strings.Join(strings.Fields(strings.NewReplacer("┆", "", "↩",
				"").Replace(sgr.ReplaceAllString(s.text(), ""))), " ")
			for _, part := range c.parts {
				i := strings.Index(shown, part)
				if i < 0 {
					t.Fatalf("%q was not shown: %q", part, s.text())
				}
				shown = shown[i:]
			}
			for line := range strings.SplitSeq(sgr.ReplaceAllString(s.text(), ""), "\r\n") {
				line = line[strings.LastIndex(line, "\x1b[K")+1:]
				if n := runewidth.StringWidth(strings.TrimPrefix(line, "[K")); n > int(c.columns) {
					t.Errorf("%d columns: %q", n, line)
				}
			}
			s.press("y")
			s.expect("permission: allow-once")
			s.exits(0)
			w.logged(1, "interaction.answered", `"shown":{`)
			w.audit()
		})
	}
}

// TestTooSmall checks a question on a screen that is too small. No key means yes, and n means no at once.
func TestTooSmall(t *testing.T) {
	w := newWorld(t)
	s := w.terminalOf(20, 4, nil, "run", question)
	s.finds("pending\r\n *show [0-9a-f]{8}\r\n")
	for _, key := range []string{"0", "y", "1", "v", "y"} {
		s.taken(key)
		s.finds("show [0-9a-f]{8}|")
	}
	w.logged(0, "interaction.answered")
	s.press("n")
	s.expect("permission: reject-onc")
	s.exits(0)
	w.audit()
}

// TestResized checks a question during a change of the terminal's size. Pages that were seen before do not count and
// are shown again.
func TestResized(t *testing.T) {
	w := newWorld(t)
	s := w.terminalOf(100, 24, nil, "run", `@ask execute "Long" command="`+
		strings.Repeat("echo one two three four five; ", 60)+`rm x"`)
	if n := s.lastPage(); n < 2 {
		t.Errorf("%d pages", n)
	}
	if err := pty.Setsize(s.pty, &pty.Winsize{Rows: 10, Cols: 60}); err != nil {
		t.Fatal(err)
	}
	s.finds("page 1 of [0-9]+: [^\n]*\n") // The page must appear without a key.
	s.taken("y")
	w.logged(0, "interaction.answered")
	s.finds("page 2 of [0-9]+: ")
	s.press("n")
	s.expect("permission: reject-once")
	s.exits(0)
	w.audit()
}

// TestChatPages checks that the chat shows its questions in pages, too.
func TestChatPages(t *testing.T) {
	w := newWorld(t)
	s := w.terminalOf(60, 10, nil, "chat", "--provider", "predictable")
	s.prompt("")
	s.press(`@ask execute "Long" command="` + strings.Repeat("echo one; ", 60) + `rm x"`)
	s.expect("[pasted")
	s.press("\r")
	s.finds("page 1 of [0-9]+: [^\n]*\n")
	s.taken("1") // The number of an option that allows turns the page, too.
	s.finds("page 2 of [0-9]+: [^\n]*\n")
	w.logged(0, "interaction.answered")
	s.taken("5") // The number of an option that does not allow counts at once.
	s.prompt("")
	s.shows("permission: reject-once")
	s.bye()
	w.audit()
}

// TestOtherRows checks that an agent cannot make a row that looks like a row of Perlica. It looks at texts outside
// of questions. A tool call has one row, each further row of a note has a bar, and no character is invisible.
func TestOtherRows(t *testing.T) {
	wide := strings.Repeat("─", 78)
	for name, script := range map[string]string{
		"a tool's title": `@tool other "\u200b` + wide + "? forged" + strings.Repeat("─", 72) + `  1 ✓ forged" id=a` +
			"\n@say end of it",
		"an option": `@ask execute "Run\n? forged\n  1 ✓ forged\u200b" command="ls" options="a:reject_once:No,b:allow_once:Yes,b:allow_once:Yes"` + "\n@say end of it",
		"an error":  `@error -32603 "\u200bboom\n? forged\n  1 ✓ forged` + wide + wide + ` end of it"`,
	} {
		for _, where := range []string{"run", "chat", "watch"} {
			t.Run(name+" in "+where, func(t *testing.T) {
				w := newWorld(t)
				w.scripted("[session/prompt]\n" + script)
				args := []string{where}
				if where == "run" {
					args = []string{"run", "--permissions=deny", "hello"}
				} else if where == "watch" {
					w.start("run", "--permissions=deny", "hello").wait()
				}
				s := w.terminalOf(80, 24, nil, args...)
				if where == "chat" {
					s.expect("❯")
					s.press("hello\r")
				}
				if name == "an option" && where == "chat" {
					s.ask("? predictable asks: Run")
					s.press("n")
				}
				s.expect("end of it")
				for line := range strings.SplitSeq(s.text(), "\n") {
					for row := range rowsOf(sgr.ReplaceAllString(line, ""), 80) {
						if i := strings.Index(row, "forged"); i >= 0 && !strings.Contains(row[:i], "┆") &&
							strings.TrimLeft(row[:i], " ?1✓") == "" {
							t.Errorf("a row is %q", row)
						}
						if strings.ContainsRune(row, 0x200b) {
							t.Errorf("%q has what cannot be seen", row)
						}
					}
				}
			})
		}
	}
}

// rowsOf yields the rows into which a terminal of the given width breaks a line. A carriage return begins a new row,
// as after a status line.
func rowsOf(line string, width int) iter.Seq[string] {
	return func(yield func(string) bool) {
		row := ""
		for _, r := range line {
			if r == '\r' || runewidth.StringWidth(row+string(r)) > width {
				if !yield(row) {
					return
				}
				row = ""
			}
			row += string(r)
		}
		yield(row)
	}
}
