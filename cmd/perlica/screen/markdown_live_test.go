package screen_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/cmd/perlica/screen/screentest"
)

// testStream is a live stream on a terminal with a status line. The test moves the clock of the status line.
type testStream struct {
	*screen.MarkdownStream
	screen        *screentest.Terminal
	status        *screen.StatusLine
	columns, rows int
	now           time.Time
	timers        []*testTimer
	writes        int
	late          [2]int // the real size of the terminal; s learns it later
	resized       time.Time
	telling       bool   // true for a quarter of a second after a size was reported
	slow          bool   // Output arrives with the next write, or a little later.
	flight        []byte // output that has not arrived at the terminal yet
}

type testTimer struct {
	at time.Time
	f  func()
}

func (s *testStream) Write(p []byte) (int, error) {
	s.writes++
	if s.slow {
		s.land()
		s.flight = slices.Clone(p)
		return len(p), nil
	}
	return s.screen.Write(p)
}

// land lets the rest of the output arrive at the terminal.
func (s *testStream) land() {
	_, _ = s.screen.Write(s.flight)
	s.flight = nil
}

func newTestStream(styles screen.Styles, columns, rows int) *testStream {
	s := &testStream{screen: screentest.New(columns, rows), columns: columns, rows: rows, now: time.Unix(1e9, 0)}
	clock := screen.Clock{
		Now: func() time.Time { return s.now },
		AfterFunc: func(d time.Duration, f func()) func() bool {
			t := &testTimer{s.now.Add(d), f}
			s.timers = append(s.timers, t)
			return func() bool {
				at := slices.Index(s.timers, t)
				if at >= 0 {
					s.timers = slices.Delete(s.timers, at, at+1)
				}
				return at >= 0
			}
		},
		Sleep: s.pass,
	}
	s.status = screen.NewStatusLine(s, func() int { return s.columns }, styles, clock)
	s.MarkdownStream = screen.NewLiveMarkdownStream(s, s.status, styles, func() (int, int) { return s.columns, s.rows })
	s.status.Set("working")
	return s
}

// pass moves the clock forward and runs the timers that become due.
func (s *testStream) pass(d time.Duration) {
	s.now = s.now.Add(d)
	for {
		i := slices.IndexFunc(s.timers, func(t *testTimer) bool { return !t.at.After(s.now) })
		if i < 0 {
			return
		}
		t := s.timers[i]
		s.timers = slices.Delete(s.timers, i, i+1)
		t.f()
	}
}

// say writes text in parts of step bytes. Before each part the clock moves by 50 ms.
func (s *testStream) say(t *testing.T, text string, step int) {
	t.Helper()
	for text != "" {
		n := min(step, len(text))
		s.pass(50 * time.Millisecond)
		if _, err := s.MarkdownStream.Write([]byte(text[:n])); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
}

// end finishes the answer and clears the status line.
func (s *testStream) end(t *testing.T) {
	t.Helper()
	if err := s.MarkdownStream.Flush(); err != nil {
		t.Fatal(err)
	}
	s.status.Clear()
	if len(s.screen.Strange) > 0 {
		t.Errorf("it was sent %q", s.screen.Strange)
	}
}

func (s *testStream) resize(columns, rows int) {
	s.columns, s.rows = columns, rows
	s.screen.Resize(columns, rows)
	s.status.Resized()
}

const sample = "# 标题 Title\n\nSome **bold text that is long enough to be wrapped at sixty columns** and `code`, " +
	"中文也是一样：这里有很多字，一行放不下，所以要折行。\n\n" +
	"| name | 说明 |\n|---|---|\n| one | says **hello** |\n| a longer name | 中文说明 |\n\n" +
	"- [ ] to do\n- [x] ~~done~~\n  1. nested\n  2. 列表\n\n```go\nfunc main() {\n\tx := \"中文\"\n}\n```\n\n" +
	"> quoted\n> text\n\nThe end, *really*.\n"

var widths = []int{60, 80, 200}

// TestLiveEndsAsBlocks cuts a text into pieces. The final screen must be the same as after a single RenderMarkdown.
func TestLiveEndsAsBlocks(t *testing.T) {
	for _, styles := range []screen.Styles{{}, screen.NewStyles(colors, true)} {
		for _, columns := range widths {
			for _, step := range []int{1, 7, 1000} {
				t.Run(fmt.Sprint(styles.On(), columns, step), func(t *testing.T) {
					s := newTestStream(styles, columns, 50)
					s.say(t, sample, step)
					s.end(t)
					want := screentest.New(columns, 50)
					_, _ = io.WriteString(want, screen.RenderMarkdown(sample, styles, columns))
					if got := s.screen.All(); got != want.All() {
						t.Errorf("it shows\n%s\nwant\n%s", got, want.All())
					}
				})
			}
		}
	}
}

// TestLive checks the screen after each piece of a text. A new piece can change the look of earlier text.
func TestLive(t *testing.T) {
	s := newTestStream(screen.NewStyles(colors, true), 60, 20)
	for _, c := range []struct{ piece, screen string }{
		{"Some", "Some\nworking 0s"},
		{" **bo", "Some **bo\nworking 0s"},
		{"ld** 中", "Some bold 中\nworking 0s"},
		{"文\n\n", "Some bold 中文\nworking 0s"},
		{"| a | b |\n", "Some bold 中文\n\n| a | b |\nworking 0s"},
		{"|---|---|\n", "Some bold 中文\n\na │ b\n──┼──\nworking 0s"},
		{"| long | x", "Some bold 中文\n\na    │ b\n─────┼──\nlong │ x\nworking 0s"},
		{" |\n\nTitle", "Some bold 中文\n\na    │ b\n─────┼──\nlong │ x\n\nTitle\nworking 0s"},
		{"\n---\n\n```\n\tx := 1",
			"Some bold 中文\n\na    │ b\n─────┼──\nlong │ x\n\nTitle\n\n```\n        x := 1\nworking 0s"},
	} {
		s.say(t, c.piece, len(c.piece))
		if got := strings.TrimRight(strings.Join(s.screen.Screen(), "\n"), "\n"); got != c.screen {
			t.Errorf("after %q it shows\n%s\nwant\n%s", c.piece, got, c.screen)
		}
	}
	s.end(t)
}

// TestLiveTwentyTimes checks that a live stream is drawn about twenty times a second, however often text comes.
func TestLiveTwentyTimes(t *testing.T) {
	s := newTestStream(screen.Styles{}, 80, 20)
	s.writes = 0
	for range 1000 { // The loop lasts one second.
		s.pass(time.Millisecond)
		_, _ = io.WriteString(s.MarkdownStream, "word ")
	}
	if s.writes > 21 || s.writes < 15 {
		t.Errorf("drawn %d times in a second", s.writes)
	}
	s.end(t)
	if got := strings.Count(s.screen.All(), "word"); got != 1000 {
		t.Errorf("%d words of 1000", got)
	}
}

// numbered returns a text of n different words. The function between returns the text after word i.
func numbered(n int, between func(i int) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d%s", i, between(i))
	}
	return b.String()
}

// TestLiveLongerThanTheScreen shows texts that do not fit on the screen. Each word must be shown once. Text that has
// left the screen must not change.
func TestLiveLongerThanTheScreen(t *testing.T) {
	for name, text := range map[string]string{
		"one line": numbered(700, func(int) string { return " " }),
		"lines":    numbered(700, func(i int) string { return map[bool]string{true: "\n", false: " "}[i%9 == 8] }),
		"emphasis": "**" + numbered(300, func(int) string { return " " }) + "x** and " +
			numbered(300, func(int) string { return " y" }),
		"list": "- " + numbered(700, func(i int) string {
			return map[bool]string{true: "\n  - ",
				false: " "}[i%12 == 11]
		}),
		"list with code": "- a\n\n  ```\n" + numbered(300,
			func(i int) string { return map[bool]string{true: "\n  ", false: " "}[i%5 == 4] }) + "\n  ```\n- b\n",
		"quote": "> " + numbered(700, func(i int) string {
			return map[bool]string{true: "\n> ",
				false: " "}[i%9 == 8]
		}),
		"Chinese":      "中文" + numbered(400, func(int) string { return "字，" }),
		"no blanks":    numbered(700, func(int) string { return "_" }),
		"line of code": "```\n" + numbered(700, func(int) string { return "_" }) + "\n```\n",
	} {
		for _, columns := range widths {
			t.Run(fmt.Sprint(name, columns), func(t *testing.T) {
				s := newTestStream(screen.NewStyles(colors, true), columns, 12)
				history := ""
				for i := 0; i < len(text); i += 97 {
					s.say(t, text[i:min(i+97, len(text))], 97)
					if now := s.screen.History(); history != "\n" && !strings.HasPrefix(now, strings.TrimSuffix(history, "\n")) {
						t.Fatalf("what has left the screen was\n%s\nand is\n%s", history, now)
					} else {
						history = now
					}
				}
				s.end(t)
				all := strings.NewReplacer("\n", " ").Replace(s.screen.All())
				if strings.Contains(name, "no blanks") || strings.Contains(name, "of code") {
					all = s.screen.All() // The text must be shown without line breaks, so that it can be copied.
				}
				at := 0
				for i := 0; strings.Contains(text, fmt.Sprintf("w%d", i)); i++ {
					n := strings.Index(all[at:], fmt.Sprintf("w%d", i))
					if n < 0 {
						t.Fatalf("w%d is lost:\n%s", i, s.screen.All())
					}
					at += n + 1
				}
				if n, want := strings.Count(all, "w"), strings.Count(text, "w"); n != want {
					t.Errorf("%d words, want %d:\n%s", n, want, s.screen.All())
				}
			})
		}
	}
}

// TestLiveTable checks that the widths of the columns of a long table do not change.
func TestLiveTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| n | what |\n|---|---|\n")
	for i := range 100 {
		fmt.Fprintf(&b, "| %d | %s |\n", i, strings.Repeat("中", i/4))
	}
	s := newTestStream(screen.Styles{}, 60, 15)
	s.say(t, b.String(), 10)
	s.end(t)
	last := -1
	for row := range strings.Lines(s.screen.All()) {
		var n int
		if _, err := fmt.Sscanf(row, "%d │", &n); err == nil {
			if n != last+1 {
				t.Errorf("row %d follows %d", n, last)
			}
			last = n
		} else if strings.Contains(row, "|") {
			t.Errorf("no column: %q", row)
		}
	}
	if last != 99 {
		t.Errorf("the last row is %d", last)
	}
}

// TestLiveResize changes the size of the terminal while a text is written. The whole text must be shown once.
func TestLiveResize(t *testing.T) {
	for _, sizes := range [][][2]int{
		{{80, 20}, {60, 20}, {200, 20}, {60, 20}},
		{{200, 30}, {80, 10}, {60, 30}},
		{{60, 10}, {200, 40}, {80, 8}},
	} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			s := newTestStream(screen.NewStyles(colors, true), sizes[0][0], sizes[0][1])
			text := "Before.\n\n- " + numbered(400,
				func(i int) string { return map[bool]string{true: " 中文，", false: " "}[i%7 == 0] })
			part := len(text)/len(sizes) + 1
			for i, size := range sizes {
				if i > 0 {
					s.resize(size[0], size[1])
				}
				piece := text[min(i*part, len(text)):min((i+1)*part, len(text))]
				s.say(t, piece, 50)
			}
			s.end(t)
			all := s.screen.All()
			for i := range 400 {
				if n := strings.Count(strings.Join(strings.Fields(all), "  ")+" ", fmt.Sprintf("w%d ", i)); n < 1 {
					t.Errorf("w%d is shown %d times", i, n)
				}
			}
			if n := strings.Count(all, "w"); n > 400+200 {
				t.Errorf("%d words, want 400 and no more than a screen again:\n%s", n, all)
			}
			if !strings.HasPrefix(all, "Before.\n\n• w0") {
				t.Errorf("it begins %q", all[:40])
			}
			if strings.Contains(all, "working") {
				t.Errorf("there is a piece of the status line:\n%s", all)
			}
		})
	}
}

// TestLiveFullScreen fills the screen with text that may change. The text must be shown once, also after a note
// above it and after a change of the size. Some terminals, such as tmux, copy a cleared screen into the history.
func TestLiveFullScreen(t *testing.T) {
	for name, disturb := range map[string]func(s *testStream){
		"note":   func(s *testStream) { s.status.Print(func(w io.Writer) { _, _ = io.WriteString(w, "a note\n") }) },
		"narrow": func(s *testStream) { s.resize(53, 12) },
		"high":   func(s *testStream) { s.resize(80, 8); s.resize(60, 20) },
		"low":    func(s *testStream) { s.resize(100, 7) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestStream(screen.Styles{}, 80, 12)
			text := "- " + numbered(400, func(i int) string { return map[bool]string{true: " 中，", false: " "}[i%7 == 0] })
			s.say(t, text[:2000], 50)
			disturb(s)
			s.say(t, text[2000:], 50)
			s.end(t)
			all := strings.NewReplacer("a note", "", "中，", "").Replace(s.screen.All())
			all = strings.Join(strings.Fields(all), "") + "w"
			for i := range 400 {
				if n := strings.Count(all, fmt.Sprintf("w%dw", i)); n != 1 {
					t.Errorf("w%d is shown %d times", i, n)
				}
			}
			if t.Failed() {
				t.Log(s.screen.All())
			}
		})
	}
}
