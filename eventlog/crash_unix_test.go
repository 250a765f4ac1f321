//go:build unix

package eventlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// TestMain runs the tests, or the part of a child process that EVENTLOG_TEST_CHILD names. The tests kill the child, or
// take its disk space away.
func TestMain(m *testing.M) {
	switch path := os.Getenv("EVENTLOG_TEST_FILE"); os.Getenv("EVENTLOG_TEST_CHILD") {
	case "append":
		childAppend(path)
	case "hold":
		childHold(path)
	case "full":
		childFull(path)
	case "prune":
		childPrune(path, os.Getenv("EVENTLOG_TEST_POINT"))
	case "import":
		childImport(path)
	case "anchor":
		childAnchor(path)
	case "crowd":
		childCrowd(path)
	default:
		os.Exit(m.Run())
	}
}

func child(t *testing.T, mode, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EVENTLOG_TEST_CHILD="+mode, "EVENTLOG_TEST_FILE="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// childAppend appends until it is killed, and prints each Seq after its acknowledgement.
func childAppend(path string) {
	l, err := Open(context.Background(), path, Options{Context: "default"})
	if err != nil {
		panic(err)
	}
	for {
		if err := l.Record(event.Event{Type: event.NotificationReceived, Class: event.Frame,
			Payload: make([]byte, 3000)}); err != nil {
			panic(err)
		}
		seq, err := l.Append(context.Background(), fact(event.Truncated, event.Refs{}))
		if err != nil {
			panic(err)
		}
		fmt.Println(seq)
	}
}

// TestKillLosesNothingAcknowledged kills a writer at random moments, ten times with the same file.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	for round := range 10 {
		cmd := child(t, "append", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var acknowledged int64
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if acknowledged, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
			if n == 3*round+1 {
				_ = cmd.Process.Kill() // the process writes until the signal arrives
			}
		}
		_ = cmd.Wait() // the signal is its result
		l, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if size, _, err := l.Head(t.Context()); err != nil || size < acknowledged {
			t.Fatalf("round %d: %d events, %d were acknowledged, %v", round, size, acknowledged, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		audit(t, path)
	}
}

// childFull appends until the file reaches a size limit, and prints the error.
func childFull(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 400 << 10, Max: 400 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	l, err := Open(context.Background(), path, Options{Context: "default"})
	if err != nil {
		panic(err)
	}
	var last event.Seq
	for {
		seq, err := l.Append(context.Background(), event.Event{Type: event.NotificationReceived, Class: event.Frame,
			Payload: make([]byte, 20_000)})
		if err != nil {
			var w *WriteError
			_, again := l.Append(context.Background(), fact(event.Truncated, event.Refs{}))
			fmt.Println(last, errors.As(err, &w), errors.Is(err, disk.ErrIO), again != nil && again.Error() == err.Error())
			return
		}
		last = seq
	}
}

// childAnchor ends a run while the anchor cannot grow, and prints the results.
func childAnchor(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 400 << 10, Max: 400 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	l, err := Open(context.Background(), path, Options{Context: "default"})
	if err != nil {
		panic(err)
	}
	_, err = l.EndRun(context.Background(), fact(event.CallEnforced, event.Refs{}))
	full := errors.Is(l.Anchored(), disk.ErrFull)
	_, again := l.EndRun(context.Background(), fact(event.CallEnforced, event.Refs{}))
	fmt.Println(err == nil, full, again == nil, l.Close() == nil)
}

// TestAnchorOnAFullDisk checks the end of a run if the anchor cannot grow. The event must be acknowledged, and the
// log must stay usable.
func TestAnchorOnAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	line := anchor.Format(evidence.Checkpoint{Origin: "perlica/x"}) // covers no event, because the log is new
	old := strings.Repeat(line, 400<<10/len(line))
	if err := os.WriteFile(anchor.Path(path), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := child(t, "anchor", path).Output()
	if string(out) != "true true true true\n" || err != nil {
		t.Errorf("%s, %v", out, err)
	}
	got, err := anchor.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range got {
		if a.Damage != nil {
			t.Errorf("%+v", a)
		}
	}
	if err := os.Remove(anchor.Path(path)); err != nil { // its lines do not belong to this log
		t.Fatal(err)
	}
	audit(t, path)
}

func TestFailedWriteIsFinal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	out, err := child(t, "full", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	var isWrite, isIO, final bool
	if _, err := fmt.Sscan(string(out), &last, &isWrite, &isIO, &final); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	if !isWrite || !isIO || !final || last == 0 {
		t.Errorf("WriteError %t, ErrIO %t, final %t, after %d events", isWrite, isIO, final, last)
	}
	l, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if size, _, err := l.Head(t.Context()); err != nil || size < last {
		t.Errorf("%d events, %d were acknowledged, %v", size, last, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	audit(t, path)
}
