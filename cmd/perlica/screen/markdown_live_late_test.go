package screen_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/cmd/perlica/screen"
)

// resizeLate changes the size of the terminal as tmux does. tmux reports a new size at once if it has reported no
// other size within the last quarter of a second. Otherwise it reports the new size a quarter of a second later.
func (s *testStream) resizeLate(columns, rows int) {
	s.resized = s.now
	s.screen.Resize(columns, rows)
	s.late = [2]int{columns, rows}
	if s.telling {
		return
	}
	s.tell()
}

func (s *testStream) tell() {
	if s.late == [2]int{s.columns, s.rows} {
		return
	}
	s.columns, s.rows, s.telling = s.late[0], s.late[1], true
	s.status.Resized()
	s.timers = append(s.timers, &testTimer{s.now.Add(250 * time.Millisecond), func() {
		s.telling = false
		s.tell()
	}})
}

// seeds returns the number of random runs of a test. With -short, as with the race detector, there are fewer.
func seeds() uint64 {
	if testing.Short() {
		return 5
	}
	return 40
}

// TestLiveResizeLate uses a terminal that repeatedly reports its size late. The whole text must be shown once, and
// the text above it must stay.
func TestLiveResizeLate(t *testing.T) {
	for seed := range seeds() {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := newTestStream(screen.Styles{}, 100, 30)
		s.status.Print(func(w io.Writer) { _, _ = io.WriteString(w, "above\n") })
		s.sayLate(t, rnd, numbered(600, func(i int) string { return map[bool]string{true: " 中，\n", false: " "}[i%9 == 0] }))
		all := strings.Join(strings.Fields(strings.ReplaceAll(s.screen.All(), "中，", "")), "") + "w"
		for i := range 600 {
			if n := strings.Count(all, fmt.Sprintf("w%dw", i)); n != 1 {
				t.Errorf("seed %d: w%d is shown %d times", seed, i, n)
			}
		}
		if n := strings.Count(all, "above"); n != 1 || strings.Contains(all, "working") {
			t.Errorf("seed %d: what stood above is shown %d times", seed, n)
		}
		if t.Failed() {
			t.Fatalf("got %v; want !t.Failed()", s.screen.All())
		}
	}
}

// TestLiveResizeInFlight lets output arrive after the size has changed. Rows may then be shown twice, but no text
// may be lost.
func TestLiveResizeInFlight(t *testing.T) {
	twice := 0
	for seed := range seeds() {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := newTestStream(screen.Styles{}, 100, 30)
		s.status.Print(func(w io.Writer) { _, _ = io.WriteString(w, "above\n") })
		s.slow = true
		s.sayLate(t, rnd, numbered(600, func(i int) string { return map[bool]string{true: " 中，\n", false: " "}[i%9 == 0] }))
		all := strings.Join(strings.Fields(strings.ReplaceAll(s.screen.All(), "中，", "")), "") + "w"
		for i := range 600 {
			n := strings.Count(all, fmt.Sprintf("w%dw", i))
			if n < 1 {
				t.Errorf("seed %d: w%d is lost", seed, i)
			}
			twice += min(max(n-1, 0), 1)
		}
		if strings.Count(all, "above") != 1 {
			t.Errorf("seed %d: what stood above is lost", seed)
		}
		if t.Failed() {
			t.Fatalf("got %v; want !t.Failed()", s.screen.All())
		}
	}
	t.Logf("%d of %d words are there twice", twice, 600*seeds())
}

// sayLate writes a text while the size of the terminal changes at random.
func (s *testStream) sayLate(t *testing.T, rnd *rand.Rand, text string) {
	t.Helper()
	for i := 0; text != ""; i++ {
		n := min(7, len(text))
		if s.slow && len(s.flight) > 0 && s.now.Sub(s.resized) > time.Second || !s.slow && i%120 < 40 && rnd.IntN(10) == 0 {
			s.resizeLate(31+rnd.IntN(90), 12+rnd.IntN(30))
		}
		for j := range 10 {
			if j == 1 {
				s.land() // The change of the size may also come before the output arrives.
			}
			s.pass(time.Duration(rnd.IntN(6)) * time.Millisecond)
		}
		if _, err := s.MarkdownStream.Write([]byte(text[:n])); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	s.pass(time.Second)
	s.end(t)
	s.land()
}
