package screen

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
)

// fakeClock runs timers when the test moves the clock.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[int]timer
	n      int
}

type timer struct {
	at time.Time
	f  func()
}

func newClock() *fakeClock {
	return &fakeClock{now: time.Unix(1e9, 0), timers: map[int]timer{}}
}

func (c *fakeClock) clock() Clock {
	return Clock{
		Now: func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now },
		AfterFunc: func(d time.Duration, f func()) func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.n++
			id := c.n
			c.timers[id] = timer{c.now.Add(d), f}
			return func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				_, ok := c.timers[id]
				delete(c.timers, id)
				return ok
			}
		},
		Sleep: c.advance,
	}
}

// advance moves the clock forward and stops at each timer that is due.
func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		next := -1
		for id, t := range c.timers {
			if !t.at.After(end) && (next < 0 || t.at.Before(c.timers[next].at)) {
				next = id
			}
		}
		if next < 0 {
			break
		}
		t := c.timers[next]
		delete(c.timers, next)
		c.now = t.at
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}

func (c *fakeClock) pending() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.timers) }

// screen has the output since the last call of take.
type screen struct{ bytes.Buffer }

func (s *screen) take() string { defer s.Reset(); return s.String() }

func want(t *testing.T, s *screen, text string) {
	t.Helper()
	if got := s.take(); got != text {
		t.Errorf("on the terminal: %q, want %q", got, text)
	}
}

const eraseLine = "\r\x1b[K"

func columns(n int) func() int { return func() int { return n } }

func TestStatusDrawsWhenSomethingChanged(t *testing.T) {
	var s screen
	c := newClock()
	st := NewStatusLine(&s, columns(80), Styles{}, c.clock())
	want(t, &s, "")
	st.Set("thinking")
	want(t, &s, "\rthinking 0s\x1b[K")
	st.Set("thinking")
	c.advance(900 * time.Millisecond)
	want(t, &s, "")
	c.advance(100 * time.Millisecond)
	want(t, &s, "\rthinking 1s\x1b[K")
	c.advance(3 * time.Second)
	want(t, &s, "\rthinking 2s\x1b[K\rthinking 3s\x1b[K\rthinking 4s\x1b[K")
	st.Clear()
	want(t, &s, eraseLine)
	if c.pending() != 0 {
		t.Errorf("%d timers while nothing is shown", c.pending())
	}
	c.advance(time.Hour)
	want(t, &s, "")
	st.Set("again")
	want(t, &s, "\ragain 1h00m\x1b[K")
	st.Clear()
	want(t, &s, eraseLine)
	c.advance(time.Minute)
	st.Restart()
	st.Set("another")
	want(t, &s, "\ranother 0s\x1b[K")
}

func TestStatusDrawsTenTimesASecond(t *testing.T) {
	var s screen
	c := newClock()
	st := NewStatusLine(&s, columns(80), Styles{}, c.clock())
	for i := range 1000 {
		st.Set(fmt.Sprint("step ", i))
		c.advance(time.Millisecond)
	}
	c.advance(100 * time.Millisecond)
	got := s.take()
	if n := strings.Count(got, "\r"); n < 9 || n > 12 {
		t.Errorf("%d drawings in a second", n)
	}
	if !strings.HasSuffix(got, "\rstep 999 1s\x1b[K") {
		t.Errorf("the last text is not shown: %q", got)
	}
}

func TestStatusGivesWayToOutput(t *testing.T) {
	var s screen
	c := newClock()
	st := NewStatusLine(&s, columns(80), Styles{}, c.clock())
	out := st.Through(&s)
	st.Set("x")
	c.advance(500 * time.Millisecond)
	s.take()
	st.Print(func(w io.Writer) { io.WriteString(w, "warning\n") })
	want(t, &s, eraseLine+"warning\n"+"\rx 0s\x1b[K")
	c.advance(100 * time.Millisecond)
	io.WriteString(out, "half a ")
	want(t, &s, eraseLine+"half a ")
	st.Set("y")
	c.advance(5 * time.Second)
	want(t, &s, "") // The status line must not be drawn within another line.
	io.WriteString(out, "line\n")
	want(t, &s, "line\n\ry 5s\x1b[K")
	io.WriteString(out, "other")
	st.Print(func(w io.Writer) { io.WriteString(w, "note\n") })
	want(t, &s, eraseLine+"other\nnote\n")
	c.advance(time.Second)
	want(t, &s, "\ry 5s\x1b[K\ry 6s\x1b[K")
	st.Close()
	st.Set("z")
	st.Print(func(w io.Writer) { io.WriteString(w, "end\n") })
	c.advance(time.Minute)
	want(t, &s, eraseLine+"end\n")
	if c.pending() != 0 {
		t.Errorf("%d timers after Close", c.pending())
	}
}

func TestStatusFitsTheTerminal(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("long ", 30), strings.Repeat("中文", 40),
		strings.Repeat("👩\u200d💻", 30), strings.Repeat("e\u0301", 50), "one\ntwo\x1b[31m"} {
		for width := range 40 {
			var s screen
			st := NewStatusLine(&s, columns(width), Styles{}, newClock().clock())
			st.Set(text)
			line := strings.TrimSuffix(strings.TrimPrefix(s.take(), "\r"), "\x1b[K")
			if w := runewidth.StringWidth(line); w > max(width-1, 0) || strings.ContainsAny(line, "\n\x1b") {
				t.Errorf("%q at %d columns: %q is %d wide", text, width, line, w)
			}
		}
	}
	var s screen
	st := NewStatusLine(&s, columns(12), Styles{on: true}, newClock().clock())
	st.Set("中文中文中文")
	want(t, &s, "\r中文中…"+" \x1b[2m0s\x1b[22m\x1b[K")
}

// TestStatusStepsAside checks that nothing is drawn while another program uses the terminal.
func TestStatusStepsAside(t *testing.T) {
	var s screen
	c := newClock()
	st := NewStatusLine(&s, columns(80), Styles{}, c.clock())
	st.Set("x")
	want(t, &s, "\rx 0s\x1b[K")
	st.Aside(func() {
		want(t, &s, eraseLine)
		st.Set("y")
		st.Redraw()
		c.advance(3 * time.Second)
		want(t, &s, "")
		if c.pending() != 0 {
			t.Errorf("%d timers in between", c.pending())
		}
		st.Print(func(w io.Writer) { io.WriteString(w, "note\n") })
		want(t, &s, "note\n")
	})
	want(t, &s, "\ry 3s\x1b[K")
	st.Redraw() // The caller needs Redraw if another program has used the terminal without Aside.
	want(t, &s, "\ry 3s\x1b[K")
	st.Close()
	st.Aside(func() {})
	want(t, &s, eraseLine)
}

// TestStatusOnANarrowerTerminal checks that all rows of a status line are cleared after the terminal has broken it.
func TestStatusOnANarrowerTerminal(t *testing.T) {
	var s screen
	c := newClock()
	width := 80
	st := NewStatusLine(&s, func() int { return width }, Styles{on: true}, c.clock())
	st.Set(strings.Repeat("中", 20) + " and more") // The text has 49 columns. With a blank and the duration it has 52.
	s.take()
	width = 26 // The line now needs two rows.
	st.Resized()
	want(t, &s, "")
	c.advance(settleFor)
	want(t, &s, "\r\x1b[1A"+strings.Repeat("中", 10)+"… \x1b[2m0s\x1b[22m\x1b[J")
	width = 5
	c.advance(900 * time.Millisecond) // The next drawing notices the new width.
	want(t, &s, "")
	c.advance(settleFor)
	want(t, &s, "\r\x1b[5A… \x1b[2m1s\x1b[22m\x1b[J")
	width = 80
	c.advance(time.Second)
	s.take()
	width = 51
	st.Print(func(w io.Writer) { io.WriteString(w, "note\n") })
	if got := s.take(); !strings.HasPrefix(got, "\r\x1b[1A中") || !strings.HasSuffix(got, "\x1b[J\r\x1b[Knote\n") {
		t.Errorf("on the terminal: %q", got)
	}
	c.advance(redrawEvery)
	s.take()
	width = 0 // The width is unknown.
	st.Clear()
	want(t, &s, eraseLine)
}

func TestStatusOff(t *testing.T) {
	var s screen
	c := newClock()
	st := NewStatusLine(&s, nil, Styles{}, c.clock())
	st.Set("x")
	st.Print(func(w io.Writer) { io.WriteString(w, "warning\n") })
	c.advance(time.Minute)
	st.Close()
	want(t, &s, "warning\n")
}

func TestStatusConcurrently(t *testing.T) {
	var s screen
	st := NewStatusLine(&s, columns(80), Styles{}, SystemClock())
	out := st.Through(&s)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				st.Set(fmt.Sprint(g, i))
				st.Print(func(w io.Writer) { io.WriteString(w, "p\n") })
				io.WriteString(out, "o\n")
			}
		})
	}
	wg.Wait()
	st.Close()
	if got := s.String(); strings.Count(got, "p\n") != 800 || strings.Count(got, "o\n") != 800 {
		t.Error("output was lost")
	}
}
