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
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// What the agent is asked in each turn: it says one thing, and answers.
const (
	warmRounds = 300
	warmText   = "hello"
	warmPause  = 10 * time.Millisecond // no one types faster; what a turn leaves to be done is done then
)

// warm compares a turn of a living session of the predictable agent, from the input to the
// outcome on disk and to the first piece of the answer, with the same turn over a line proxy that
// makes two durable appends: before the prompt, and behind the answer or before the first piece
// is shown. They take turns, so that what else the machine does meets all.
func warm(dir string, _ options) {
	warmTurns(dir, true, "a warm turn, durable both ways")
	warmTurns(dir, false, "  with log.stream_sync = false")
}

func warmTurns(dir string, streamSync bool, what string) {
	r, project := runner(dir, streamSync)
	agent := agents.Agent{Agent: provider.Agent{ID: "bench", Command: []string{must(os.Executable()), "predictable"}, Orderly: true}}
	c := must(r.Converse(context.Background(), kernel.Setup{Agent: agent, Dir: project}, 0, "bench"))
	answers, lines := startProxy(wholeAnswers, dir), startProxy(firstLines, dir)
	var all, first, bareAll, bareFirst []time.Duration
	for i := range warmRounds + 20 {
		time.Sleep(warmPause)
		a, f := warmOurs(c)
		time.Sleep(warmPause)
		ba, _ := answers.turn()
		time.Sleep(warmPause)
		_, bf := lines.turn()
		if i >= 20 { // the first make the files and warm the caches
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
		Show: func(n kernel.Notice) {
			if _, ok := n.(kernel.Updated); ok && first == 0 {
				first = time.Since(start)
			}
		},
	}))
	all = time.Since(start)
	if res.Outcome != kernel.OutcomeResponded || !strings.HasPrefix(res.Text, "You said") {
		check(fmt.Errorf("outcome %s: %v", res.Outcome, res.Err))
	}
	return all, first
}

// A lineProxy stands between the caller and an agent, as Perlica does, and is a process: this
// program with "proxy", how it appends, and a folder.
type lineProxy struct {
	*peer
	id int
}

// How a proxy appends, besides what is asked, before it passes that on.
const (
	wholeAnswers = "answers" // the whole answer, before the response is passed on
	firstLines   = "lines"   // the first line of the answer, before it is passed on
)

// startProxy starts a proxy and opens a session of the same agent.
func startProxy(how, dir string) *lineProxy {
	l := &lineProxy{peer: startPeer("proxy", how, dir)}
	l.ask(l.request(`"method":"initialize","params":{"protocolVersion":1}`))
	l.ask(l.request(fmt.Sprintf(`"method":"session/new","params":{"cwd":%q,"mcpServers":[]}`, dir)))
	return l
}

func (p *lineProxy) request(members string) string {
	p.id++
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, p.id, members)
}

// turn asks, and reads the answer to its end.
func (p *lineProxy) turn() (all, first time.Duration) {
	start := time.Now()
	p.send(p.request(`"method":"session/prompt","params":{"sessionId":"session-1","prompt":[{"type":"text","text":"` + warmText + `"}]}`))
	for {
		line := p.line()
		if first == 0 {
			first = time.Since(start)
		}
		if isResponse(line) {
			return time.Since(start), first
		}
	}
}

func isResponse(line []byte) bool { return !bytes.Contains(line, []byte(`"method"`)) }

// proxy is the proxy's process.
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
			log.commit(1, line)
		}
		must(agent.stdin.Write(line))
		passAnswer(agent, log, durable, how)
	}
}

// passAnswer passes the agent's lines on, up to its response.
func passAnswer(agent *peer, log *bareLog, durable bool, how string) {
	var answer bytes.Buffer
	for ended := false; !ended; {
		line := agent.line()
		answer.Write(line)
		ended = isResponse(line)
		if durable && (how == wholeAnswers && ended || how == firstLines && answer.Len() == len(line)) {
			log.commit(1, answer.Bytes())
		}
		must(os.Stdout.Write(line))
	}
}
