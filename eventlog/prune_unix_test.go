//go:build unix

package eventlog

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// childPrune prunes a log. It kills itself at the failpoint with the name "at".
func childPrune(path, at string) {
	l, err := Open(context.Background(), path, Options{fail: func(point string) error {
		if point == at {
			return syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		}
		return nil
	}})
	if err != nil {
		panic(err)
	}
	if _, err := l.Prune(context.Background(), event.Pruning{Until: 13}); err != nil {
		panic(err)
	}
}

// TestKilledWhilePruning kills a process at each point of a pruning. The log must be intact, and the same call must
// finish the pruning.
func TestKilledWhilePruning(t *testing.T) {
	for _, point := range []string{"begin", "committed", "remove", "removed", "vacuumed"} {
		l, path := pruneLog(t)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := child(t, "prune", path)
		cmd.Env = append(cmd.Env, "EVENTLOG_TEST_POINT="+point)
		if err := cmd.Run(); err == nil || !killed(cmd) {
			t.Fatalf("%s: it was not killed: %v", point, err)
		}
		l, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		left := found(t, path, "[one:", "[two:", "[open:")
		if point == "begin" && left != "[one: [two: [open:" || !strings.Contains(left, "[open:") {
			t.Errorf("%s: in the files: %s", point, left)
		}
		intact(t, &l.Reader)
		done, err := l.Prune(t.Context(), event.Pruning{Until: 13})
		if err != nil || done.Resumed != (point != "begin") {
			t.Errorf("%s: again: %+v, %v", point, done, err)
		}
		if got := found(t, path, "[one:", "[two:"); got != "" {
			t.Errorf("%s: in the files: %s", point, got)
		}
		if said := len(collect(t, &l.Reader, event.Query{Types: []event.Type{event.LogPruned}})); said != 1 {
			t.Errorf("%s: %d events say so", point, said)
		}
		intact(t, &l.Reader)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func killed(cmd *exec.Cmd) bool {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signal() == syscall.SIGKILL
}
