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

// These are the sizes of a round of the editor's comparisons.
const (
	editorRounds    = 20
	editorLines     = 100
	editorBurst     = 20_000
	editorQuestions = 20
	editorStarts    = 40
)

// editors compares 'perlica acp' with a bare relay. Each runs as its own process with the same agent, and this
// program is their client. They take turns.
func editors(dir string, _ options) {
	perlica := filepath.Join(dir, "perlica")
	build(perlica, "./cmd/perlica")
	ours := startEditor(dir, perlica, "acp", "--", must(os.Executable()), "agent")
	bare := startEditor(dir, must(os.Executable()), "relay", dir)
	for _, e := range []*editor{ours, bare} {
		e.open()
	}
	both := []*editor{ours, bare}
	paced := inTurns(both, (*editor).readPaced)
	answered := inTurns(both, (*editor).answerQuestions)
	burst := inTurns(both, (*editor).readBurst)
	ours.end()
	bare.end()
	rate := func(d []time.Duration) float64 { return editorBurst / median(d).Seconds() / 1000 }
	ratio("a line of the agent, durable and at the editor", ms(median(paced[0])), ms(median(paced[1])), "ms",
		"at most 1.2")
	ratio("  in a burst", rate(burst[0]), rate(burst[1]), "1000/s", "at least 0.6")
	ratio("  against a loop of inserts", rate(burst[0]), insertRate(dir), "1000/s", "at least 0.6")
	ratio("an answer in the editor, with the agent", ms(median(answered[0])), ms(median(answered[1])), "ms",
		"two rows: at most 1")
	starts(dir, perlica)
	memory(dir, perlica, "thoughts in one turn", "think", 10_000, 90_000)
	memory(dir, perlica, "message chunks, 1,000 a turn", "flood", slices.Repeat([]int{1000}, 100)...)
}

// inTurns calls the function "do" for each editor in turn and returns the times that this function returned.
func inTurns(all []*editor, do func(*editor) []time.Duration) [][]time.Duration {
	took := make([][]time.Duration, len(all))
	for i := range editorRounds + 1 {
		for n, e := range all {
			if t := do(e); i > 0 { // The first round makes the files and fills the caches.
				took[n] = append(took[n], t...)
			}
		}
	}
	return took
}

// insertRate returns the rate at which a loop inserts the flood's lines as rows, in thousand rows per second.
func insertRate(dir string) float64 {
	log := openBare(dir)
	payload := make([]byte, 200)
	loop := repeat(editorBurst/1000, func() { log.commitRows(1000, payload) })
	compare(5, loop)
	check(log.db.Close())
	return loop.opsPerSecond()
}

// editor is a client of ACP. A program, Perlica or the relay, runs between the client and the agent.
type editor struct {
	*peer
	dir string
	id  int
}

// startEditor starts a command in a new folder with an empty environment.
func startEditor(dir string, argv ...string) *editor {
	e := &editor{dir: must(os.MkdirTemp(dir, "project"))}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = e.dir
	cmd.Env = []string{"PATH=" + dir, "HOME=" + dir, "PERLICA_HOME=" + filepath.Join(dir, "home")}
	e.peer = startCommand(cmd)
	return e
}

// sendRequest sends a request and returns its response. It passes every line before the response to the function
// "each".
func (e *editor) sendRequest(method string, params any, each func(line []byte)) []byte {
	e.id++
	e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, e.id, method, must(json.Marshal(params))))
	for {
		line := e.readLine()
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
	e.sendRequest("initialize", map[string]any{"protocolVersion": 1}, func([]byte) {})
}

func (e *editor) open() {
	e.initialize()
	e.sendRequest("session/new", map[string]any{"cwd": e.dir, "mcpServers": []any{}}, func([]byte) {})
}

func (e *editor) prompt(script string, each func(line []byte)) {
	e.sendRequest("session/prompt", map[string]any{
		"sessionId": "s", "prompt": []any{map[string]string{"type": "text", "text": script}},
	}, each)
}

// readPaced returns the delays of lines that the agent wrote one by one.
func (e *editor) readPaced() (late []time.Duration) {
	e.prompt(fmt.Sprint("stamp ", editorLines), func(line []byte) { late = append(late, time.Since(stamp(line))) })
	return late
}

// readBurst reads lines that the agent wrote in one burst. It returns the time from the prompt to each line.
func (e *editor) readBurst() []time.Duration {
	start, n := time.Now(), 0
	var last time.Time
	e.prompt(fmt.Sprint("flood ", editorBurst), func([]byte) { n, last = n+1, time.Now() })
	if n != editorBurst {
		check(fmt.Errorf("%d lines of %d came", n, editorBurst))
	}
	return []time.Duration{last.Sub(start)}
}

// answerQuestions answers the agent's permission requests. It returns the time that each answer took to reach the
// agent.
func (e *editor) answerQuestions() (took []time.Duration) {
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

// starts compares the time from the start of a process to its answer to initialize.
func starts(dir, perlica string) {
	self := must(os.Executable())
	var took [2][]time.Duration
	for i := range editorStarts + 2 {
		for n, argv := range [][]string{{perlica, "acp", "--", self, "agent"}, {self, "agent"}} {
			start := time.Now()
			e := startEditor(dir, argv...)
			e.initialize()
			if i > 1 { // The first rounds make the files and fill the caches.
				took[n] = append(took[n], time.Since(start))
			}
			e.end()
		}
	}
	ours, agent := median(took[0]), median(took[1])
	fmt.Printf("%-52s %10.2f %10.2f %-9s more  %5.2f  (at most 15)\n", "perlica acp, to the answer to initialize",
		ms(ours), ms(agent), "ms", ms(ours-agent))
}

// memory prints the resident memory of 'perlica acp' after a tenth of a session's updates and after all updates.
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

// resident returns the resident memory of a process in megabytes, or 0 if it is unknown.
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

// relay is the process of the bare relay. It commits each line as a durable row before it passes the line on. For
// each answer of the client it commits two rows. It commits up to 1,000 waiting lines of the agent together.
func relay(dir string) {
	log, agent := openBare(dir), startPeer("agent")
	var mu sync.Mutex // guards the log
	var agentSide sync.WaitGroup
	agentSide.Go(func() {
		for {
			lines, err := readWaiting(agent.out)
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
		log.commitRows(1, line)
		if isResponse(line) {
			log.commitRows(1, line)
		}
		mu.Unlock()
		must(agent.stdin.Write(line))
	}
	check(agent.stdin.Close())
	agentSide.Wait()
	check(agent.cmd.Wait())
	check(log.db.Close())
}

// readWaiting waits for a line and returns it with all other lines that are in the buffer.
func readWaiting(r *bufio.Reader) (lines [][]byte, err error) {
	for len(lines) < 1000 {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return lines, err
		}
		lines = append(lines, line)
		rest, err := r.Peek(r.Buffered()) // Peek cannot fail, because the buffer contains these bytes.
		if err != nil || bytes.IndexByte(rest, '\n') < 0 {
			return lines, err
		}
	}
	return lines, nil
}
