package eventlog

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perlica/perlica/eventlog/anchor"
)

// points records a writer and returns some of its system calls. These calls changed its folder or acknowledged
// events.
func points(t *testing.T, s script) []syscallPoint {
	t.Helper()
	dir := quickDir(t)
	s.Path = filepath.Join(dir, logName)
	r := newRecorder(dir)
	if _, failed := said(r.performTraced(t, s)); failed != "" {
		t.Fatal(failed)
	}
	return r.points
}

// A disturbance is a fault that strace injects at one system call of a writer.
type disturbance struct {
	syscallPoint
	what string // "signal=KILL" or "error=EIO"
	// file limits the counted calls to one file. Empty means that all calls are counted.
	file string
}

// sample returns n of the disturbances. They are spread evenly over the calls, and the seed chooses them.
func sample(all []disturbance, n int) []disturbance {
	byText := func(a, b disturbance) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	slices.SortFunc(all, byText)
	all = slices.Compact(all) // each thread counts its own calls, so some are equal
	rand.New(rand.NewPCG(*tortureSeed, 3)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	order, count := map[disturbance]int{}, map[string]int{}
	for _, d := range all {
		order[d] = count[d.call]
		count[d.call]++
	}
	slices.SortStableFunc(all, func(a, b disturbance) int { return cmp.Compare(order[a], order[b]) })
	return all[:min(n, len(all))]
}

// performDisturbed runs the script s with the disturbance in a new folder and checks the log.
func (d disturbance) performDisturbed(t *testing.T, s script, dir string) (hit, killed bool, failed string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return false, false, "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // saves space early; the parent folder is removed later
	s.Path = filepath.Join(dir, logName)
	trace := filepath.Join(dir, "trace")
	cmd := s.command(t, "strace", "-f", "-o", trace,
		"-e", "trace="+d.call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", d.call, d.what, d.nth))
	if d.file != "" {
		cmd.Args = slices.Insert(cmd.Args, 1, "-P", filepath.Join(dir, d.file))
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if stderr.Len() > 0 {
		return false, false, "", fmt.Errorf("strace: %w, %.200s", err, &stderr)
	}
	seen, err := os.ReadFile(trace)
	if err != nil {
		return false, false, "", err
	}
	killed = !bytes.Contains(out, []byte("PASS"))
	acked, failed := said(out)
	_, err = checkLog(s.Path, acked, tell(s))
	return killed || bytes.Contains(seen, []byte("(INJECTED)")), killed, failed, err
}

// performAll runs the script s with each disturbance and counts the results.
func performAll(t *testing.T, s script, all []disturbance) {
	t.Helper()
	dir := quickDir(t)
	var mu sync.Mutex // guards the variables below
	hits, killed, failed, unhurt := 0, 0, 0, 0
	calls, queue := map[string]int{}, make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range queue {
				d := all[i]
				hit, dead, gaveUp, err := d.performDisturbed(t, s, filepath.Join(dir, fmt.Sprint(i)))
				mu.Lock()
				if hit {
					hits++
				}
				switch {
				case dead:
					killed++
				case gaveUp != "":
					failed++
				default:
					unhurt++
				}
				calls[d.call]++
				if err != nil {
					t.Errorf("%s at %s %d: %v (writer: %q)", d.what, d.call, d.nth, err, gaveUp)
				}
				mu.Unlock()
			}
		})
	}
	for i := range all {
		queue <- i
	}
	close(queue)
	wg.Wait()
	var of []string
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		of = append(of, fmt.Sprintf("%s %d", call, calls[call]))
	}
	t.Logf("seed %d: %d of %d disturbances took place: %d writers killed, %d gave up, %d went on; %s",
		*tortureSeed, hits, len(all), killed, failed, unhurt, strings.Join(of, ", "))
	if hits < len(all)/2 { // Some are missed: threads change, and strace counts by thread.
		t.Error("most did not: strace does not do what it is told")
	}
}

// TestTortureKill kills a writer at the beginning of each system call of an append. This covers the states before and
// after every call.
func TestTortureKill(t *testing.T) {
	straceable(t)
	s := script{Seed: *tortureSeed, Runs: 3, Keys: signingKeys(t)}
	var all []disturbance
	for _, p := range points(t, s) {
		all = append(all, disturbance{p, "signal=KILL", ""})
	}
	performAll(t, s, sample(all, max(*tortureStates/12, 20)))
}

// TestTortureErrors lets each system call of an append fail without an effect. A call that fails after its effect needs
// no separate test, because the writer stops in both cases. TestTortureStates covers a failed sync.
func TestTortureErrors(t *testing.T) {
	straceable(t)
	s := script{Seed: *tortureSeed, Runs: 3, Keys: signingKeys(t)}
	var all []disturbance
	writes := 0
	for _, p := range points(t, s) {
		d := disturbance{p, "error=EIO", ""}
		switch {
		case p.ack: // no process read the output
			continue
		case p.call == "write": // Go's runtime also writes, and such a fault ends the process
			writes++
			d.nth, d.file = writes, filepath.Base(anchor.Path(logName))
		}
		all = append(all, d)
		if strings.Contains(p.call, "write") {
			d.what = "error=ENOSPC"
			all = append(all, d)
		}
	}
	performAll(t, s, sample(all, max(*tortureStates/12, 20)))
}
