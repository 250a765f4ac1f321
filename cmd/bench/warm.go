package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// warmTurn is what the agent is asked: some updates, and its answer.
const (
	warmRounds  = 300
	warmUpdates = 5
	warmPause   = 10 * time.Millisecond // nobody types faster; what a turn leaves to be done is done then
)

// warm compares a turn of a living agent session, from the input to the outcome on disk and to
// the first piece of the answer, with the same over a line proxy that makes two durable appends:
// before the prompt, and behind the answer or before the first piece is shown. They take turns,
// so that what else the machine does meets all.
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
	agent := kernel.Agent{Agent: provider.Agent{ID: "bench", Command: []string{self, "agent"}, Orderly: true}}
	c, err := r.Converse(context.Background(), kernel.Setup{Agent: agent, Dir: project}, 0, "bench")
	if err != nil {
		return err
	}
	bare, err := openBare(dir)
	if err != nil {
		return err
	}
	p, err := startPeer()
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
		ba, _, err := warmBare(p, bare, false)
		if err != nil {
			return err
		}
		time.Sleep(warmPause)
		_, bf, err := warmBare(p, bare, true)
		if err != nil {
			return err
		}
		if i >= 20 { // the first make the files and warm the caches
			all, first, bareAll, bareFirst = append(all, a), append(first, f), append(bareAll, ba), append(bareFirst, bf)
		}
	}
	if err := c.Close(context.Background()); err != nil {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	if err := p.end(); err != nil {
		return err
	}
	what := "a warm turn, durable both ways"
	if !streamSync {
		what = "  with log.stream_sync = false"
	}
	ratio(what, ms(median(all)), ms(median(bareAll)), "ms", "at most 1.25")
	ratio("  its first chunk, durable and shown", ms(median(first)), ms(median(bareFirst)), "ms", "at most 1.25")
	return bare.db.Close()
}

func warmOurs(c *kernel.Conversation) (all, first time.Duration, err error) {
	start := time.Now()
	res, err := c.Run(context.Background(), kernel.Turn{
		Input:       kernel.Input{Text: fmt.Sprint("flood ", warmUpdates), Source: "bench", Sender: "bench"},
		Permissions: policy.ModeDeny,
		Show: func(n kernel.Notice) {
			if _, ok := n.(kernel.Updated); ok && first == 0 {
				first = time.Since(start)
			}
		},
	})
	all = time.Since(start)
	if err == nil && (res.Outcome != kernel.OutcomeResponded || !strings.HasPrefix(res.Text, "x")) {
		err = fmt.Errorf("outcome %s: %v", res.Outcome, res.Err)
	}
	return all, first, err
}

// warmBare appends what is asked, sends it, and appends either the answer, which it has passed on
// line by line, or its first line, before it passes that on.
func warmBare(p *peer, bare *bareLog, early bool) (all, first time.Duration, err error) {
	start := time.Now()
	line := fmt.Sprintf(`{"id":1,"method":"session/prompt","params":{"prompt":[{"text":"flood %d"}]}}`, warmUpdates)
	if err := bare.commit(1, []byte(line)); err != nil {
		return 0, 0, err
	}
	if err := p.send(line); err != nil {
		return 0, 0, err
	}
	var answer bytes.Buffer
	for i := range warmUpdates + 1 {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return 0, 0, err
		}
		answer.Write(line)
		if i == 0 {
			if early {
				if err := bare.commit(1, line); err != nil {
					return 0, 0, err
				}
			}
			first = time.Since(start)
		}
	}
	if !early {
		if err := bare.commit(1, answer.Bytes()); err != nil {
			return 0, 0, err
		}
	}
	return time.Since(start), first, nil
}
