package team

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

var (
	copyEvents = flag.Int("copy-events", 20_000, "how many events the copy of BenchmarkKeeper has")
)

// workerProcess runs a worker as a separate process. The parameter "atClaim" names the signal that the process sends to
// itself between its first claim and the intent.
func workerProcess(url, dir, atClaim string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for {
		err := work(ctx, url, dir, atClaim)
		if err == nil || !strings.Contains(err.Error(), "hub: ") {
			return err
		}
		select { // the server was killed while the worker began; begin again as a service manager does
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}

// work takes inputs until ctx ends.
func work(ctx context.Context, url, dir, atClaim string) error {
	j, err := Open(ctx, Options{URL: url, Dir: dir, Environ: os.Environ(), Version: "test"})
	if err != nil {
		return err
	}
	var once sync.Once
	w, err := NewWorker(ctx, j, WorkerOptions{Slots: 2, Projects: map[string]string{"website": dir}, Note: func(s string) {
		fmt.Fprintln(os.Stderr, s)
		if sig := map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP}[atClaim]; sig != 0 &&
			strings.Contains(s, ": from ") {
			once.Do(func() { _ = syscall.Kill(os.Getpid(), sig) }) // the process signals itself
		}
	}})
	if err != nil {
		return err
	}
	return w.Run(ctx, context.Background())
}

// start starts a worker's process, which ends with the test.
func (m machine) start(t testing.TB, atClaim string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], "work", m.opt.URL, m.dir, atClaim)
	c.Env, c.Dir, c.Stderr = m.opt.Environ, m.dir, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // the process may have ended
		_ = c.Wait()
	})
	return c
}

func kill(t testing.TB, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the process was killed
}

// until waits for a condition, for a limited time.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !is(); {
		if time.Now().After(end) {
			t.Fatalf("it never came to that: %s", what)
		}
	}
}

// stateOf returns the state of an input. It is "" while the hub cannot be reached.
func stateOf(j *Team, id string) string {
	s, _, _ := j.Hub.Status(context.Background(), id) // after an error, the caller asks again
	return s.State
}

// TestDeaths checks the table of docs/team.md with processes that are killed and stopped at its
// points.
func TestDeaths(t *testing.T) {
	s, db := hubtest.Shared(t)
	m, alice := founded(t, s, db)

	// The worker dies between claim and intent. Its next start continues.
	submit(t, alice, asks("before", "@say Once"))
	if err := m.start(t, "kill").Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	if st := stateOf(alice, "before"); st != hub.Claimed || calls(t, alice, "before") != 0 {
		t.Fatalf("%s, %d calls", st, calls(t, alice, "before"))
	}
	c := m.start(t, "")
	if st := ended(t, alice, "before", nil); st.State != "responded" || calls(t, alice, "before") != 1 {
		t.Errorf("%s, %d calls", st.State, calls(t, alice, "before"))
	}

	// The worker dies after the intent. The outcome is unknown.
	submit(t, alice, asks("after", "@hang"))
	until(t, "the call is under way", func() bool { return calls(t, alice, "after") == 1 })
	kill(t, c)
	c = m.start(t, "")
	if st := ended(t, alice, "after", nil); st.State != "outcome_unknown" || calls(t, alice, "after") != 1 {
		t.Errorf("%s, %d calls", st.State, calls(t, alice, "after"))
	}
	kill(t, c)

	// The process stops between claim and intent. Another process of this worker runs in the
	// meantime, and the hub is adopted.
	submit(t, alice, asks("stopped", "@say Late"))
	stopped := m.start(t, "stop")
	until(t, "it is claimed", func() bool { return stateOf(alice, "stopped") == hub.Claimed })
	c = m.start(t, "")
	if _, err := alice.Adopt(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	submit(t, alice, asks("beside", "@say Beside"))
	if st := ended(t, alice, "beside", nil); st.State != "responded" {
		t.Error(st.State)
	}
	if st := stateOf(alice, "stopped"); st != hub.Adopted {
		t.Errorf("closed by the adoption: %s", st)
	}
	until(t, "it goes on", func() bool {
		_ = stopped.Process.Signal(syscall.SIGCONT) // the process may stop itself after this signal
		return stateOf(alice, "stopped") == "responded"
	})
	if n := calls(t, alice, "stopped"); n != 1 {
		t.Errorf("%d calls", n)
	}

	// After SIGTERM the worker takes nothing further and waits for running calls.
	submit(t, alice, asks("drained", "@sleep 1s\n@say Done"))
	until(t, "the call is under way", func() bool { return calls(t, alice, "drained") == 1 })
	for _, p := range []*exec.Cmd{c, stopped} {
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*exec.Cmd{c, stopped} {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	if st := stateOf(alice, "drained"); st != "responded" {
		t.Error(st)
	}
}

// TestHubDies checks that a call continues while the hub is gone and its outcome follows later. A
// submission is made once.
func TestHubDies(t *testing.T) {
	s := hubtest.Start(t)
	m, alice := founded(t, s, "postgres")
	m.start(t, "")
	submit(t, alice, asks("a", "@sleep 1s\n@say On"))
	until(t, "the call is under way", func() bool { return calls(t, alice, "a") == 1 })
	s.Kill()
	back := make(chan struct{})
	go func() {
		defer close(back)
		until(t, "the run is over", func() bool {
			open, err := alice.Log().OpenRuns(context.Background())
			return err == nil && len(open) == 0
		})
		s.Run(t)
	}()
	came, err := alice.Submit(t.Context(), []Draft{asks("b", "@say B")})
	<-back
	if err != nil || came["b"] != hub.New {
		t.Errorf("a submission while the hub was gone: %v, %v", came, err)
	}
	for _, id := range []string{"a", "b"} {
		if st := ended(t, alice, id, nil); st.State != "responded" || calls(t, alice, id) != 1 {
			t.Errorf("%s: %s, %d calls", id, st.State, calls(t, alice, id))
		}
	}
}
