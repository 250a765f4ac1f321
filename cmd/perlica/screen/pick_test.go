package screen

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/cmd/perlica/screen/screentest"
)

// TestPickDraws types words into a list, also on a terminal that becomes narrower. The cursor must stand after the
// words, and the end of the words must be visible. At the end the list must be gone from the screen.
func TestPickDraws(t *testing.T) {
	width, screen := 60, screentest.New(60, 10)
	_, _ = screen.Write([]byte("before\n"))
	p := picker{l: PickList{
		Out: screen, Title: "go on with", Size: func() (int, int) { return width, 10 },
		Find: func(words string) []int { return make([]int, 30/(1+len(words))) },
		Row:  func(int, int) []string { return []string{"a 中文 row", " and more"} },
	}}
	p.found = p.l.Find("")
	row, words := 1, ""
	for _, typed := range []string{"", "中文", strings.Repeat("long ", 12), "end"} {
		words += typed
		for _, r := range typed {
			if _, err := p.pressKey(runeKey(r)); err != nil {
				t.Fatal(err)
			}
		}
		if len(words) > 30 {
			width = 40
			screen.Resize(width, 10)
		}
		p.drawList()
		rows := screen.Screen()
		want := min(TextWidth("go on with ❯ "+words), width-1)
		if at, column := screen.Cursor(); at != row || column != want {
			t.Errorf("the cursor is at %d, %d of\n%s", at, column, strings.Join(rows, "\n"))
		}
		if !strings.HasSuffix(rows[row], strings.TrimSpace(words[max(0, len(words)-6):])) {
			t.Errorf("what was typed is not seen:\n%s", strings.Join(rows, "\n"))
		}
	}
	p.eraseList()
	if got := screen.All(); got != "before\n" {
		t.Errorf("there is left\n%s", got)
	}
}
