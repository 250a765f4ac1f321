package eventlog

// The torture tests ask one question in several ways: a writer dies, or its disk fails,
// at any moment; is the log what it promised to be?
//
//	torture_test.go            the writer that suffers, and what it was to write
//	torture_check_test.go      what must hold of every log that is found afterwards
//	torture_strace_test.go     a writer under strace: its system calls recorded or disturbed
//	torture_disk_test.go       a disk that forgets what was not synced
//	torture_states_test.go     crash states, and the controls that must be caught
//	torture_kill_test.go       death and errors at system calls
//	torture_failpoint_test.go  death and errors at the named points of a commit, on every platform
//	torture_files_test.go      somebody removes, cuts or links the files of a living log
//	torture_powercut_*_test.go a file system that is shut down under the writer
//
// An ordinary run takes a sample. The long one is
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

// tortureEnv holds the script of a process that is a torture test's writer.
const tortureEnv = "EVENTLOG_TORTURE"

// A script is what one writer process does. The same seed gives the same events, so
// anyone who looks at the log afterwards knows what it may hold.
type script struct {
	Path  string
	Seed  uint64
	First int // number of its first run
	Runs  int
	Leave bool // it dies without Close
	Waits bool // for every commit: no checkpoint follows by itself, so that all take place in order

	Keys   string // the folder of the keys that sign its checkpoints; empty: there are none
	Revive bool   // it opens a log that failed again, and goes on

	// Sync, if not empty, is a pragma that makes the log unsafe; Early has the writer
	// acknowledge before it commits. Both are controls.
	Sync  string
	Early bool

	// When it passes Point for the Nth time the writer dies, or if Fail is set is told that
	// this did not work, or if Meddle is set somebody does that to its files.
	Point  string
	Nth    int
	Fail   bool
	Meddle string
	passed map[string]int // how often each point was passed
}

// A step is one call of the log.
type step struct {
	events  []event.Event
	wait    bool // Append, or Sync if there are no events; else Record
	ahead   bool // AppendAhead instead of Append
	refused bool // the log holds its like already
	reopen  bool // Close and Open instead
	rest    bool // a full checkpoint instead, as a log makes it when it has been at rest
}

// steps returns what the writer does, in order: runs as Perlica's kernel makes them.
func (s script) steps() []step {
	var all []step
	for k := s.First; k < s.First+s.Runs; k++ {
		all = append(all, runSteps(rand.New(rand.NewPCG(s.Seed, uint64(k))), k)...)
		if end := &all[len(all)-1]; s.Waits {
			end.ahead = false
		}
		switch {
		case s.Leave: // what it leaves is the point
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
			size += 20_000 // overflow pages
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
	if dice.IntN(2) == 0 { // the same input once more, with company that shares its fate
		again := asked
		again.Run += "-again"
		steps = append(steps, step{events: []event.Event{note(event.MessageReceived, again), note(event.Requested, again)}, wait: true, refused: true})
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
		events: []event.Event{frame(event.ResponseReceived), note(event.Responded, refs), note(event.CallEnforced, refs)}, wait: true, ahead: dice.IntN(2) == 0})
}

// perform is the writer. It prints "seen N" for the events it finds, "ack N" when N events
// are acknowledged, and "failed" with the reason if the log dies.
func (s script) perform(out io.Writer) error {
	if s.passed == nil {
		s.passed = map[string]int{}
	}
	l, n, err := s.open(out)
	if err != nil {
		return err
	}
	say := func() { fmt.Fprintf(out, "ack %d\n", n) }
	steps := s.steps()
	first := n // what was there before
	for i := 0; i < len(steps); i++ {
		st := steps[i]
		if st.rest && s.Meddle != "" { // SQLite alone would not see what was done
			continue
		}
		if st.reopen {
			if err := l.Close(); err != nil {
				return err
			}
			if l, n, err = s.open(out); err != nil {
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
		if err := st.do(l); err != nil {
			if !s.Revive {
				return errors.Join(err, l.Close())
			}
			if i, n, err = s.revive(l, out, first); err != nil {
				return errors.Join(err, l.Close())
			}
			s.Revive = false // once
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

// revive reopens a log that failed and looks how far it came: it returns the last step of
// which the log holds the events. What follows them is done again.
func (s script) revive(l *Log, out io.Writer, first int) (step, n int, err error) {
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

func (s script) open(out io.Writer) (*Log, int, error) {
	// An hour: batches are what the script says, not what the clock says.
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
	// A small log has to see its write-ahead log wrap around, too.
	l.batch.most = 60
	if s.Sync != "" { // the writer has one connection, which is not in use before the first append
		if _, err := l.batch.db.Exec("PRAGMA synchronous = " + s.Sync); err != nil {
			return nil, 0, errors.Join(err, l.Close())
		}
	}
	s.arm(l)
	n, _, err := l.Head(context.Background())
	if err != nil {
		return nil, 0, errors.Join(err, l.Close())
	}
	_, err = fmt.Fprintf(out, "seen %d\n", n)
	return l, int(n), err
}

// do makes the call on l. An answer other than the expected one is an error.
func (st step) do(l *Log) error {
	switch {
	case st.rest:
		_ = execFile(l.Path(), `PRAGMA wal_checkpoint(TRUNCATE)`) // best effort
		return nil
	case st.refused:
		_, err := l.Append(context.Background(), st.copy()...)
		if conflict := (*ConflictError)(nil); !errors.As(err, &conflict) {
			return fmt.Errorf("the second of its kind: %w", orTaken(err))
		}
		return nil
	case !st.wait:
		return l.Record(st.copy()...)
	case len(st.events) == 0:
		return l.Sync()
	}
	write := l.Append
	if st.ahead {
		write = l.AppendAhead
	}
	_, err := write(context.Background(), st.copy()...)
	return err
}

// copy keeps the script's events apart from those that the log fills in.
func (st step) copy() []event.Event { return append([]event.Event(nil), st.events...) }

// signingKeys returns the folder of keys made for the test.
func signingKeys(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := evidence.MakeKeys(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// orTaken puts words to the absence of a refusal.
func orTaken(err error) error {
	if err == nil {
		return errors.New("it was taken")
	}
	return err
}

// die ends the process as SIGKILL does: nothing is flushed, nothing is closed.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // what follows it does not happen
	}
	select {}
}

// TestTortureWriter is no test of its own: it is the writer, in a process of its own.
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

// command returns the command that performs s behind the words of prefix.
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

// said reads what a writer printed: how many events it acknowledged, and why it gave up.
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
