//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestChatForm fills in an agent's form at the keyboard, field by field. The user must repeat an invalid value, and
// Esc goes back to the question. The user sees all values before they are sent and can change them. The key n sends
// nothing.
func TestChatForm(t *testing.T) {
	for _, columns := range []uint16{60, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			w := newWorld(t)
			s := w.terminalOf(columns, 40, nil)
			s.expect("predictable ask ❯ ")
			s.press(`@elicit Go schema={"properties":{"n":{"type":"integer","title":"数目","minimum":3},"b":{"type":"boolean","title":"Sure"}},"required":["n"]}` + "\r")
			s.sees("\n? predictable asks: 数目\n")
			s.sees("\n  1 ✓ answer    type a number\n  2 ✗ no        the agent is told that you give no answer\n")
			s.ask()
			s.press("1")
			s.sees("\n  Your answer and Enter, Esc to go back:")
			s.press("two\r")
			s.sees("\nperlica: the text does not fit: it must be a number,")
			s.press("2\r")
			s.expect("it must be at least 3")
			s.expect("Your answer and Enter, Esc to go back: ")
			s.press("\x1b")
			s.ask()
			s.press("1")
			s.expect("Your answer")
			s.press("3\r")
			s.sees("\nperlica: ✓ answer, “3”: 数目 (")
			s.sees("\n? predictable asks: Sure\n")
			s.sees("\n  1 ✓ answer    “yes”\n  2 ✓ answer    “no”\n  3 ✓ answer    leave this out\n")
			s.ask("asks: Sure")
			s.press("1")
			s.sees("\n  with    │ 数目: 3\n  with    │ Sure: true\n")
			s.sees("\n  1 ✓ answer    send these values\n  2 ✓ answer    enter them again\n")
			s.ask("send these values")
			s.press("2")
			// The value that was entered before stands in the first row.
			s.sees("\n  1 ✓ answer    “3”\n  2 ✓ answer    type a number\n")
			s.ask("“3”", "type a number")
			s.press("1")
			s.expect("✓ answer, 3: 数目")
			s.ask("asks: Sure")
			s.press("2")
			s.expect("Sure: false")
			s.ask("send these values")
			s.press("1")
			s.sees("\nelicitation/create: result")
			s.prompt("")
			s.press(`@elicit "Your name?"` + "\r")
			s.sees("\n? predictable asks: Answer\n")
			s.ask("asks: Answer")
			s.press("n")
			s.sees(`result {"action":"decline"}`)
			s.prompt("")
			s.bye()
			if text := s.drawn().All(); !strings.Contains(strings.ReplaceAll(text, "\n", ""),
				`{"action":"accept","content":{"b":false,"n":3}}`) {
				t.Errorf("the agent was not given the values:\n%s", text)
			}
			w.audit()
		})
	}
}
