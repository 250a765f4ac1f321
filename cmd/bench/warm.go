package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// The agent gives the same short answer in each turn.
const (
	warmRounds = 300
	warmText   = "hello"
	// warmPause is the pause before each turn. Perlica finishes the work of the last turn in this time, and no person
	// types faster.
	warmPause = 10 * time.Millisecond
)

// warm compares a turn in a running session of the predictable agent with the same turn over a line proxy. It
// measures the time until the outcome is on disk and the time until the first part of the answer is shown. The proxy
// makes two durable appends. The first comes before the prompt, and the second after the answer or before its first
// part. Perlica and the proxy take turns, so that other work on the machine affects both.
func warm(dir string, _ options) {
	warmTurns(dir, true, "a warm turn, durable both ways")
	warmTurns(dir, false, "  with log.stream_sync = false")
}

func warmTurns(dir string, streamSync bool, what string) {
	r, project := runner(dir, streamSync)
	agent := agents.Agent{Agent: provider.Agent{ID: "bench", Command: []string{must(os.Executable()), "predictable"},
		Orderly: true}}
	c := must(r.Converse(context.Background(), kernel.Setup{Agent: agent, Dir: project}, 0, "bench"))
	answers, lines := startProxy(wholeAnswers, dir), startProxy(firstLines, dir)
	var all, first, bareAll, bareFirst []time.Duration
	for i := range warmRounds + 20 {
		time.Sleep(warmPause)
		a, f := warmOurs(c)
		time.Sleep(warmPause)
		ba, _ := answers.runTurn()
		time.Sleep(warmPause)
		_, bf := lines.runTurn()
		if i >= 20 { // The first rounds make the files and fill the caches.
			all, first, bareAll, bareFirst = append(all, a), append(first, f), append(bareAll, ba), append(bareFirst, bf)
		}
	}
	check(errors.Join(c.Close(context.Background()), r.Close()))
	answers.end()
	lines.end()
	ratio(what, ms(median(all)), ms(median(bareAll)), "ms", "at most 1.25")
	ratio("  its first chunk, durable and shown", ms(median(first)), ms(median(bareFirst)), "ms", "at most 1.25")
}

func warmOurs(c *kernel.Conversation) (all, first time.Duration) {
	start := time.Now()
	res := must(c.Run(context.Background(), kernel.Turn{
		Input:       kernel.Input{Text: warmText, Source: "bench", Sender: "bench"},
		Permissions: policy.ModeDeny,
		Show: func(n record.Notice) {
			if _, ok := n.(record.Updated); ok && first == 0 {
				first = time.Since(start)
			}
		},
	}))
	all = time.Since(start)
	if res.Outcome != record.OutcomeResponded || !strings.HasPrefix(res.Text, "You said") {
		check(fmt.Errorf("outcome %s: %v", res.Outcome, res.Err))
	}
	return all, first
}

// lineProxy is a process that passes lines between the caller and an agent and records some of them. It is a process
// of this program with the arguments "proxy", the kind of its appends, and a folder.
type lineProxy struct {
	*peer
	id int
}

// These are the kinds of the proxy's second append. The proxy makes this append before it passes the text on.
const (
	wholeAnswers = "answers" // appends the whole answer before the response
	firstLines   = "lines"   // appends the first line of the answer
)

// startProxy starts a proxy and opens a session of the same agent.
func startProxy(how, dir string) *lineProxy {
	l := &lineProxy{peer: startPeer("proxy", how, dir)}
	l.askLine(l.request(`"method":"initialize","params":{"protocolVersion":1}`))
	l.askLine(l.request(fmt.Sprintf(`"method":"session/new","params":{"cwd":%q,"mcpServers":[]}`, dir)))
	return l
}

func (p *lineProxy) request(members string) string {
	p.id++
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, p.id, members)
}

// runTurn sends a prompt and reads the whole answer.
func (p *lineProxy) runTurn() (all, first time.Duration) {
	start := time.Now()
	p.send(p.request(`"method":"session/prompt","params":{"sessionId":"session-1","prompt":[{"type":"text","text":"` +
		warmText + `"}]}`))
	for {
		line := p.readLine()
		if first == 0 {
			first = time.Since(start)
		}
		if isResponse(line) {
			return time.Since(start), first
		}
	}
}

func isResponse(line []byte) bool { return !bytes.Contains(line, []byte(`"method"`)) }

// proxy is the main function of the proxy's process.
func proxy(how, dir string) {
	log, agent := openBare(dir), startPeer("predictable")
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			agent.end()
			check(log.db.Close())
			return
		}
		check(err)
		durable := bytes.Contains(line, []byte("session/prompt"))
		if durable {
			log.commitRows(1, line)
		}
		must(agent.stdin.Write(line))
		passAnswer(agent, log, durable, how)
	}
}

// passAnswer passes the agent's lines on until the response has been passed on.
func passAnswer(agent *peer, log *bareLog, durable bool, how string) {
	var answer bytes.Buffer
	for ended := false; !ended; {
		line := agent.readLine()
		answer.Write(line)
		ended = isResponse(line)
		if durable && (how == wholeAnswers && ended || how == firstLines && answer.Len() == len(line)) {
			log.commitRows(1, answer.Bytes())
		}
		must(os.Stdout.Write(line))
	}
}
