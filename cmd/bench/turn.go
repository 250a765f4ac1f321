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
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// runner opens a kernel on a new folder.
func runner(dir string, streamSync bool) (*kernel.Runner, string) {
	dir = must(os.MkdirTemp(dir, "log"))
	paths := config.ContextPaths{
		Dir: dir, EventLog: filepath.Join(dir, "eventlog.db"), Sessions: filepath.Join(dir, "sessions.db"),
		Approvals: filepath.Join(dir, "approvals.db"), Locks: dir,
	}
	return must(kernel.Open(context.Background(), kernel.Options{
		Paths: paths, Context: "default", Version: "bench", StreamSync: streamSync, Environ: os.Environ(),
		Vouchers: approvals.NewVouchers(config.Dirs{State: dir}), KeyDir: filepath.Join(dir, "keys"),
	})), dir
}

// turn runs one input through Perlica with this program as the agent.
func turn(r *kernel.Runner, dir, text string, show func(record.Notice)) record.Result {
	res := must(r.Run(context.Background(), kernel.Turn{
		Input: kernel.Input{Text: text, Source: "bench", Sender: "bench"},
		Setup: kernel.Setup{Agent: agents.Agent{Agent: provider.Agent{ID: "bench",
			Command: []string{must(os.Executable()), "agent"}}}, Dir: dir},
		Permissions: policy.ModeDeny,
		Show:        show,
	}))
	if res.Outcome != record.OutcomeResponded {
		check(fmt.Errorf("outcome %s: %v", res.Outcome, res.Err))
	}
	return res
}

// floods compares the rates of updates that an agent writes as fast as it can.
func floods(dir string, opt options) {
	updates := opt.updates
	r, project := runner(dir, true)
	var first, last time.Time
	shown := 0
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	res := turn(r, project, fmt.Sprint("flood ", updates), func(n record.Notice) {
		switch n.(type) {
		case record.Started:
			first = time.Now()
		case record.Updated:
			shown, last = shown+1, time.Now()
		}
	})
	runtime.ReadMemStats(&after)
	recorded := 0
	for _, err := range r.Log().Events(context.Background(),
		event.Query{Run: res.Run, Types: []event.Type{event.NotificationReceived}}) {
		check(err)
		recorded++
	}
	if shown != updates || recorded != updates {
		check(fmt.Errorf("%d updates were written, %d shown, %d recorded", updates, shown, recorded))
	}
	check(r.Close())
	bare := openBare(dir)
	payload := make([]byte, 200)
	start := time.Now()
	for n := 0; n < updates; n += 1000 {
		bare.commitRows(1000, payload)
	}
	bareTime := time.Since(start)
	check(bare.db.Close())
	rate := func(d time.Duration) float64 { return float64(updates) / d.Seconds() / 1000 }
	ratio(fmt.Sprintf("%d updates, all recorded, synced and shown", updates), rate(last.Sub(first)), rate(bareTime),
		"1000/s", "at least 0.6")
	fmt.Printf("%-52s %10.1f %10.1f %-9s              (the second is the answer's own text)\n",
		"  memory from the system, grown",
		float64(after.Sys-before.Sys)/(1<<20), float64(len(res.Text))/(1<<20), "MB")
}

// singles compares the delays of single updates until the front end has them.
func singles(dir string, _ options) {
	const n = 300
	bare := bareSingles(dir, n)
	for _, mode := range []struct {
		sync          bool
		what, promise string
	}{{true, "one update, durable and shown", "at most 1.2"}, {false, "  with log.stream_sync = false", "about 0.1 ms"}} {
		r, project := runner(dir, mode.sync)
		var late []time.Duration
		turn(r, project, fmt.Sprint("stamp ", n), func(notice record.Notice) {
			if u, ok := notice.(record.Updated); ok {
				at, _ := strconv.ParseInt(u.Text, 10, 64)
				late = append(late, time.Since(time.Unix(0, at)))
			}
		})
		check(r.Close())
		ratio(mode.what, ms(median(late)), ms(bare), "ms", mode.promise)
	}
}

// bareSingles measures a line proxy with one durable insert for each line. It returns the median delay of a line.
func bareSingles(dir string, n int) time.Duration {
	bare, p := openBare(dir), startPeer("agent")
	p.send(fmt.Sprintf(`{"id":1,"method":"session/prompt","params":{"prompt":[{"text":"stamp %d"}]}}`, n))
	var late []time.Duration
	for range n {
		line := p.readLine()
		bare.commitRows(1, line)
		late = append(late, time.Since(stamp(line)))
	}
	p.end()
	return median(late)
}

// stamp returns the time that the agent wrote into an update.
func stamp(line []byte) time.Time {
	i := bytes.LastIndex(line, []byte(`"text":"`)) + len(`"text":"`)
	return time.Unix(0, must(strconv.ParseInt(string(line[i:i+19]), 10, 64)))
}

// peer is a process of this program that answers lines with lines.
type peer struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

func startPeer(args ...string) *peer {
	return startCommand(exec.Command(must(os.Executable()), args...))
}

func startCommand(cmd *exec.Cmd) *peer {
	cmd.Stderr = os.Stderr
	p := &peer{cmd: cmd, stdin: must(cmd.StdinPipe()), out: bufio.NewReaderSize(must(cmd.StdoutPipe()), 64<<10)}
	check(cmd.Start())
	return p
}

func (p *peer) end() {
	check(p.stdin.Close())
	check(p.cmd.Wait())
}

func (p *peer) send(line string) { must(io.WriteString(p.stdin, line+"\n")) }

// readLine reads the next line of the peer.
func (p *peer) readLine() []byte { return must(p.out.ReadBytes('\n')) }

// askLine sends a line and waits for a line.
func (p *peer) askLine(line string) {
	p.send(line)
	p.readLine()
}

// prompts compares the times of an empty prompt from its intent to its outcome on disk.
func prompts(dir string, _ options) {
	const n = 100
	r, project := runner(dir, true)
	var ours, theirs, commits []time.Duration
	for range n {
		ours = append(ours, promptTime(r, turn(r, project, "nothing", nil).Run))
	}
	check(r.Close())
	bare := openBare(dir)
	for range n {
		all, commit := barePrompt(bare)
		theirs, commits = append(theirs, all), append(commits, commit)
	}
	// The run's last event has the time before its commit, so the time of one commit is added.
	ratio("an empty prompt, durable both ways", ms(median(ours)+median(commits)), ms(median(theirs)), "ms", "at most 1.25")
}

// barePrompt starts a new peer, as each run does, and prompts it. It commits a durable row before and after the
// prompt. It returns the total time and the time for the second row.
func barePrompt(bare *bareLog) (all, commit time.Duration) {
	p := startPeer("agent")
	for _, method := range []string{"initialize", "session/new"} {
		p.askLine(fmt.Sprintf(`{"id":1,"method":%q}`, method))
	}
	start := time.Now()
	bare.commitRows(1, bareHash)
	p.askLine(`{"id":1,"method":"session/prompt","params":{"prompt":[{"text":"nothing"}]}}`)
	second := time.Now()
	bare.commitRows(1, bareHash)
	end := time.Now()
	p.end()
	return end.Sub(start), end.Sub(second)
}

// promptTime returns the time between a run's intent and its last event.
func promptTime(r *kernel.Runner, run event.RunID) time.Duration {
	var from, to time.Time
	for e, err := range r.Log().Events(context.Background(), event.Query{Run: run, Class: event.Fact}) {
		check(err)
		switch e.Type {
		case event.Requested:
			from = e.Time
		case event.CallEnforced:
			to = e.Time
		}
	}
	return to.Sub(from)
}
