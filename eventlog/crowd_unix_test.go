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

// crowdSize is how many processes write to one log at a time.
const crowdSize = 8

// childCrowd is one of many: it runs one input after the other, as the others do with the same
// inputs, until its standard input ends. It prints "ack SEQ ID" for every event that is
// acknowledged, "anchored SIZE", "pruned" and "busy" for what became of a pruning, and in the
// end "slowest DURATION", of one call. Anything else it prints is a fault.
func childCrowd(path string) {
	stop := make(chan struct{})
	go func() { // the process ends with it
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	c := &crowder{path: path, name: os.Getenv("EVENTLOG_TEST_NAME")}
	c.open()
	// What others have done; each of them may have one under way.
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
		c.input(n)
	}
}

// crowder is a process of a crowd.
type crowder struct {
	path, name string
	log        *Log
	won        int // inputs that were this one's
	slowest    time.Duration
}

func (c *crowder) open() {
	var err error
	c.log, err = Open(context.Background(), c.path, Options{
		Context: "default", Lazy: time.Millisecond, Keys: evidence.UseKeys(os.Getenv("EVENTLOG_TEST_KEYS")),
	})
	c.must(err)
	c.log.batch.wait = time.Minute // one that is stopped with the lock in its hands gets on in the end
}

func (c *crowder) must(err error) {
	if err != nil {
		fmt.Println("fault", err)
		os.Exit(1)
	}
}

// append appends, and says what was acknowledged. It returns false on a conflict.
func (c *crowder) append(events ...event.Event) bool {
	began := time.Now()
	_, err := c.log.Append(context.Background(), events...)
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

// input answers the nth input, unless another process has been faster; then it tries to answer
// that one's question.
func (c *crowder) input(n int) {
	refs := event.Refs{Session: "s", Run: event.RunID(fmt.Sprint("run-", n, "-", c.name))}
	asked := refs
	asked.Input = event.InputID(fmt.Sprint("input-", n))
	question := refs
	question.Interaction = event.InteractionID(fmt.Sprint("question-", n))
	if !c.append(fact(event.MessageReceived, asked), fact(event.Requested, asked)) {
		c.answer(question.Interaction)
		return
	}
	frame := func(t event.Type, size int) event.Event {
		return event.Event{Type: t, Class: event.Frame, Actor: "agent", Refs: refs, Payload: make([]byte, size)}
	}
	for i := range 20 {
		c.must(c.log.Record(frame(event.NotificationReceived, 100*i)))
	}
	c.must(c.log.Sync())
	c.append(fact(event.InteractionRequested, question))
	c.append(fact(event.InteractionAnswered, question))
	c.append(frame(event.ResponseReceived, 200), fact(event.Responded, refs), fact(event.CallEnforced, refs))
	c.must(c.log.Anchored())
	switch c.won++; c.won % 4 {
	case 1:
		note, err := c.log.Checkpoint(context.Background())
		c.must(err)
		fmt.Println("anchored", note.Size)
	case 2: // the last to close empties the write-ahead log while another opens it
		c.must(c.log.Close())
		c.open()
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

// answer answers a question that somebody else has asked.
func (c *crowder) answer(id event.InteractionID) {
	e, ok, err := c.log.Last(context.Background(), event.Query{Interaction: id})
	c.must(err)
	if ok && e.Type == event.InteractionRequested {
		c.append(fact(event.InteractionAnswered, e.Refs))
	}
}

// crowd is eight processes at one log, and what they have said.
type crowd struct {
	t          *testing.T
	path, keys string
	said       chan string
	started    int
	living     map[string]*exec.Cmd
	stdin      map[string]io.Closer

	acked    map[event.Seq]string // ids
	anchored int64
	counts   map[string]int
	slowest  time.Duration
	killed   int
}

func (c *crowd) start() {
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
		_ = cmd.Wait() // some are killed; what went wrong otherwise was said
		c.said <- "gone " + name
	}()
}

// hear takes in the next line.
func (c *crowd) hear() {
	line := <-c.said
	word, rest, _ := strings.Cut(line, " ")
	c.counts[word]++
	switch word {
	case "ack":
		seq, id, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(seq, 10, 64)
		if err != nil || len(id) != 36 {
			return // the line of one that was killed as it wrote it
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

// until hears until there are n more acknowledged events.
func (c *crowd) until(n int) {
	for want := c.counts["ack"] + n; c.counts["ack"] < want && len(c.living) > 0; {
		c.hear()
	}
}

// TestCrowd has eight processes append to one log: frames, intents for the same inputs,
// outcomes, answers to the same questions, checkpoints, prunings. Now and then one of them is
// killed and another takes its place. What was acknowledged is there under its number, the tree
// and every checkpoint and anchor hold, there is one of what there may be only one of, and
// no one is told that the database is locked.
func TestCrowd(t *testing.T) {
	kills := 12
	if *tortureStates > ordinaryStates {
		kills = 300
	}
	dir := quickDir(t)
	c := &crowd{
		t: t, path: filepath.Join(dir, logName), keys: signingKeys(t), said: make(chan string, 1024),
		living: map[string]*exec.Cmd{}, stdin: map[string]io.Closer{}, acked: map[event.Seq]string{}, counts: map[string]int{},
	}
	for range crowdSize {
		c.start() // the file is not there yet: they all make it
	}
	dice := rand.New(rand.NewPCG(*tortureSeed, 9))
	for c.killed < kills && !t.Failed() {
		c.until(1 + dice.IntN(60))
		var names []string
		for name := range c.living {
			names = append(names, name)
		}
		slices.Sort(names)
		if len(names) == 0 {
			break
		}
		_ = c.living[names[dice.IntN(len(names))]].Process.Kill() // it may have gone
		c.killed++
		c.start()
	}
	c.until(200)
	for _, stdin := range c.stdin {
		_ = stdin.Close() // it ends when it has finished its input
	}
	for len(c.living) > 0 {
		c.hear()
	}
	c.check()
	t.Logf("seed %d: %d processes, %d of them killed, %d events acknowledged, %d checkpoints, %d prunings and %d that gave way; the slowest call took %v",
		*tortureSeed, c.started, c.killed, len(c.acked), c.counts["anchored"], c.counts["pruned"], c.counts["busy"], c.slowest)
}

// check looks at the log when all have gone.
func (c *crowd) check() {
	t := c.t
	l, err := Open(t.Context(), c.path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	open, err := l.OpenRuns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range open { // of those that were killed
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
	rep, err := verify.Log(t.Context(), r, verify.Options{Keys: []note.Verifier(keys.Verifiers(name)), Audit: &spy{event: rules.event}})
	if err != nil || !rep.OK() || rep.Unchecked > 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	if rep.Signed < c.anchored || rep.Anchors == 0 || rep.Checkpoints == 0 {
		t.Errorf("signed up to %d, %d was anchored; %d checkpoints, %d anchors", rep.Signed, c.anchored, rep.Checkpoints, rep.Anchors)
	}
	for _, w := range rep.Warnings {
		if !strings.Contains(w, "clock") {
			t.Errorf("warning: %s", w)
		}
	}
	if len(rules.broken) > 0 || rules.found < len(c.acked) {
		t.Errorf("%q; %d of %d acknowledged events are there", rules.broken, rules.found, len(c.acked))
	}
}

// crowdRules are those of the contract that follow from types and ids.
type crowdRules struct {
	acked  map[event.Seq]string
	found  int
	last   event.Seq
	seen   map[string]event.Seq
	broken []string
}

func (r *crowdRules) event(e *event.Event) {
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
