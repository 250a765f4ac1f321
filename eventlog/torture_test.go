package eventlog

// The torture tests check in several ways that a log keeps its promises. The writer dies, or its disk fails, at any
// moment.
//
//	torture_test.go            the writer and its script
//	torture_check_test.go      the checks of every log that is found afterwards
//	torture_strace_test.go     a writer under strace: its system calls recorded or disturbed
//	torture_disk_test.go       a disk that forgets unsynced data
//	torture_states_test.go     crash states, and the controls that must be caught
//	torture_kill_test.go       death and errors at system calls
//	torture_failpoint_test.go  death and errors at the named points of a commit, on every platform
//	torture_files_test.go      other programs remove, cut or link the files of a living log
//	torture_powercut_*_test.go a file system that is shut down under the writer
//
// An ordinary run of the tests uses a sample. The long run is
//
//	go test ./eventlog -run TestTorture -torture 100000 -powercuts 100 -timeout 2h -v

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

var (
	tortureStates = flag.Int("torture", ordinaryStates, "how many crash states the torture tests build")
	tortureCuts   = flag.Int("powercuts", 0, "how many power cuts the torture tests make (Linux, root)")
	tortureSeed   = flag.Uint64("seed", 1, "what the torture tests' dice start from")
)

// tortureEnv is the environment variable with the script of a child process.
const tortureEnv = "EVENTLOG_TORTURE"

// A script describes one writer process. The same seed gives the same events, so the expected events are known when a
// log is checked.
type script struct {
	Path  string
	Seed  uint64
	First int // number of its first run
	Runs  int
	// Leave makes the writer die without Close.
	Leave bool
	// Waits makes the writer wait for every commit, also for commits of checkpoints. The order of the commits is then
	// fixed.
	Waits bool

	// Keys is the folder of the keys that sign the checkpoints. If it is empty, the log has no keys.
	Keys string
	// Revive makes the writer reopen a failed log and continue.
	Revive bool

	// Sync is a pragma that makes the log unsafe, or "". Early makes the writer acknowledge events before their
	// commit. The tests must find both faults.
	Sync  string
	Early bool

	// Point is a failpoint at which the writer dies, when it reaches the point for the Nth time. If Fail is set, the
	// point returns an error instead. If Meddle is set, another program changes the files of the log there.
	Point  string
	Nth    int
	Fail   bool
	Meddle string
	passed map[string]int // how often each point was reached
}

// A step is one call of the log by the writer.
type step struct {
	events []event.Event
	// wait means that the step calls Append, or Sync if it has no events. Otherwise the step calls Record.
	wait bool
	// ends means that the step calls EndRun, or EndRunEarly if early is set.
	ends, early bool
	// refused means that the log already has such an event, so the call must fail.
	refused bool
	// reopen means that the step calls Close and Open.
	reopen bool
	// rest means that the step empties the write-ahead log, as an idle log does.
	rest bool
}

// steps returns the calls of the writer in their order. Its runs look like the runs of Perlica's kernel.
func (s script) steps() []step {
	var all []step
	for k := s.First; k < s.First+s.Runs; k++ {
		all = append(all, runSteps(rand.New(rand.NewPCG(s.Seed, uint64(k))), k)...)
		if end := &all[len(all)-1]; s.Waits {
			end.early = false
		}
		switch {
		case s.Leave: // the test needs the files that the writer leaves
		case k%2 == 0:
			all = append(all, step{rest: true})
		default:
			all = append(all, step{reopen: true})
		}
	}
	return all
}

func runSteps(dice *rand.Rand, k int) []step {
	refs := event.Refs{Session: "session", Run: event.RunID(fmt.Sprint("run-", k))}
	asked := refs
	asked.Input = event.InputID(fmt.Sprint("input-", k))
	note := func(ty event.Type, refs event.Refs) event.Event {
		return event.NewFact(ty, "test", refs, map[string]int{"n": dice.IntN(1_000_000)})
	}
	frame := func(ty event.Type) event.Event {
		size := dice.IntN(1500)
		if dice.IntN(20) == 0 {
			size += 20_000 // the payload needs overflow pages
		}
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = byte(dice.Uint32())
		}
		return event.Event{Type: ty, Class: event.Frame, Actor: "agent", Refs: refs, Payload: payload}
	}
	steps := []step{
		{events: []event.Event{note(event.MessageReceived, asked)}},
		{events: []event.Event{frame(event.RequestSent), note(event.SessionStarted, refs)}},
		{events: []event.Event{note(event.Requested, asked)}, wait: true},
	}
	if dice.IntN(2) == 0 { // call the same input again, with another event; both must be refused
		again := asked
		again.Run += "-again"
		steps = append(steps, step{events: []event.Event{note(event.MessageReceived, again), note(event.Requested, again)},
			wait: true, refused: true})
	}
	for range 1 + dice.IntN(3) {
		for range 1 + dice.IntN(20) {
			steps = append(steps, step{events: []event.Event{frame(event.NotificationReceived)}})
		}
		steps = append(steps, step{wait: true})
	}
	if dice.IntN(2) == 0 {
		question := refs
		question.Interaction = event.InteractionID(fmt.Sprint("question-", k))
		steps = append(steps,
			step{events: []event.Event{note(event.InteractionRequested, question)}, wait: true},
			step{events: []event.Event{note(event.InteractionAnswered, question)}, wait: true},
			step{events: []event.Event{frame(event.ResponseSent), note(event.InteractionResolved, question)}})
	}
	return append(steps, step{
		events: []event.Event{frame(event.ResponseReceived), note(event.Responded, refs), note(event.CallEnforced, refs)},
		wait:   true, ends: true, early: dice.IntN(2) == 0})
}

// perform runs the writer. It prints "seen N" for the number of events that it finds, and "ack N" after N events are
// acknowledged. If the log fails, it prints "failed" and the reason.
func (s script) perform(out io.Writer) error {
	if s.passed == nil {
		s.passed = map[string]int{}
	}
	l, n, err := s.openLog(out)
	if err != nil {
		return err
	}
	say := func() { fmt.Fprintf(out, "ack %d\n", n) }
	steps := s.steps()
	first := n // events that existed before
	for i := 0; i < len(steps); i++ {
		st := steps[i]
		if st.rest && s.Meddle != "" { // SQLite alone would not see the changed files
			continue
		}
		if st.reopen {
			if err := l.Close(); err != nil {
				return err
			}
			if l, n, err = s.openLog(out); err != nil {
				return err
			}
			continue
		}
		if !st.refused {
			n += len(st.events)
		}
		if s.Early && st.wait {
			say()
		}
		if err := st.perform(l); err != nil {
			if !s.Revive {
				return errors.Join(err, l.Close())
			}
			if i, n, err = s.reviveLog(l, out, first); err != nil {
				return errors.Join(err, l.Close())
			}
			s.Revive = false // The writer reopens the log only once.
			continue
		}
		if st.wait && !s.Early {
			say()
		}
	}
	if s.Leave {
		die()
	}
	return l.Close()
}

// reviveLog reopens a failed log. It returns the last step of which the log has the events. The caller repeats the
// later steps.
func (s script) reviveLog(l *Log, out io.Writer, first int) (step, n int, err error) {
	if err := l.Reopen(context.Background()); err != nil {
		return 0, 0, err
	}
	size, _, err := l.Head(context.Background())
	if err != nil {
		return 0, 0, err
	}
	fmt.Fprintf(out, "seen %d\n", size)
	n = first
	for i, st := range s.steps() {
		if !st.refused {
			n += len(st.events)
		}
		if n > int(size) {
			return i - 1, int(size), nil
		}
	}
	return len(s.steps()) - 1, int(size), nil
}

func (s script) openLog(out io.Writer) (*Log, int, error) {
	// With this delay, only the script and not the clock decides when a batch ends.
	opt := Options{Context: "default", Lazy: time.Hour}
	if s.Keys != "" {
		var err error
		if opt.Keys, err = evidence.ReadKeys(s.Keys); err != nil {
			return nil, 0, err
		}
	}
	l, err := Open(context.Background(), s.Path, opt)
	if err != nil {
		return nil, 0, err
	}
	// With this limit, even a small log starts its write-ahead log again from its beginning.
	l.batch.most = 60
	if s.Sync != "" { // the connection is not in use before the first append
		if _, err := l.batch.db.Exec("PRAGMA synchronous = " + s.Sync); err != nil {
			return nil, 0, errors.Join(err, l.Close())
		}
	}
	s.armLog(l)
	n, _, err := l.Head(context.Background())
	if err != nil {
		return nil, 0, errors.Join(err, l.Close())
	}
	_, err = fmt.Fprintf(out, "seen %d\n", n)
	return l, int(n), err
}

// perform makes the call on the log l. It returns an error if the result is not the expected one.
func (st step) perform(l *Log) error {
	switch {
	case st.rest:
		_ = execFile(l.Path(), `PRAGMA wal_checkpoint(TRUNCATE)`) // best effort
		return nil
	case st.refused:
		_, err := l.Append(context.Background(), st.copyEvents()...)
		if conflict := (*ConflictError)(nil); !errors.As(err, &conflict) {
			return fmt.Errorf("the second of its kind: %w", orTaken(err))
		}
		return nil
	case !st.wait:
		return l.Record(st.copyEvents()...)
	case len(st.events) == 0:
		return l.Sync()
	}
	write := l.Append
	switch {
	case st.early:
		write = l.EndRunEarly
	case st.ends:
		write = l.EndRun
	}
	_, err := write(context.Background(), st.copyEvents()...)
	return err
}

// copyEvents returns copies of the events, because the log changes the events that it gets.
func (st step) copyEvents() []event.Event { return append([]event.Event(nil), st.events...) }

// signingKeys returns a folder with new keys.
func signingKeys(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := evidence.MakeKeys(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// orTaken returns err if it is not nil. Otherwise it returns an error that says that the refusal is missing.
func orTaken(err error) error {
	if err == nil {
		return errors.New("it was taken")
	}
	return err
}

// die ends the process as SIGKILL does. Nothing is flushed or closed.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // this call does not return
	}
	select {}
}

// TestTortureWriter is the child process of the other torture tests.
func TestTortureWriter(t *testing.T) {
	env := os.Getenv(tortureEnv)
	if env == "" {
		t.Skip("the other torture tests start it as a process of its own")
	}
	var s script
	if err := json.Unmarshal([]byte(env), &s); err != nil {
		t.Fatal(err)
	}
	if err := s.perform(os.Stdout); err != nil {
		fmt.Println("failed", err)
	}
}

// command returns the command that runs the script s. The words in "prefix" come before it, such as strace with its
// options.
func (s script) command(t *testing.T, prefix ...string) *exec.Cmd {
	t.Helper()
	env, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(prefix, self, "-test.run=^TestTortureWriter$")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), tortureEnv+"="+string(env))
	return cmd
}

// said parses the output of a writer. It returns the number of acknowledged events and the reason of a failure.
func said(out []byte) (acked int, failed string) {
	for line := range bytes.Lines(out) {
		var n int
		if _, err := fmt.Sscanf(string(line), "ack %d\n", &n); err == nil {
			acked = max(acked, n)
		}
		if why, ok := bytes.CutPrefix(line, []byte("failed ")); ok {
			failed = string(bytes.TrimSpace(why))
		}
	}
	return acked, failed
}
