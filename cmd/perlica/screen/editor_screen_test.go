package screen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/cmd/perlica/screen/screentest"
)

// TestLineOnTheScreen checks that the whole line and the cursor are in the right places, at several widths. Deleted
// text must be gone.
func TestLineOnTheScreen(t *testing.T) {
	text := "中文 and 😀 " + strings.Repeat("word ", 12) // 12 + 60 columns
	for _, columns := range []int{20, 60, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			d := newTestEditor(t, columns, nil)
			if _, err := d.line(t, text+tab+home+right+tab+ctrlE+ctrlU+"new"+tab); !errors.Is(err, ErrInterrupted) {
				t.Fatalf("got %v; want errors.Is(err, ErrInterrupted)", err)
			}
			if len(d.looks) != 3 {
				t.Fatalf("%d looks", len(d.looks))
			}
			typed, moved, erased := d.looks[0], d.looks[1], d.looks[2]
			all := "> " + text
			if got, want := strings.ReplaceAll(strings.Join(typed.rows, ""), " ", ""),
				strings.ReplaceAll(all, " ", ""); got != want {
				t.Errorf("it shows %q, want %q", got, want)
			}
			rows, row, column := layout("> ", []rune(text), len([]rune(text)), columns-1)
			if typed.row != row || typed.column != column || len(rows) > columns {
				t.Errorf("the cursor is at %d, %d, want %d, %d", typed.row, typed.column, row, column)
			}
			if moved.row != 0 || moved.column != 4 {
				t.Errorf("after the first character, the cursor is at %d, %d", moved.row, moved.column)
			}
			if got := strings.TrimSpace(strings.Join(erased.rows, "\n")); got != "> new" {
				t.Errorf("after Ctrl-U it shows\n%s", got)
			}
		})
	}
}

// TestLongerThanTheScreen checks that the screen shows the part of a long line around the cursor.
func TestLongerThanTheScreen(t *testing.T) {
	var lines []string
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	d := newTestEditor(t, 60, nil)
	if _, err := d.line(t, strings.Join(lines, altEnter)+tab+strings.Repeat(up, 29)+tab); !errors.Is(err,
		ErrInterrupted) {
		t.Fatalf("got %v; want errors.Is(err, ErrInterrupted)", err)
	}
	last, first := strings.Join(d.looks[0].rows, "\n"), strings.Join(d.looks[1].rows, "\n")
	if !strings.Contains(last, "line 29") || strings.Contains(last, "line 5\n") ||
		!strings.HasPrefix(first, "> line 0\n") {
		t.Errorf("at the end it shows\n%s\nand at the beginning\n%s", last, first)
	}
}

// TestAbove writes other lines above the prompt. The prompt must stay, and Redraw(true) must draw it again.
func TestAbove(t *testing.T) {
	for _, dumb := range []bool{false, true} {
		d := newTestEditor(t, 60, func(o *EditorOptions) {
			o.Dumb = dumb
			o.Cycle = func() {}
		})
		d.Above("before the prompt\n")
		d.Redraw(true) // There is no prompt to draw.
		d.prompt = func() string { return "> " }
		d.active, d.text, d.pos = true, []rune("half a 中"), 6
		d.mu.Lock()
		d.drawLine()
		d.mu.Unlock()
		d.Above("a notice\n")
		d.Redraw(false)
		want := "before the prompt\na notice\n> half a 中\n"
		if dumb {
			want = "before the prompt\n> half a 中\na notice\n> half a 中\n"
		}
		if got := d.screen.All(); got != want {
			t.Errorf("dumb %v: it shows\n%swant\n%s", dumb, got, want)
		}
		if _, column := d.screen.Cursor(); column != 8 {
			t.Errorf("dumb %v: the cursor is in column %d", dumb, column)
		}
		_, _ = d.screen.Write([]byte("\r\n"))
		d.Redraw(true)
		if got := d.screen.All(); strings.Count(got, "> half a 中") < 2 {
			t.Errorf("dumb %v: after the screen was lost it shows\n%s", dumb, got)
		}
		d.sends(t, "x"+enter, "x") // readline can be closed only after its goroutines have begun.
	}
}

// TestDumbTerminal checks that the line is one row that is drawn only with backspaces. If the line is too long, the
// row must show the part around the cursor.
func TestDumbTerminal(t *testing.T) {
	for _, columns := range []int{20, 60, 200} {
		d := newTestEditor(t, columns, func(o *EditorOptions) { o.Dumb = true })
		long := strings.Repeat("中a ", 40)
		got, err := d.line(t, "abc"+left+left+"X"+del+altEnter+"Y"+tab+ctrlE+long+"end"+tab+ctrlL+home+tab+enter)
		if want := "aX\nYc" + long + "end"; got != want || err != nil {
			t.Errorf("%d columns: sent %q, %v", columns, got, err)
		}
		if at := d.looks[0]; at.rows[0] != "> aX⏎Yc" || at.column != 6 {
			t.Errorf("%d columns: it shows %q, the cursor in column %d", columns, at.rows[0], at.column)
		}
		if at := d.looks[1]; !strings.HasSuffix(at.rows[0], "end") ||
			len(strings.TrimSpace(strings.Join(at.rows[1:], ""))) > 0 {
			t.Errorf("%d columns: at the end it shows %q", columns, at.rows)
		}
		if at := d.looks[2]; !strings.HasPrefix(at.rows[0], "> aX⏎Yc中a") || at.column != 2 {
			t.Errorf("%d columns: at the beginning it shows %q, the cursor in column %d", columns, at.rows[0], at.column)
		}
	}
}

// TestPickKeys checks the effects of the arrows, typed words, Enter, Esc and Ctrl-C in a list.
func TestPickKeys(t *testing.T) {
	names := []string{"apple", "pear", "apple pie", "plum"}
	for keys, want := range map[string]int{
		enter:                                      0,
		down + down + enter:                        2,
		down + down + up + enter:                   1,
		up + strings.Repeat(down, 9) + enter:       3,
		"pie" + enter:                              2,
		"piex" + backspace + enter:                 2,
		"nothing" + enter + ctrlU + "plum" + enter: 3,
		"nothing" + ctrlU + "pl" + "um" + enter:    3,
		pasteOf("apple\rpie") + enter:              2,
		ctrlC:                                      -1,
		ctrlD:                                      -1,
		"a" + ctrlD + enter:                        0,
	} {
		screen, typed := screentest.New(60, 20), &Keys{}
		typed.Unread([]byte(keys + ctrlC))
		row, err := Pick(t.Context(), typed, PickList{
			Out: screen, Size: func() (int, int) { return 60, 20 }, Title: "fruit",
			Find: func(words string) (found []int) {
				for i, n := range names {
					if strings.Contains(n, words) {
						found = append(found, i)
					}
				}
				return found
			},
			Row: func(row, _ int) []string { return []string{names[row]} },
		})
		switch {
		case want < 0:
			if !errors.Is(err, ErrInterrupted) {
				t.Errorf("%q chose %d, %v", keys, row, err)
			}
		case row != want || err != nil:
			t.Errorf("%q chose %d, %v; want %d", keys, row, err, want)
		}
		if got := strings.TrimSpace(screen.All()); got != "" {
			t.Errorf("%q left %q", keys, got)
		}
	}
}

// TestPage shows rows screen by screen and row by row, until the key q. Keys after the q must be left for the next
// reader.
func TestPage(t *testing.T) {
	rows := strings.Split("r1 r2 r3 r4 r5 r6 r7 r8", " ")
	for keys, want := range map[string]int{
		"q":                                 3,
		ctrlC:                               3,
		"x q":                               6,
		"\x1b[Bq":                           4,
		enter + ctrlA + enter + ctrlA + "q": 5,
		"   ":                               8,
	} {
		screen, typed := screentest.New(60, 4), &Keys{}
		typed.Unread([]byte(keys + "Q"))
		if err := ShowPages(t.Context(), typed, screen, func() int { return 4 }, rows); err != nil {
			t.Errorf("%q: got %v; want err == nil", keys, err)
		}
		if got := strings.Fields(screen.All()); !slices.Equal(got, rows[:want]) {
			t.Errorf("%q shows %q, want %d rows", keys, got, want)
		}
		if rest, err := typed.Read(t.Context(), 0); string(rest) != "Q" && want != 8 || err != nil {
			t.Errorf("%q: left to the next reader is %q, %v", keys, rest, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ShowPages(ctx, &Keys{}, io.Discard, func() int { return 4 }, rows); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := ShowPages(t.Context(), &Keys{}, io.Discard, func() int { return 40 }, rows); err != nil {
		t.Errorf("a page that fits: %v", err)
	}
}
