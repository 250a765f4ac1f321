package acp

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	tortureKills = flag.Int("torture-kills", 12, "how often the torture test kills Perlica")
	tortureSeed  = flag.Uint64("torture-seed", 0, "the torture test's seed; 0: by the clock")
)

// TestTorture kills Perlica at system calls and at random moments. Several processes get the same
// input at the same time. No input is called twice, each call has one outcome, and no agent
// survives.
func TestTorture(t *testing.T) {
	seed := *tortureSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	w := newWorld(t, nil, nil)
	w.stop()
	strace := straceable(t)
	var kills atomic.Int64
	inputs, done := 0, map[string]int{}
	for ; kills.Load() < int64(*tortureKills); inputs++ {
		id := fmt.Sprintf("input-%d", inputs)
		script := []string{asks, cancels, "@say <%s>\n@stream 300 100"}[rng.IntN(3)]
		var lives sync.WaitGroup
		for range 1 + rng.IntN(2) {
			var wrap []string
			call, nth, after := []string{"fsync", "write", "pwrite64"}[rng.IntN(3)], 1+rng.IntN(12),
				time.Duration(rng.IntN(90))*time.Millisecond
			traced := strace && rng.IntN(2) == 0
			if traced {
				wrap = []string{"strace", "-f", "-qq", "-o", filepath.Join(w.dir, "trace"), "-e", "trace=" + call, "-e",
					fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, nth)}
			}
			k := startKilled(t, w.dir, wrap...)
			lives.Go(func() {
				if !traced {
					defer time.AfterFunc(after, func() { _ = k.cmd.Process.Kill() }).Stop() // the process may have ended
				}
				k.turn(w.path("one"), id, script)
				if !k.end() {
					kills.Add(1)
				}
			})
		}
		lives.Wait()
		w.gone()
		k := startKilled(t, w.dir)
		m, ok := k.turn(w.path("one"), id, script)
		k.end()
		if !ok {
			t.Errorf("seed %d, %s: no answer at last: %s", seed, id, m.line)
		}
		done[became(m)]++
	}
	w.audit(inputs)
	t.Logf("seed %d: Perlica was killed %d times at %d inputs, which at last %v", seed, kills.Load(), inputs, done)
}

// straceable reports whether strace can inject faults into system calls here.
func straceable(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command("strace", "-f", "-o", filepath.Join(t.TempDir(), "probe"), "-e", "inject=getppid:error=EIO",
		"true").CombinedOutput()
	return err == nil && !bytes.Contains(out, []byte("strace:"))
}
