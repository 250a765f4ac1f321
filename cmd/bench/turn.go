package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/approvals"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// runner opens a kernel on a fresh folder.
func runner(dir string, streamSync bool) (*kernel.Runner, string, error) {
	dir, err := os.MkdirTemp(dir, "log")
	if err != nil {
		return nil, "", err
	}
	paths := config.ContextPaths{
		Dir: dir, EventLog: filepath.Join(dir, "eventlog.db"), Sessions: filepath.Join(dir, "sessions.db"),
		Approvals: filepath.Join(dir, "approvals.db"), Locks: dir,
	}
	r, err := kernel.Open(context.Background(), kernel.Options{
		Paths: paths, Context: "default", Version: "bench", StreamSync: streamSync, Environ: os.Environ(),
		Vouchers: approvals.NewVouchers(config.Dirs{State: dir}), KeyDir: filepath.Join(dir, "keys"),
	})
	return r, dir, err
}

// turn runs one input through Perlica with this program as the agent.
func turn(r *kernel.Runner, dir, text string, show func(kernel.Notice)) (kernel.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return kernel.Result{}, err
	}
	res, err := r.Run(context.Background(), kernel.Turn{
		Input:       kernel.Input{Text: text, Source: "bench", Sender: "bench"},
		Setup:       kernel.Setup{Agent: agents.Agent{Agent: provider.Agent{ID: "bench", Command: []string{self, "agent"}}}, Dir: dir},
		Permissions: policy.ModeDeny,
		Show:        show,
	})
	if err == nil && res.Outcome != kernel.OutcomeResponded {
		err = fmt.Errorf("outcome %s: %v", res.Outcome, res.Err)
	}
	return res, err
}

// floods compares the rate of updates that an agent writes as fast as it can.
func floods(dir string, updates int) error {
	r, project, err := runner(dir, true)
	if err != nil {
		return err
	}
	var first, last time.Time
	shown := 0
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	res, err := turn(r, project, fmt.Sprint("flood ", updates), func(n kernel.Notice) {
		switch n.(type) {
		case kernel.Started:
			first = time.Now()
		case kernel.Updated:
			shown, last = shown+1, time.Now()
		}
	})
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	recorded := 0
	for _, err := range r.Log().Events(context.Background(), event.Query{Run: res.Run, Types: []event.Type{event.NotificationReceived}}) {
		if err != nil {
			return err
		}
		recorded++
	}
	if shown != updates || recorded != updates {
		return fmt.Errorf("%d updates were written, %d shown, %d recorded", updates, shown, recorded)
	}
	if err := r.Close(); err != nil {
		return err
	}
	bare, err := openBare(dir)
	if err != nil {
		return err
	}
	payload := make([]byte, 200)
	start := time.Now()
	for n := 0; n < updates; n += 1000 {
		if err := bare.commit(1000, payload); err != nil {
			return err
		}
	}
	bareTime := time.Since(start)
	if err := bare.db.Close(); err != nil {
		return err
	}
	rate := func(d time.Duration) float64 { return float64(updates) / d.Seconds() / 1000 }
	ratio(fmt.Sprintf("%d updates, all recorded, synced and shown", updates), rate(last.Sub(first)), rate(bareTime), "1000/s", "at least 0.6")
	fmt.Printf("%-52s %10.1f %10.1f %-9s              (the second is the answer's own text)\n", "  memory from the system, grown",
		float64(after.Sys-before.Sys)/(1<<20), float64(len(res.Text))/(1<<20), "MB")
	return nil
}

// singles compares how late one update is with the front end.
func singles(dir string) error {
	const n = 300
	bare, err := bareSingles(dir, n)
	if err != nil {
		return err
	}
	for _, mode := range []struct {
		sync bool
		what string
	}{{true, "one update, durable and shown"}, {false, "  with log.stream_sync = false"}} {
		r, project, err := runner(dir, mode.sync)
		if err != nil {
			return err
		}
		var late []time.Duration
		_, err = turn(r, project, fmt.Sprint("stamp ", n), func(notice kernel.Notice) {
			if u, ok := notice.(kernel.Updated); ok {
				at, _ := strconv.ParseInt(u.Text, 10, 64)
				late = append(late, time.Since(time.Unix(0, at)))
			}
		})
		if err != nil {
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
		if mode.sync {
			ratio(mode.what, ms(median(late)), ms(bare), "ms", "at most 1.2")
		} else {
			ratio(mode.what, ms(median(late)), ms(bare), "ms", "about 0.1 ms")
		}
	}
	return nil
}

// bareSingles is a line proxy with one durable insert a line.
func bareSingles(dir string, n int) (time.Duration, error) {
	bare, err := openBare(dir)
	if err != nil {
		return 0, err
	}
	p, err := startPeer("agent")
	if err != nil {
		return 0, err
	}
	if err := p.send(fmt.Sprintf(`{"id":1,"method":"session/prompt","params":{"prompt":[{"text":"stamp %d"}]}}`, n)); err != nil {
		return 0, err
	}
	var late []time.Duration
	for range n {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		if err := bare.commit(1, line); err != nil {
			return 0, err
		}
		i := bytes.LastIndex(line, []byte(`"text":"`)) + len(`"text":"`)
		at, err := strconv.ParseInt(string(line[i:i+19]), 10, 64)
		if err != nil {
			return 0, err
		}
		late = append(late, time.Since(time.Unix(0, at)))
	}
	return median(late), p.end()
}

// peer is this program as a line source, of one of its kinds.
type peer struct {
	stdin io.Writer
	out   *bufio.Reader
	end   func() error
}

func startPeer(args ...string) (*peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &peer{stdin: in, out: bufio.NewReader(out)}
	p.end = func() error {
		if err := in.Close(); err != nil {
			return err
		}
		return cmd.Wait()
	}
	return p, nil
}

func (p *peer) send(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	return err
}

// ask sends a line and waits for one.
func (p *peer) ask(line string) error {
	if err := p.send(line); err != nil {
		return err
	}
	_, err := p.out.ReadBytes('\n')
	return err
}

// prompts compares an empty prompt, from its intent to its outcome on disk.
func prompts(dir string) error {
	const n = 100
	r, project, err := runner(dir, true)
	if err != nil {
		return err
	}
	var ours []time.Duration
	for range n {
		res, err := turn(r, project, "nothing", nil)
		if err != nil {
			return err
		}
		d, err := promptTime(r, res.Run)
		if err != nil {
			return err
		}
		ours = append(ours, d)
	}
	if err := r.Close(); err != nil {
		return err
	}
	bare, err := openBare(dir)
	if err != nil {
		return err
	}
	var theirs, commits []time.Duration
	for range n {
		all, commit, err := barePrompt(bare)
		if err != nil {
			return err
		}
		theirs, commits = append(theirs, all), append(commits, commit)
	}
	// The last event's time is when it was recorded; it was on disk one commit later.
	ratio("an empty prompt, durable both ways", ms(median(ours)+median(commits)), ms(median(theirs)), "ms", "at most 1.25")
	return nil
}

// barePrompt prompts a fresh peer, as each run does, with a durable row before and one
// behind. It returns how long that took, and how long the second row.
func barePrompt(bare *bareLog) (all, commit time.Duration, err error) {
	p, err := startPeer("agent")
	if err != nil {
		return 0, 0, err
	}
	for _, method := range []string{"initialize", "session/new"} {
		if err := p.ask(fmt.Sprintf(`{"id":1,"method":%q}`, method)); err != nil {
			return 0, 0, err
		}
	}
	start := time.Now()
	if err := bare.commit(1, bareHash); err != nil {
		return 0, 0, err
	}
	if err := p.ask(`{"id":1,"method":"session/prompt","params":{"prompt":[{"text":"nothing"}]}}`); err != nil {
		return 0, 0, err
	}
	second := time.Now()
	if err := bare.commit(1, bareHash); err != nil {
		return 0, 0, err
	}
	end := time.Now()
	return end.Sub(start), end.Sub(second), p.end()
}

// promptTime is the time between a run's intent and its last event.
func promptTime(r *kernel.Runner, run event.RunID) (time.Duration, error) {
	var from, to time.Time
	for e, err := range r.Log().Events(context.Background(), event.Query{Run: run, Class: event.Fact}) {
		switch {
		case err != nil:
			return 0, err
		case e.Type == event.Requested:
			from = e.Time
		case e.Type == event.CallEnforced:
			to = e.Time
		}
	}
	return to.Sub(from), nil
}
