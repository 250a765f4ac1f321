package service

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/fact/bridge"
	"github.com/perlica/perlica/service/access"
)

// turn answers one input with at most one call, whatever was called before: its id tells.
func (d *desk) turn(c Contact, m received) {
	b := d.b
	if !c.Rights.Has(access.Ask) {
		d.finish(m, event.Refs{}, bridge.Finished{How: endRefused}, "You may not send inputs to the agent here.")
		return
	}
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-b.turning.Done():
		return // the next start answers it
	}
	if b.turning.Err() != nil {
		return
	}
	conv, err := d.conversation(b.hard, c)
	if err != nil {
		if b.log().Err() == nil {
			d.finish(m, event.Refs{}, bridge.Finished{How: endFailed, Detail: err.Error()}, notSent(err))
		}
		return
	}
	b.makeRoom(d)
	stop := make(chan kernel.Stop, 1)
	end := d.begin(m, stop)
	b.info("turn", "from", c.Label(), "id", m.Message)
	res, err := conv.Run(b.hard, kernel.Turn{
		Input: kernel.Input{ID: m.input, Text: m.Text, Attachments: m.Files, Source: d.key.Channel, Sender: c.Label()},
		Wait:  true, Permissions: b.set().Permissions, AnswerIn: b.set().AnswerIn,
		Stop: stop, Show: d.show,
	})
	end()
	var stopped *kernel.StoppedError
	switch {
	case err == nil:
		d.tell(m, res)
	case b.log().Err() != nil:
		b.fail(err) // the next start finds out what became of it
	case errors.As(err, &stopped) && b.turning.Err() != nil:
		// Nothing was sent; the next start answers it.
	case errors.Is(err, kernel.ErrInputRunning):
		d.finish(m, event.Refs{}, bridge.Finished{How: endUnknown, Detail: err.Error()},
			"⚠️ Another process calls the agent with this very message. What becomes of it is on its record; it is not called again here.")
	default:
		d.finish(m, event.Refs{}, bridge.Finished{How: endFailed, Detail: err.Error()}, notSent(err))
	}
}

func notSent(err error) string {
	return "⚠️ This message was not sent to the agent: " + err.Error() + "\n\nSend it again if you want to."
}

// begin marks a message as the one under way; the returned function ends that.
func (d *desk) begin(m received, stop chan kernel.Stop) (end func()) {
	d.mu.Lock()
	d.now, d.stop = &m, stop
	d.status = newStatus(d, m)
	s := d.status
	d.mu.Unlock()
	return func() {
		s.end()
		d.mu.Lock()
		d.now, d.stop, d.status, d.lastUsed = nil, nil, nil, d.b.opt.Now()
		d.mu.Unlock()
	}
}

// tell finishes a message whose call has an outcome.
func (d *desk) tell(m received, res kernel.Result) {
	refs := event.Refs{Session: res.Session, Run: res.Run}
	switch res.Outcome {
	case kernel.OutcomeResponded:
		text := res.Text
		files, rows := d.parts(m, res)
		if strings.TrimSpace(text) == "" && len(res.Content) == 0 {
			text = "(The agent ended its turn without a word.)"
		}
		for _, more := range []string{rows, ended(res)} {
			if more != "" {
				text = strings.TrimLeft(strings.TrimRight(text, "\n")+"\n\n"+more, "\n")
			}
		}
		d.finish(m, refs, bridge.Finished{How: endAnswered}, text, append(d.file(m, res), files...)...)
	case kernel.OutcomeProviderError:
		if res.Stopped != nil && res.Calls == 0 { // before anything was sent: that is no failure
			d.finish(m, refs, bridge.Finished{How: endFailed, Detail: res.Err.Error()}, ended(res))
			return
		}
		d.finish(m, refs, bridge.Finished{How: endFailed, Detail: res.Err.Error()},
			"⚠️ The agent failed: "+res.Err.Error()+partial(res)+"\n\nNothing is retried. Send the message again if you want to.")
	default:
		known := d.known(res)
		d.finish(m, refs, bridge.Finished{How: endUnknown, Detail: known}, "⚠️ What became of this message is not known, and it will not be sent again: "+
			known+partial(res)+"\n\nDecide yourself whether to send it anew. The record of it: `/log show "+shortRun(res.Run)+"`")
	}
}

func shortRun(id event.RunID) string { return string(id[max(0, len(id)-8):]) }

// ended says why a turn ended, where that is not plain.
func ended(res kernel.Result) string {
	var notes []string
	switch {
	case res.Stopped != nil:
		notes = append(notes, "⏹ The turn was stopped: "+res.Stopped.Why+".")
	case res.StopReason == "max_tokens":
		notes = append(notes, "✂️ The agent hit its token limit.")
	case res.StopReason != "end_turn":
		notes = append(notes, "⏹ The turn ended with `"+res.StopReason+"`.")
	}
	if n := len(res.Unasked) - res.Freed(); n > 0 {
		notes = append(notes, fmt.Sprintf("⚠️ %d of its tool calls ran without a question.", n))
	}
	if n := res.Freed(); n > 0 {
		notes = append(notes, fmt.Sprintf("⚠️ %d of its tool calls ran unasked: a yes for good freed them.", n))
	}
	if res.Pruned {
		notes = append(notes, "Part of the answer was removed from the record.")
	}
	return strings.Join(notes, "\n")
}

func partial(res kernel.Result) string {
	if strings.TrimSpace(res.Text) == "" {
		return ""
	}
	return "\n\nThis much had come:\n\n" + res.Text
}

// known is what is known of a call whose outcome is not.
func (d *desk) known(res kernel.Result) string {
	e, ok, err := d.b.log().Last(d.b.hard, event.Query{Run: res.Run, Types: []event.Type{event.OutcomeUnknown}})
	if err == nil && ok {
		if f, err := fact.Decode[fact.Failed](e); err == nil && f.Known != "" {
			return f.Known
		}
	}
	if res.Err != nil {
		return res.Err.Error()
	}
	return "the agent or the bridge died while it was being answered"
}

// file is the whole answer as a file, where it is long and the platform takes files.
func (d *desk) file(m received, res kernel.Result) []bridge.Queued {
	limits := d.b.channels[d.key.Channel]
	if limits == nil || !limits.Limits().Files || res.Pruned {
		return nil
	}
	text, parts := "The whole answer as a file.", len(d.b.cut(d.key.Channel, res.Text))
	switch {
	case parts < 4:
		return nil
	case parts > mostParts:
		text = "The whole answer as a file. Only its beginning and its end are above."
	}
	return []bridge.Queued{{Peer: d.key, Chat: m.Chat, Kind: outReply, Text: text, File: "answer.md"}}
}

// Most of what is sent of one answer as files, and the largest of them: what platforms take from a bot.
const (
	mostFiles   = 10
	largestFile = 20_000_000
	longestRow  = 300 // of the words beside a file
)

// parts are the files that the agent embedded in its answer, and a row for each piece that is not sent: links,
// which nothing opens, and what the platform or the limits leave out.
func (d *desk) parts(m received, res kernel.Result) (files []bridge.Queued, rows string) {
	ch := d.b.channels[d.key.Channel]
	var left []string
	for i, block := range res.Content {
		row := strings.ReplaceAll(strings.Join(strings.Fields(block.String()), " "), "`", "'")
		if r := []rune(row); len(r) > longestRow {
			row = string(r[:longestRow]) + "…"
		}
		if block.Size == 0 || block.Link() || block.Size > largestFile || len(files) == mostFiles || ch == nil || !ch.Limits().Files {
			left = append(left, "📎 `"+row+"`")
			continue
		}
		files = append(files, bridge.Queued{
			Peer: d.key, Chat: m.Chat, Kind: outReply, Text: d.b.render(d.key.Channel, "📎 `"+row+"`"), Part: i + 1,
			File: fmt.Sprintf("answer-%d%s", i+1, block.Extension()),
		})
	}
	return files, strings.Join(left, "\n\n")
}

// answer gives the answer that a message was understood as.
func (d *desk) answer(c Contact, m received) {
	q, err := interaction.Find(d.b.hard, &d.b.log().Reader, m.Question)
	if err == nil && !d.b.mayAnswer(c, m.Question) {
		err = errors.New("you may not answer this question")
	}
	if err == nil {
		err = d.b.opt.Runner.AnswerQuestion(context.WithoutCancel(d.b.hard), q,
			interaction.Answer{Option: m.Option, Text: m.Word, Always: m.Always, By: c.Label(), Where: d.key.Channel})
	}
	switch {
	case err == nil: // closing the card says it
		d.finish(m, event.Refs{Interaction: m.Question}, bridge.Finished{How: endDone}, "")
	case d.b.log().Err() != nil:
		d.b.fail(err)
	default:
		d.finish(m, event.Refs{Interaction: m.Question}, bridge.Finished{How: endRefused, Detail: err.Error()}, "The answer does not count: "+err.Error())
	}
}
