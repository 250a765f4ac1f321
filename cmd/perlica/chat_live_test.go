//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perlica/perlica/cmd/perlica/screen"
)

// TestChatLive checks that words appear as they arrive and are then drawn again as Markdown. At the end each word is
// visible once, also in a long answer.
func TestChatLive(t *testing.T) {
	for _, columns := range []uint16{60, 80, 200} {
		for _, colour := range []string{"", "NO_COLOR=1"} {
			t.Run(fmt.Sprint(columns, colour), func(t *testing.T) {
				w := newWorld(t)
				mark, strong := "", "粗体"
				if colour != "" {
					w.env = append(w.env, colour)
					mark, strong = "# ", "**粗体**"
				}
				s := w.terminalOf(columns, 25, nil)
				s.expect("predictable ask ❯ ") // The agent has opened its session.
				s.press(`@say # 标题\n\n一段 **粗` + "\x0a@hang\r")
				s.sees("\n" + mark + "标题\n\n一段 **粗\n") // The text ends within a paragraph.
				s.press("\x03")
				s.sees("perlica: stopped: interrupted")
				s.prompt("")
				s.press(`@say 二段 **粗` + "\x0a" + `@say 体** 和` + "\x0a" + `@say 更多\n\n| 名 | b |\n|---|---|\n| 一二 |` +
					"\x0a" + `@say  x |\n\n- [x] 好` + "\x0a@hang\r")
				s.sees("\n二段 " + strong + " 和更多\n\n名   │ b\n─────┼──\n一二 │ x\n\n☑ 好\n")
				s.press("\x03")
				s.prompt("")
				s.press("@stream 60 50\r")
				s.prompt("")
				s.bye()
				all := s.drawn()
				if len(all.Strange) > 0 {
					t.Errorf("the terminal was sent %q", all.Strange)
				}
				for i := range 60 {
					if n := strings.Count(all.All(), fmt.Sprintf("%09d", i)); n != 1 {
						t.Errorf("line %d is shown %d times:\n%s", i, n, all.All())
					}
				}
				w.audit()
			})
		}
	}
}

// TestChatTyped types a text during a turn. The whole text must be visible below the status line, even if it is
// longer than one row. The answer continues above it.
func TestChatTyped(t *testing.T) {
	for _, columns := range []uint16{60, 80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			w := newWorld(t)
			s := w.terminalOf(columns, 12, nil)
			s.expect("predictable ask ❯ ")
			s.press("@say # one\\n\\n\x0a@sleep 300ms\x0a@say two **three\x0a@sleep 300ms\x0a@say  four**\x0a@hang\r")
			s.expect("one")
			typed := ""
			for range 3 * int(columns) / 80 {
				part := strings.Repeat("中", 20) // A longer part would look like a paste.
				typed += part
				s.press(part)
				s.sees("\n" + strings.Join(broken("❯ "+typed, int(columns)-1), "\n") + "\n")
			}
			s.sees("one\n\ntwo three four\n")
			s.sees("\n" + strings.Join(broken("❯ "+typed, int(columns)-1), "\n") + "\n")
			s.press("\x15")
			s.press("short")
			s.sees("\n❯ short\n")
			if text := s.drawn().All(); strings.Contains(text, "中") {
				t.Errorf("what was taken back is still there:\n%s", text)
			}
			s.press("\x03")
			s.prompt("short")
			s.press("\x15")
			s.prompt("")
			s.bye()
			if all := s.drawn(); len(all.Strange) > 0 || strings.Contains(all.All(), "working") {
				t.Errorf("the terminal was sent %q and shows\n%s", all.Strange, all.All())
			}
			w.audit()
		})
	}
}

// broken breaks a text into rows that have at most the given number of columns.
func broken(text string, columns int) []string {
	rows := []string{""}
	for _, r := range text {
		last := len(rows) - 1
		if screen.TextWidth(rows[last]+string(r)) > columns {
			rows = append(rows, string(r))
		} else {
			rows[last] += string(r)
		}
	}
	return rows
}
