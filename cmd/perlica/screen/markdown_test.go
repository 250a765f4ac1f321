package screen_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/perlica/perlica/cmd/perlica/screen"
)

func plain(string) string { return "" }

func colors(name string) string { return map[string]string{"TERM": "xterm"}[name] }

// TestRender compares shown Markdown with the expected text.
func TestRender(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no markup":      {"list[int] [/INST] <think> a_b_c 2 * 3", "list[int] [/INST] <think> a_b_c 2 * 3\n"},
		"never closed":   {"**bold and `code", "**bold and `code\n"},
		"fence":          {"```go\nx()  \n\n\ty\n```", "```go\nx()  \n\n\ty\n```\n"},
		"open fence":     {"```\nx", "```\nx\n"},
		"longer fence":   {"````\n```\n````\n", "````\n```\n````\n"},
		"indented fence": {"  ```\n  x\n   y\n  ```\n", "```\nx\n y\n```\n"},
		"list":           {"- a\n- b\n  - c\n\n2. x\n3. y\n", "• a\n• b\n  • c\n\n2. x\n3. y\n"},
		"code in a list": {"- a\n\n  ```\n  x\n\n  y\n  ```\n- b\n", "• a\n\n```\nx\n\ny\n```\n• b\n"},
		"tasks": {"- [ ] a\n- [x] ~~b~~ **c**\n- [y] d\n1. [X] e\n\n[ ] f\n",
			"☐ a\n☑ b c\n• [y] d\n1. ☑ e\n\n[ ] f\n"},
		"long task": {"- [ ] one two three four five six seven eight nine\n",
			"☐ one two three four five six seven\n  eight nine\n"},
		"struck":  {"a ~~b **c**~~ ~d ~/e/f ~5 ~~~ ~~open\n", "a b c ~d ~/e/f ~5 ~~~ ~~open\n"},
		"quote":   {"> a\n> b\n", "│ a\n│ b\n"},
		"heading": {"## Two *x*\ntext\n", "Two x\ntext\n"},
		"table":   {"| a | b |\n|---|---|\n| 中 | `x|y` |\n", "a  │ b\n───┼────\n中 │ x|y\n"},
		"wide table": {"| a | b |\n|---|---|\n| " + strings.Repeat("x", 50) + " | b |\n", "a" +
			strings.Repeat(" ", 34) + " │ b\n" + strings.Repeat("─", 35) + "─┼──\n" + strings.Repeat("x", 35) + " │ b\n" +
			strings.Repeat("x", 15) + strings.Repeat(" ", 20) + " │\n"},
		"wrapped cells": {"| name | what it does |\n|---|---|\n| one | **says** hello to all who come by here |\n" +
			"| 二 | 中文中文中文中文中文中文中文中文中文 |\n",
			"name │ what it does\n─────┼─" + strings.Repeat("─", 32) +
				"\none  │ says hello to all who come by\n     │ here\n二   │ 中文中文中文中文中文中文中文中文\n     │ 中文\n"},
		"many columns": {"|" + strings.Repeat(" 0123456789 |", 5) + "\n|" + strings.Repeat("---|", 5) + "\n", "|" +
			strings.Repeat(" 0123456789 |", 5) + "\n|" + strings.Repeat("---|", 5) + "\n"},
		"no table":   {"a | b\nc\n", "a | b\nc\n"},
		"definition": {"[x]: http://example.org\n", "[x]: http://example.org\n"},
		"link":       {"[a](http://b) <http://c>\n", "a (http://b) http://c\n"},
		"escapes":    {`\*a\* &lt;b&gt; &#27;[2J` + "\n", "*a* <b> &#27;[2J\n"},
		"controls":   {"a\x1b[2Jb\x07\n", "a␛[2Jb␇\n"},
		"wrap": {"one two three four five six seven eight nine ten\n",
			"one two three four five six seven eight\nnine ten\n"},
		"long word": {"a " + strings.Repeat("x", 60) + " b\n", "a\n" + strings.Repeat("x", 60) + "\nb\n"},
		"hanging": {"- one two three four five six seven eight nine\n",
			"• one two three four five six seven\n  eight nine\n"},
		"wide":        {strings.Repeat("中文", 11) + "。\n", strings.Repeat("中文", 9) + "中\n文" + "中文。\n"},
		"blank lines": {"\n\na\n\n\n\nb\n\n", "a\n\nb\n"},
		"CRLF":        {"a\r\n\r\n```\r\nx\r\n```\r\n", "a\n\n```\nx\n```\n"},
		"rule":        {"a\n\n***\n\nb\n", "a\n\n" + strings.Repeat("─", 20) + "\n\nb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := sgrOff(screen.RenderMarkdown(c.text, screen.NewStyles(colors, true), 40))
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
	if got, want := screen.RenderMarkdown("# A\n**b** `c` *d* ~~e~~\n", screen.NewStyles(plain, false), 40),
		"# A\n**b** `c` *d* ~~e~~\n"; got != want {
		t.Errorf("without styles: %q, want %q", got, want)
	}
}

// sgrOff removes the sequences for styles. It fails if there is any other sequence.
func sgrOff(s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		params, after, ok := strings.Cut(rest, "m")
		if !ok || strings.Trim(params, "0123456789;") != "" {
			b.WriteString("\x1b[")
			after = rest
		}
		s = after
	}
}

// TestStreams checks a terminal without redrawing. Each block must be shown as soon as it is complete.
func TestStreams(t *testing.T) {
	var b strings.Builder
	s := screen.NewMarkdownStream(&b, screen.Styles{}, func() int { return 80 })
	for _, c := range []struct{ piece, shown string }{
		{"Hel", ""},
		{"lo\nwor", ""},
		{"ld\n\n", "Hello\nworld\n"},
		{"```\nx\ny", "Hello\nworld\n\n```\nx\n"},
		{"\n```\n- a\n- ", "Hello\nworld\n\n```\nx\ny\n```\n"},
		{"b", "Hello\nworld\n\n```\nx\ny\n```\n"},
		{"\n", "Hello\nworld\n\n```\nx\ny\n```\n• a\n"},
	} {
		if _, err := io.WriteString(s, c.piece); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.shown {
			t.Errorf("after %q: %q, want %q", c.piece, b.String(), c.shown)
		}
	}
	if err := s.Flush(); err != nil || !strings.HasSuffix(b.String(), "• a\n• b\n") {
		t.Errorf("in the end %q, %v", b.String(), err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStreamSaysWhenItIsNotRead(t *testing.T) {
	s := screen.NewMarkdownStream(broken{}, screen.Styles{}, func() int { return 80 })
	if _, err := io.WriteString(s, "a\n\n"); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write: %v", err)
	}
}

// TestLongLine checks a line without an end. It must be shown completely, and in time.
func TestLongLine(t *testing.T) {
	text := strings.Repeat("word ", 1<<20)
	var b strings.Builder
	s := screen.NewMarkdownStream(&b, screen.Styles{}, func() int { return 80 })
	for i := 0; i < len(text); i += 1000 {
		_, _ = io.WriteString(s, text[i:min(i+1000, len(text))])
	}
	_ = s.Flush()
	if got := strings.TrimRight(b.String(), "\n"); got != text && got != strings.TrimRight(text, " ") {
		t.Errorf("%d bytes became %d", len(text), len(got))
	}
}

// TestTangled checks that a text with too many marks is shown at once, as it was written.
func TestTangled(t *testing.T) {
	for _, piece := range []string{"> ", "[", "![", "**a ", "*a_", "`a``", "- ", "<a", "a  \n", ">a\n", "((", "[a](",
		"中", "| a ", "a b ", "\t", "<!--", "1. ", "*a **a ", "~~~", "- a\n", "&lt;", "~~a ", "~~a~~", "- [ ] "} {
		const most = 3 * time.Second
		took := time.Hour
		for n := 0; n < 3 && took > most; n++ { // A busy machine may stop the test once, but not three times.
			begun := time.Now()
			screen.RenderMarkdown(strings.Repeat(piece, 60_000/len(piece)), screen.NewStyles(colors, true), 80)
			took = min(took, time.Since(begun))
		}
		if took > most {
			t.Errorf("%q takes %s", piece, took)
		}
	}
}

// FuzzRender checks that a terminal obeys no part of any text, and that no text causes a panic.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{"a **b** `c`", "| a |\n|---|\n| b |", "- - - a", "> - ```\nx", "&#27;",
		"[a](b\x1b)", "\x9b2J"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := sgrOff(screen.RenderMarkdown(text, screen.NewStyles(colors, true), 30))
		if !utf8.ValidString(got) || screen.Sanitize(got) != got {
			t.Errorf("%q became %q", text, got)
		}
	})
}
