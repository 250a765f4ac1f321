package web

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFollowers checks that each of many followers receives every line of a flood once.
func TestFollowers(t *testing.T) {
	const followers, pieces = 50, 500
	w := newWorld(t, 1)
	w.ask(w.dirs[0], "@say begin") // creates a log to follow
	var all sync.WaitGroup
	streams := make([]*stream, followers)
	for i := range streams {
		streams[i] = w.follow("/v1/events", "")
		streams[i].next() // the stream is open, and the next events come after it
	}
	for _, s := range streams {
		all.Go(func() {
			defer s.close()
			last, texts := 0.0, 0
			for {
				e := s.event()
				if seq := e["seq"].(float64); !strings.HasPrefix(e["type"].(string), "session.") {
					if seq <= last {
						t.Errorf("%v comes behind %v", seq, last)
					}
					last = seq
				}
				if e["type"] == "text" {
					texts++
				}
				if e["type"] == "run.finished" {
					break
				}
			}
			if texts != pieces {
				t.Errorf("%d pieces came, want %d", texts, pieces)
			}
		})
	}
	began := time.Now()
	// this line is sent in parts
	w.ask(w.dirs[0], strings.Repeat("@say x\n", pieces-1)+"@say "+strings.Repeat("y", 2*batch))
	ran := time.Since(began)
	all.Wait()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("the run took %v, all had it after %v, %d MiB in use", ran, time.Since(began), m.HeapInuse>>20)
}
