package policy

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

func FuzzHang(f *testing.F) {
	for _, list := range tiers {
		for c := range strings.SplitSeq(list, "\n") {
			f.Add(c)
		}
	}
	f.Fuzz(func(t *testing.T, c string) {
		done := make(chan bool)
		go func() { Classify(c, at); canonical(c); simpleCalls(c, at); close(done) }()
		select {
		case <-done:
		case <-time.After(3 * time.Second):
			buf := make([]byte, 1<<20)
			n := runtime.Stack(buf, true)
			t.Fatalf("%q\n%s", c, buf[:n])
		}
	})
}
