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
func warm(dir string) error {
	for _, sync := range []bool{true, false} {
		if err := warmTurns(dir, sync); err != nil {
			return err
		}
	}
	return nil
}

func warmTurns(dir string, streamSync bool) error {
	r, project, err := runner(dir, streamSync)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	agent := agents.Agent{Agent: provider.Agent{ID: "bench", Command: []string{self, "predictable"}, Orderly: true}}
	c, err := r.Converse(context.Background(), kernel.Setup{Agent: agent, Dir: project}, 0, "bench")
	if err != nil {
		return err
	}
	answers, err := startProxy(wholeAnswers, dir)
	if err != nil {
		return err
	}
	lines, err := startProxy(firstLines, dir)
	if err != nil {
		return err
	}
	var all, first, bareAll, bareFirst []time.Duration
	for i := range warmRounds + 20 {
		time.Sleep(warmPause)
		a, f, err := warmOurs(c)
		if err != nil {
			return err
		}
		time.Sleep(warmPause)
		ba, _, err := answers.turn()
		if err != nil {
			return err
		}
		time.Sleep(warmPause)
		_, bf, err := lines.turn()
		if err != nil {
			return err
		}
		if i >= 20 { // the first make the files and warm the caches
			all, first, bareAll, bareFirst = append(all, a), append(first, f), append(bareAll, ba), append(bareFirst, bf)
		}
	}
	if err := errors.Join(c.Close(context.Background()), r.Close(), answers.end(), lines.end()); err != nil {
		return err
	}
	what := "a warm turn, durable both ways"
	if !streamSync {
		what = "  with log.stream_sync = false"
	}
	ratio(what, ms(median(all)), ms(median(bareAll)), "ms", "at most 1.25")
	ratio("  its first chunk, durable and shown", ms(median(first)), ms(median(bareFirst)), "ms", "at most 1.25")
	return nil
}

func warmOurs(c *kernel.Conversation) (all, first time.Duration, err error) {
	start := time.Now()
	res, err := c.Run(context.Background(), kernel.Turn{
		Input:       kernel.Input{Text: warmText, Source: "bench", Sender: "bench"},
		Permissions: policy.ModeDeny,
		Show: func(n kernel.Notice) {
			if _, ok := n.(kernel.Updated); ok && first == 0 {
				first = time.Since(start)
			}
		},
	})
	all = time.Since(start)
	if err == nil && (res.Outcome != kernel.OutcomeResponded || !strings.HasPrefix(res.Text, "You said")) {
		err = fmt.Errorf("outcome %s: %v", res.Outcome, res.Err)
	}
	return all, first, err
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
func startProxy(how, dir string) (*lineProxy, error) {
	p, err := startPeer("proxy", how, dir)
	if err != nil {
		return nil, err
	}
	l := &lineProxy{peer: p}
	for _, request := range []string{
		`"method":"initialize","params":{"protocolVersion":1}`,
		fmt.Sprintf(`"method":"session/new","params":{"cwd":%q,"mcpServers":[]}`, dir),
	} {
		if err := l.ask(l.line(request)); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (p *lineProxy) line(request string) string {
	p.id++
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, p.id, request)
}

// turn asks, and reads the answer to its end.
func (p *lineProxy) turn() (all, first time.Duration, err error) {
	start := time.Now()
	line := p.line(`"method":"session/prompt","params":{"sessionId":"session-1","prompt":[{"type":"text","text":"` + warmText + `"}]}`)
	if err := p.send(line); err != nil {
		return 0, 0, err
	}
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return 0, 0, err
		}
		if first == 0 {
			first = time.Since(start)
		}
		if isResponse(line) {
			return time.Since(start), first, nil
		}
	}
}

func isResponse(line []byte) bool { return !bytes.Contains(line, []byte(`"method"`)) }

// proxy is the proxy's process.
func proxy(how, dir string) error {
	log, err := openBare(dir)
	if err != nil {
		return err
	}
	agent, err := startPeer("predictable")
	if err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return errors.Join(agent.end(), log.db.Close())
		}
		if err != nil {
			return err
		}
		durable := bytes.Contains(line, []byte("session/prompt"))
		if durable {
			if err := log.commit(1, line); err != nil {
				return err
			}
		}
		if _, err := agent.stdin.Write(line); err != nil {
			return err
		}
		if err := passAnswer(agent, log, durable, how); err != nil {
			return err
		}
	}
}

// passAnswer passes the agent's lines on, up to its response.
func passAnswer(agent *peer, log *bareLog, durable bool, how string) error {
	var answer bytes.Buffer
	for ended := false; !ended; {
		line, err := agent.out.ReadBytes('\n')
		if err != nil {
			return err
		}
		answer.Write(line)
		ended = isResponse(line)
		if durable && (how == wholeAnswers && ended || how == firstLines && answer.Len() == len(line)) {
			if err := log.commit(1, answer.Bytes()); err != nil {
				return err
			}
		}
		if _, err := os.Stdout.Write(line); err != nil {
			return err
		}
	}
	return nil
}
