package screen

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perlica/perlica/cmd/perlica/screen/screentest"
)

// TestCanvasOnANarrowerTerminal makes the terminal narrower while the cursor stands at each place of the line. The
// screen must show the line once.
func TestCanvasOnANarrowerTerminal(t *testing.T) {
	text := []rune(strings.Repeat("中文 and more, ", 9)) // 126 columns
	for _, columns := range []int{7, 20, 33, 41, 60} {
		for pos := range len(text) + 1 {
			width, screen := 80, screentest.New(80, 40)
			c := canvas{w: screen, size: func() (int, int) { return width, 40 }}
			_, _ = screen.Write([]byte("above\n"))
			c.drawRows(Styles{}.Bold("prompt ❯ "), text, pos)
			width = columns
			screen.Resize(columns, 40)
			c.drawRows("prompt ❯ ", text, pos)
			want := "above\n" + strings.Join(layoutRows("prompt ❯ ", text, columns), "\n") + "\n"
			got := screen.All()
			if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
				t.Fatalf("%d columns, cursor at %d: it shows\n%s\nwant\n%s", columns, pos, got, want)
			}
		}
	}
}

func layoutRows(prompt string, text []rune, columns int) []string {
	rows, _, _ := layout(prompt, text, 0, columns-1)
	return rows
}

// TestResized changes the size of the terminal several times. Nothing may be drawn until the size has settled. Then
// the screen must show the line once, below the text that Above has written.
func TestResized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, screen := 80, screentest.New(80, 20)
		size := func() (int, int) { return told, 20 }
		e := Editor{o: EditorOptions{Out: screen, Size: size}, canvas: canvas{w: screen, size: size}}
		e.active, e.prompt, e.text = true, func() string { return "> " }, []rune(strings.Repeat("word ", 14))
		e.pos = len(e.text)
		_, _ = screen.Write([]byte("first\n"))
		e.Redraw(false)
		// The terminal reports the first size at once, and the last size later.
		for _, columns := range []int{30, 70, 25, 40} {
			e.mu.Lock()
			screen.Resize(columns, 20)
			says := told == 80
			if says {
				told = columns
			}
			e.text[0] = 'W' // This changes the line like a typed key.
			e.mu.Unlock()
			if says {
				e.Resized()
			}
			e.Redraw(false)
			if columns == 25 {
				go e.Above("second\n")
			}
			<-time.After(50 * time.Millisecond)
		}
		e.mu.Lock()
		told = 40
		e.mu.Unlock()
		e.Resized()
		<-time.After(time.Second)
		synctest.Wait()
		e.mu.Lock()
		defer e.mu.Unlock()
		if got, want := strings.ReplaceAll(screen.All(), " ", ""),
			"first\nsecond\n"+strings.ReplaceAll(strings.Join(layoutRows("> ", e.text, 40), "\n"), " ", "")+"\n"; got != want {
			t.Errorf("it shows\n%s\nwant\n%s", got, want)
		}
	})
}
