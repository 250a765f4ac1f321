package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How much is done in a round of the editor's comparisons.
const (
	editorRounds    = 20
	editorLines     = 100
	editorBurst     = 20_000
	editorQuestions = 20
	editorStarts    = 40
)

// editors compares 'perlica acp' with a bare relay, both processes of their own in front of the same
// agent, and this program their client. They take turns.
func editors(dir string, _ options) {
	perlica := filepath.Join(dir, "perlica")
	build(perlica, "./cmd/perlica")
	ours := startEditor(dir, perlica, "acp", "--", must(os.Executable()), "agent")
	bare := startEditor(dir, must(os.Executable()), "relay", dir)
	for _, e := range []*editor{ours, bare} {
		e.open()
	}
	both := []*editor{ours, bare}
	paced := inTurns(both, (*editor).paced)
	answered := inTurns(both, (*editor).questions)
	burst := inTurns(both, (*editor).burst)
	ours.end()
	bare.end()
	rate := func(d []time.Duration) float64 { return editorBurst / median(d).Seconds() / 1000 }
	ratio("a line of the agent, durable and at the editor", ms(median(paced[0])), ms(median(paced[1])), "ms", "at most 1.2")
	ratio("  in a burst", rate(burst[0]), rate(burst[1]), "1000/s", "at least 0.6")
	ratio("  against a loop of inserts", rate(burst[0]), insertRate(dir), "1000/s", "at least 0.6")
	ratio("an answer in the editor, with the agent", ms(median(answered[0])), ms(median(answered[1])), "ms", "two rows: at most 1")
	starts(dir, perlica)
	memory(dir, perlica, "thoughts in one turn", "think", 10_000, 90_000)
	memory(dir, perlica, "message chunks, 1,000 a turn", "flood", slices.Repeat([]int{1000}, 100)...)
}

// inTurns has the editors do something in turns, and returns how long it took each.
func inTurns(all []*editor, do func(*editor) []time.Duration) [][]time.Duration {
	took := make([][]time.Duration, len(all))
	for i := range editorRounds + 1 {
		for n, e := range all {
			if t := do(e); i > 0 { // the first makes the files and warms the caches
				took[n] = append(took[n], t...)
			}
		}
	}
	return took
}

// insertRate is how many rows of the flood's lines a second a loop of inserts writes, in thousands.
func insertRate(dir string) float64 {
	log := openBare(dir)
	payload := make([]byte, 200)
	loop := repeat(editorBurst/1000, func() { log.commit(1000, payload) })
	compare(5, loop)
	check(log.db.Close())
	return loop.rate()
}

// editor is a client of the protocol, with what stands between it and its agent.
type editor struct {
	*peer
	dir string
	id  int
}

// startEditor starts a command in a folder of its own, with nothing of the caller's environment.
func startEditor(dir string, argv ...string) *editor {
	e := &editor{dir: must(os.MkdirTemp(dir, "project"))}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = e.dir
	cmd.Env = []string{"PATH=" + dir, "HOME=" + dir, "PERLICA_HOME=" + filepath.Join(dir, "home")}
	e.peer = startCommand(cmd)
	return e
}

// request sends a request and reads up to its answer; each gets the lines before it.
func (e *editor) request(method string, params any, each func(line []byte)) []byte {
	e.id++
	e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, e.id, method, must(json.Marshal(params))))
	for {
		line := e.line()
		if !isResponse(line) {
			each(line)
			continue
		}
		if bytes.Contains(line, []byte(`"error":`)) {
			check(fmt.Errorf("%s: %s", method, line))
		}
		return line
	}
}

func (e *editor) initialize() {
	e.request("initialize", map[string]any{"protocolVersion": 1}, func([]byte) {})
}

func (e *editor) open() {
	e.initialize()
	e.request("session/new", map[string]any{"cwd": e.dir, "mcpServers": []any{}}, func([]byte) {})
}

func (e *editor) prompt(script string, each func(line []byte)) {
	e.request("session/prompt", map[string]any{
		"sessionId": "s", "prompt": []any{map[string]string{"type": "text", "text": script}},
	}, each)
}

// paced returns how late lines were that the agent wrote one by one.
func (e *editor) paced() (late []time.Duration) {
	e.prompt(fmt.Sprint("stamp ", editorLines), func(line []byte) { late = append(late, time.Since(stamp(line))) })
	return late
}

// burst returns how long the lines took that the agent wrote at once, from the prompt on.
func (e *editor) burst() []time.Duration {
	start, n := time.Now(), 0
	var last time.Time
	e.prompt(fmt.Sprint("flood ", editorBurst), func([]byte) { n, last = n+1, time.Now() })
	if n != editorBurst {
		check(fmt.Errorf("%d lines of %d came", n, editorBurst))
	}
	return []time.Duration{last.Sub(start)}
}

// questions returns how long answers took to be with the agent.
func (e *editor) questions() (took []time.Duration) {
	var sent time.Time
	e.prompt(fmt.Sprint("ask ", editorQuestions), func(line []byte) {
		if !bytes.Contains(line, []byte("session/request_permission")) {
			took = append(took, stamp(line).Sub(sent))
			return
		}
		var q struct{ ID json.RawMessage }
		check(json.Unmarshal(line, &q))
		time.Sleep(warmPause)
		sent = time.Now()
		e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, q.ID))
	})
	if len(took) != editorQuestions {
		check(fmt.Errorf("%d answers of %d came", len(took), editorQuestions))
	}
	return took
}

// starts compares how long it takes from the start of a process until it has answered initialize.
func starts(dir, perlica string) {
	self := must(os.Executable())
	var took [2][]time.Duration
	for i := range editorStarts + 2 {
		for n, argv := range [][]string{{perlica, "acp", "--", self, "agent"}, {self, "agent"}} {
			start := time.Now()
			e := startEditor(dir, argv...)
			e.initialize()
			if i > 1 { // the first make the files and warm the caches
				took[n] = append(took[n], time.Since(start))
			}
			e.end()
		}
	}
	ours, agent := median(took[0]), median(took[1])
	fmt.Printf("%-52s %10.2f %10.2f %-9s more  %5.2f  (at most 15)\n", "perlica acp, to the answer to initialize", ms(ours), ms(agent), "ms", ms(ours-agent))
}

// memory prints the resident memory of 'perlica acp' after the first tenth of a session's updates, and
// after all.
func memory(dir, perlica, what, verb string, turns ...int) {
	e := startEditor(dir, perlica, "acp", "--", must(os.Executable()), "agent")
	e.open()
	n, first := 0, 0.0
	for _, updates := range turns {
		e.prompt(fmt.Sprintf("%s %d", verb, updates), func([]byte) {
			if n++; n == 10_000 {
				first = resident(e.cmd.Process.Pid)
			}
		})
	}
	last := resident(e.cmd.Process.Pid)
	e.end()
	if last == 0 {
		fmt.Printf("%-52s (not known on this system)\n", "resident memory: "+what)
		return
	}
	ratio("resident memory: 100,000 and 10,000 "+what, last, first, "MB", "flat")
}

// resident is the resident memory of a process, in megabytes; 0: not known.
func resident(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	if w := strings.Fields(rest); len(w) > 0 {
		return must(strconv.ParseFloat(w[0], 64)) / 1024
	}
	return 0
}

// relay is the bare relay's process: each line is a durable row before it goes on, an answer of the
// client two; of what the agent has written at once, up to 1,000 lines are committed together.
func relay(dir string) {
	log, agent := openBare(dir), startPeer("agent")
	var mu sync.Mutex // of the log
	var agentSide sync.WaitGroup
	agentSide.Go(func() {
		for {
			lines, err := waiting(agent.out)
			if len(lines) > 0 {
				mu.Lock()
				log.commitAll(lines)
				mu.Unlock()
				must(os.Stdout.Write(bytes.Join(lines, nil)))
			}
			if errors.Is(err, io.EOF) {
				return
			}
			check(err)
		}
	})
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		check(err)
		mu.Lock()
		log.commit(1, line)
		if isResponse(line) {
			log.commit(1, line)
		}
		mu.Unlock()
		must(agent.stdin.Write(line))
	}
	check(agent.stdin.Close())
	agentSide.Wait()
	check(agent.cmd.Wait())
	check(log.db.Close())
}

// waiting waits for a line and returns it with those that are at hand then.
func waiting(r *bufio.Reader) (lines [][]byte, err error) {
	for len(lines) < 1000 {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return lines, err
		}
		lines = append(lines, line)
		rest, err := r.Peek(r.Buffered()) // which is there
		if err != nil || bytes.IndexByte(rest, '\n') < 0 {
			return lines, err
		}
	}
	return lines, nil
}
