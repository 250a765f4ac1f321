package flow

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/flow"
)

// TestGraphFits draws a graph at every width and in every height. Each row leaves the last column empty, and there are
// never more rows than room.
func TestGraphFits(t *testing.T) {
	g := &graph{outer: "one", runs: map[string][]row{}}
	for i := range 40 {
		g.runs["one"] = append(g.runs["one"], row{name: strings.Repeat("a_long_name_", i%6) + "x", depth: i % 12,
			phase: flow.Done, note: "流程 200 of 200; 3s; " + strings.Repeat("中文", i)})
	}
	g.runs["one"][20].phase, g.runs["one"][30].phase = flow.Running, flow.Failed
	g.runs["one"][25].inner = "one/inner"
	g.runs["one/inner"] = []row{{name: "within", phase: flow.Asked}}
	for columns := 2; columns <= 200; columns++ {
		for _, room := range []int{0, 1, 2, 3, 5, 23, 40, 41, 100} {
			rows := g.draw(columns, room)
			if len(rows) > room {
				t.Errorf("%d columns: got %d rows, want at most %d", columns, len(rows), room)
			}
			for _, r := range rows {
				if w := screen.TextWidth(r); w >= columns {
					t.Errorf("%d columns: a row has %d: %q", columns, w, r)
				}
			}
		}
	}
	rows := strings.Join(g.draw(80, 8), "\n")
	for _, want := range []string{"… 19 steps: 19 done\n", "▸ ", "… 16 steps: 1 failed, 1 asked, 14 done"} {
		if !strings.Contains(rows, want) {
			t.Errorf("there is no %q in\n%s", want, rows)
		}
	}
	if got := len(g.draw(80, 100)); got != 41 {
		t.Errorf("got %d rows, want 41", got)
	}
	g.hidden = 1
	if got := g.draw(80, 100); got != nil {
		t.Errorf("while a question is open: %q", got)
	}
}

// TestGraphWithoutColors checks that each phase has its own mark, so that the phases differ without colours.
func TestGraphWithoutColors(t *testing.T) {
	g := &graph{}
	seen := map[string]flow.Phase{}
	for _, p := range []flow.Phase{flow.Waiting, flow.Running, flow.Asked, flow.Unknown, flow.Done, flow.Failed,
		flow.Skipped} {
		text := g.lay([]row{{name: "a", phase: p}}, 80)[0]
		if want := fmt.Sprintf("%s a  %s", marks[p], p); text != want {
			t.Errorf("got %q, want %q", text, want)
		}
		if marks[p] == "" || seen[marks[p]] != "" {
			t.Errorf("%s and %s have the mark %q", p, seen[marks[p]], marks[p])
		}
		seen[marks[p]] = p
	}
}

// TestEndWhileDrawing ends the drawing while another goroutine reads the graph under the lock, as a change of the
// terminal's size does. The race detector reports it if the end changes the graph without the lock.
func TestEndWhileDrawing(t *testing.T) {
	status := screen.NewStatusLine(io.Discard, func() int { return 80 }, screen.Styles{}, screen.SystemClock())
	g := &graph{outer: "one", runs: map[string][]row{}}
	p := &printer{status: status, graph: g}
	p.live = screen.NewDrawing(io.Discard, status, func() int { return 24 }, g.draw)
	s := &flow.State{ID: "one", Flow: &flow.Flow{Name: "f"}}
	p.show(s, nil, -1)
	read, stop := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(read) })
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				p.change(func() { g.draw(80, 24) })
				begun()
			}
		}
	})
	<-read
	for range 100 {
		runtime.Gosched() // further reads follow, which this goroutine does not wait for
	}
	p.end(s)
	close(stop)
	wg.Wait()
	if err := status.Close(); err != nil {
		t.Error(err)
	}
}
