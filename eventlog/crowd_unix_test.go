//go:build unix

package eventlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/verify"
)

// crowdSize is the number of processes that write to one log at the same time.
const crowdSize = 8

// childCrowd is one process of TestCrowd. All processes run the same inputs in the same order until their standard
// input ends. A process prints "ack SEQ ID" for every acknowledged event, "anchored SIZE" for a checkpoint, and
// "pruned" or "busy" for a pruning. At its end it prints "slowest DURATION" for its slowest call. Any other output is
// a fault.
func childCrowd(path string) {
	stop := make(chan struct{})
	go func() { // The goroutine ends with the process.
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	c := &crowder{path: path, name: os.Getenv("EVENTLOG_TEST_NAME")}
	c.openLog()
	// Begin near the newest input. Go back by one input for each process, because each may be in the middle of one.
	before, err := c.log.Count(context.Background(), event.Query{Types: []event.Type{event.Requested}})
	c.must(err)
	for n := max(before-crowdSize, 0); ; n++ {
		select {
		case <-stop:
			c.must(c.log.Close())
			fmt.Println("slowest", c.slowest)
			return
		default:
		}
		c.runInput(n)
	}
}

// crowder is a process of a crowd.
type crowder struct {
	path, name string
	log        *Log
	won        int // inputs that this process ran
	slowest    time.Duration
}

func (c *crowder) openLog() {
	var err error
	c.log, err = Open(context.Background(), c.path, Options{
		Context: "default", Lazy: time.Millisecond, Keys: evidence.UseKeys(os.Getenv("EVENTLOG_TEST_KEYS")),
	})
	c.must(err)
	c.log.batch.wait = time.Minute // A process may be suspended for long while it holds the lock.
}

func (c *crowder) must(err error) {
	if err != nil {
		fmt.Println("fault", err)
		os.Exit(1)
	}
}

// appendAll appends the events and prints the acknowledgement. It returns false if they conflict with the log.
func (c *crowder) appendAll(events ...event.Event) bool { return c.write(c.log.Append, events...) }

func (c *crowder) write(write func(context.Context, ...event.Event) (event.Seq, error), events ...event.Event) bool {
	began := time.Now()
	_, err := write(context.Background(), events...)
	c.slowest = max(c.slowest, time.Since(began))
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		return false
	}
	c.must(err)
	for _, e := range events {
		fmt.Println("ack", e.Seq, e.ID)
	}
	return true
}

// runInput runs the nth input. If another process already runs that input, runInput tries to answer the question of
// that run.
func (c *crowder) runInput(n int) {
	refs := event.Refs{Session: "s", Run: event.RunID(fmt.Sprint("run-", n, "-", c.name))}
	asked := refs
	asked.Input = event.InputID(fmt.Sprint("input-", n))
	question := refs
	question.Interaction = event.InteractionID(fmt.Sprint("question-", n))
	if !c.appendAll(fact(event.MessageReceived, asked), fact(event.Requested, asked)) {
		c.answerQuestion(question.Interaction)
		return
	}
	frame := func(t event.Type, size int) event.Event {
		return event.Event{Type: t, Class: event.Frame, Actor: "agent", Refs: refs, Payload: make([]byte, size)}
	}
	for i := range 20 {
		c.must(c.log.Record(frame(event.NotificationReceived, 100*i)))
	}
	c.must(c.log.Sync())
	c.appendAll(fact(event.InteractionRequested, question))
	c.appendAll(fact(event.InteractionAnswered, question))
	c.write(c.log.EndRun, frame(event.ResponseReceived, 200), fact(event.Responded, refs), fact(event.CallEnforced, refs))
	c.must(c.log.Anchored())
	switch c.won++; c.won % 4 {
	case 1:
		note, err := c.log.Checkpoint(context.Background())
		c.must(err)
		fmt.Println("anchored", note.Size)
	case 2: // Close and open the log. The last Close empties the write-ahead log, and another process may just be opening it.
		c.must(c.log.Close())
		c.openLog()
	case 3:
		_, err := c.log.Prune(context.Background(), event.Pruning{Until: 1 << 40, Run: refs.Run, By: c.name})
		if errors.Is(err, disk.ErrBusy) {
			fmt.Println("busy")
			return
		}
		c.must(err)
		fmt.Println("pruned")
	}
}

// answerQuestion answers a question of another process.
func (c *crowder) answerQuestion(id event.InteractionID) {
	e, ok, err := c.log.Last(context.Background(), event.Query{Interaction: id})
	c.must(err)
	if ok && e.Type == event.InteractionRequested {
		c.appendAll(fact(event.InteractionAnswered, e.Refs))
	}
}

// crowd is the set of processes of TestCrowd and their output.
type crowd struct {
	t          *testing.T
	path, keys string
	said       chan string
	started    int
	living     map[string]*exec.Cmd
	stdin      map[string]io.Closer

	acked    map[event.Seq]string // event ids
	anchored int64
	counts   map[string]int
	slowest  time.Duration
	killed   int
}

func (c *crowd) startProcess() {
	name := fmt.Sprint("p", c.started)
	c.started++
	cmd := child(c.t, "crowd", c.path)
	cmd.Env = append(cmd.Env, "EVENTLOG_TEST_KEYS="+c.keys, "EVENTLOG_TEST_NAME="+name)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.living[name], c.stdin[name] = cmd, stdin
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			c.said <- lines.Text()
		}
		_ = cmd.Wait() // Some are killed. Other faults were printed.
		c.said <- "gone " + name
	}()
}

// readLine handles the next line of output.
func (c *crowd) readLine() {
	line := <-c.said
	word, rest, _ := strings.Cut(line, " ")
	c.counts[word]++
	switch word {
	case "ack":
		seq, id, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(seq, 10, 64)
		if err != nil || len(id) != 36 {
			return // The process was killed while it wrote the line.
		}
		c.acked[event.Seq(n)] = id
	case "anchored":
		if n, err := strconv.ParseInt(rest, 10, 64); err == nil {
			c.anchored = max(c.anchored, n)
		}
	case "slowest":
		if d, err := time.ParseDuration(rest); err == nil {
			c.slowest = max(c.slowest, d)
		}
	case "gone":
		delete(c.living, rest)
		delete(c.stdin, rest)
	case "pruned", "busy":
	default:
		c.t.Errorf("a process said: %s", line)
	}
}

// waitForAcks reads lines until n more events are acknowledged.
func (c *crowd) waitForAcks(n int) {
	for want := c.counts["ack"] + n; c.counts["ack"] < want && len(c.living) > 0; {
		c.readLine()
	}
}

// TestCrowd lets eight processes append to one log: frames, intents for the same inputs, outcomes, answers to the
// same questions, checkpoints and prunings. Some processes are killed and replaced. At the end every acknowledged
// event must have its Seq. The tree, the checkpoints and the anchor must verify. An event that is allowed once must
// exist once. No process may report that the database is locked.
func TestCrowd(t *testing.T) {
	kills := 12
	if *tortureStates > ordinaryStates {
		kills = 300
	}
	dir := quickDir(t)
	c := &crowd{
		t: t, path: filepath.Join(dir, logName), keys: signingKeys(t), said: make(chan string, 1024),
		living: map[string]*exec.Cmd{}, stdin: map[string]io.Closer{}, acked: map[event.Seq]string{},
		counts: map[string]int{},
	}
	for range crowdSize {
		c.startProcess() // All processes create the file.
	}
	dice := rand.New(rand.NewPCG(*tortureSeed, 9))
	for c.killed < kills && !t.Failed() {
		c.waitForAcks(1 + dice.IntN(60))
		var names []string
		for name := range c.living {
			names = append(names, name)
		}
		slices.Sort(names)
		if len(names) == 0 {
			break
		}
		_ = c.living[names[dice.IntN(len(names))]].Process.Kill() // The process may have ended.
		c.killed++
		c.startProcess()
	}
	c.waitForAcks(200)
	for _, stdin := range c.stdin {
		_ = stdin.Close() // The process finishes its input first.
	}
	for len(c.living) > 0 {
		c.readLine()
	}
	c.checkLog()
	t.Logf("seed %d: %d processes, %d of them killed, %d events acknowledged, %d checkpoints, %d prunings and %d that "+
		"gave way; the slowest call took %v",
		*tortureSeed, c.started, c.killed, len(c.acked), c.counts["anchored"], c.counts["pruned"], c.counts["busy"],
		c.slowest)
}

// checkLog checks the log after all processes have ended.
func (c *crowd) checkLog() {
	t := c.t
	l, err := Open(t.Context(), c.path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	open, err := l.OpenRuns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range open { // runs of killed processes
		mustAppend(t, l, fact(event.OutcomeUnknown, event.Refs{Run: run}))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	audit(t, c.path)
	keys, err := evidence.ReadKeys(c.keys)
	if err != nil {
		t.Fatal(err)
	}
	r := readerOf(t, c.path)
	name, err := r.Origin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rules := &crowdRules{acked: c.acked, seen: map[string]event.Seq{}}
	rep, err := verify.Log(t.Context(), r, verify.Options{Keys: []note.Verifier(keys.Verifiers(name)),
		Audit: &spy{event: rules.checkEvent}})
	if err != nil || !rep.OK() || rep.Unchecked > 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	if rep.Signed < c.anchored || rep.Anchors == 0 || rep.Checkpoints == 0 {
		t.Errorf("signed up to %d, %d was anchored; %d checkpoints, %d anchors", rep.Signed, c.anchored, rep.Checkpoints,
			rep.Anchors)
	}
	for _, w := range rep.WarningTexts() {
		if !strings.Contains(w, "clock") {
			t.Errorf("warning: %s", w)
		}
	}
	if len(rules.broken) > 0 || rules.found < len(c.acked) {
		t.Errorf("%q; %d of %d acknowledged events are there", rules.broken, rules.found, len(c.acked))
	}
}

// crowdRules checks the order of the events in the log. For example, each intent must have one outcome at most, and
// each answer must come after its question.
type crowdRules struct {
	acked  map[event.Seq]string
	found  int
	last   event.Seq
	seen   map[string]event.Seq
	broken []string
}

func (r *crowdRules) checkEvent(e *event.Event) {
	breaks := func(format string, args ...any) {
		r.broken = append(r.broken, fmt.Sprintf("event %d: ", e.Seq)+fmt.Sprintf(format, args...))
	}
	once := func(what string, after ...string) {
		if r.seen[what] > 0 {
			breaks("a second %s", what)
		}
		for _, a := range after {
			if r.seen[a] == 0 {
				breaks("%s without %s", what, a)
			}
		}
		r.seen[what] = e.Seq
	}
	if e.Seq != r.last+1 {
		breaks("behind event %d", r.last)
	}
	r.last = e.Seq
	if id, ok := r.acked[e.Seq]; ok {
		if r.found++; id != e.ID {
			breaks("it is %s, and %s was acknowledged", e.ID, id)
		}
	}
	switch {
	case e.Type == event.Requested:
		once("intent for "+string(e.Input), "input of "+string(e.Run))
		once("intent of " + string(e.Run))
	case e.Type == event.MessageReceived:
		once("input of " + string(e.Run))
	case e.Type.Outcome():
		once("outcome of "+string(e.Run), "intent of "+string(e.Run))
	case e.Type == event.InteractionRequested:
		once("question " + string(e.Interaction))
	case e.Type == event.InteractionAnswered:
		once("answer to "+string(e.Interaction), "question "+string(e.Interaction))
	}
}
