package frame

import (
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/cmd/perlica/screen"
)

// TestGridWidths checks a table at each width. No word may be lost, and no line may be wider than the screen. A word
// may break only if no column could have the width of the word.
func TestGridWidths(t *testing.T) {
	for width := 20; width <= 120; width++ {
		g := Grid{Head: []string{"ID", "USED", "TITLE"}}
		g.Add("9d00ed9f", "3 min ago", "why does the parser lose the last line")
		g.Add("mychat", "just now", "重写 解析器 的 测试")
		var b strings.Builder
		if err := g.Write(&b, screen.Styles{}, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if w := runewidth.StringWidth(strings.TrimRight(line, "\n")); w > width {
				t.Errorf("width %d: a line has %d columns: %q", width, w, line)
			}
		}
		for _, word := range []string{"9d00ed9f", "mychat", "parser", "last", "解析器", "ago"} {
			if !strings.Contains(b.String(), word) {
				t.Errorf("width %d: %q is missing or broken:\n%s", width, word, b.String())
			}
		}
	}
}

// TestGridToAFile checks that each row is one line if the output is not a screen.
func TestGridToAFile(t *testing.T) {
	g := Grid{Head: []string{"ID", "TITLE"}}
	g.Add("a", strings.Repeat("word ", 100)+"end")
	var b strings.Builder
	if err := g.Write(&b, screen.Styles{}, 0); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(b.String(), "\n"); got != 2 {
		t.Errorf("got %d lines, want 2", got)
	}
}
