package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// turn answers one input with at most one call, whatever was called before: its id tells.
func (d *desk) turn(c Contact, m received) {
	b, say := d.b, d.b.say(d.key)
	if !c.Rights.Has(access.Ask) {
		d.finish(m, event.Refs{}, fact.BridgeFinished{How: endRefused}, say.MayNotAsk)
		return
	}
	waiting, over := context.WithCancel(b.turning)
	defer over()
	d.waits(over)
	if !d.fetch(waiting, &m) || !b.slots.take(waiting) {
		return // it was taken back, or the next start answers it
	}
	defer d.rise()
	if b.turning.Err() != nil || !d.claim() || d.takenBackElsewhere(m) {
		return
	}
	conv, err := d.conversation(b.hard, c)
	if err != nil {
		if b.log().Err() == nil {
			d.finish(m, event.Refs{}, fact.BridgeFinished{How: endFailed, Detail: err.Error()}, fmt.Sprintf(say.NotSent, say.Error(err)))
		}
		return
	}
	b.makeRoom(d)
	stop := make(chan kernel.Stop, 1)
	end := d.begin(m, stop)
	if b.turning.Err() != nil { // who ends the turns may have looked before this one could be stopped
		end()
		return // the next start answers it
	}
	b.info("turn", "from", c.Label(), "id", m.Message)
	res, err := conv.Run(b.hard, kernel.Turn{
		Input: kernel.Input{ID: m.input, Text: m.Text, Attachments: m.Files, Source: d.key.Channel, Sender: c.Label()},
		Wait:  true, Permissions: b.set().Permissions, AnswerIn: b.set().AnswerIn,
		Stop: stop, Show: d.show,
	})
	m.sign = end()
	var stopped *kernel.StoppedError
	switch {
	case err == nil:
		d.tell(m, res)
	case b.log().Err() != nil:
		b.fail(err) // the next start finds out what became of it
	case errors.As(err, &stopped) && b.turning.Err() != nil:
		// Nothing was sent; the next start answers it.
	case errors.Is(err, kernel.ErrInputRunning):
		d.finish(m, event.Refs{}, fact.BridgeFinished{How: endUnknown, Detail: err.Error()},
			say.Elsewhere)
	default:
		d.finish(m, event.Refs{}, fact.BridgeFinished{How: endFailed, Detail: err.Error()}, fmt.Sprintf(say.NotSent, say.Error(err)))
	}
}

// takenBackElsewhere reports whether another front end took a message back that waited, and says so.
func (d *desk) takenBackElsewhere(m received) bool {
	e, ok, err := d.b.inQueue(d.b.hard, m.input)
	if err != nil {
		d.b.fail(err)
		return true
	}
	if !ok || e.Type != event.MessageWithdrawn {
		return false
	}
	f, _ := fact.Decode[fact.MessageWithdrawn](e) // without it nobody is named
	d.finish(m, event.Refs{}, fact.BridgeFinished{How: endBack, Detail: f.Where},
		fmt.Sprintf(d.b.say(d.key).TakenBackBy, literal(f.By), literal(f.Where)))
	return true
}

// begin marks a message as the one under way; the returned function ends that, and returns the end of its sign of
// progress, or nil.
func (d *desk) begin(m received, stop chan kernel.Stop) (end func() *fact.BridgeQueued) {
	s := newStatus(d, m) // before mu: the bridge's is taken ahead of a desk's
	d.mu.Lock()
	d.now, d.stop, d.sayings = &m, stop, nil
	d.status = s
	d.mu.Unlock()
	return func() *fact.BridgeQueued {
		s.stop()
		d.mu.Lock()
		d.now, d.stop, d.status, d.sign, d.lastUsed = nil, nil, nil, "", d.b.opt.Now()
		d.mu.Unlock()
		return s.over()
	}
}

// tell finishes a message whose call has an outcome.
func (d *desk) tell(m received, res kernel.Result) {
	refs, say := event.Refs{Session: res.Session, Run: res.Run}, d.b.say(d.key)
	switch res.Outcome {
	case kernel.OutcomeResponded:
		text := res.Text
		files, rows := d.parts(m, res)
		if strings.TrimSpace(text) == "" && len(res.Content) == 0 {
			text = say.Silent
		}
		for _, more := range []string{rows, d.said(), ended(say, res)} {
			if more != "" {
				text = strings.TrimLeft(strings.TrimRight(text, "\n")+"\n\n"+more, "\n")
			}
		}
		d.finish(m, refs, fact.BridgeFinished{How: endAnswered}, text, append(d.file(m, res), files...)...)
	case kernel.OutcomeProviderError:
		if res.Stopped != nil && res.Calls == 0 { // before anything was sent: that is no failure
			d.finish(m, refs, fact.BridgeFinished{How: endFailed, Detail: res.Err.Error()}, ended(say, res))
			return
		}
		d.finish(m, refs, fact.BridgeFinished{How: endFailed, Detail: res.Err.Error()},
			strings.TrimRight(fmt.Sprintf(say.Failed, say.Error(res.Err), partial(say, res))+"\n\n"+d.said(), "\n"))
	default:
		known := d.known(res)
		d.finish(m, refs, fact.BridgeFinished{How: endUnknown, Detail: known}, fmt.Sprintf(say.Unknown, known, partial(say, res), shortRun(res.Run)))
	}
}

func shortRun(id event.RunID) string { return string(id[max(0, len(id)-8):]) }

// ended says why a turn ended, where that is not plain.
func ended(say *language.Sentences, res kernel.Result) string {
	var notes []string
	switch {
	case res.Stopped != nil:
		notes = append(notes, stopped(say, *res.Stopped))
	case res.StopReason == "max_tokens":
		notes = append(notes, say.TokenLimit)
	case res.StopReason != "end_turn":
		notes = append(notes, cmp.Or(say.StopReasons[res.StopReason], fmt.Sprintf(say.EndedWith, res.StopReason)))
	}
	if n := len(res.Unasked) - res.Freed(); n > 0 {
		notes = append(notes, fmt.Sprintf(say.Unasked, n))
	}
	if n := res.Freed(); n > 0 {
		notes = append(notes, fmt.Sprintf(say.Freed, n))
	}
	if res.Pruned {
		notes = append(notes, say.Pruned)
	}
	return strings.Join(notes, "\n")
}

// stopped says who stopped a turn, or else why it was.
func stopped(say *language.Sentences, s kernel.Stop) string {
	if s.Person != "" {
		return fmt.Sprintf(say.StoppedBy, literal(s.Person))
	}
	return fmt.Sprintf(say.StoppedBecause, cmp.Or(say.Reasons[s.Why], say.Translate(s.Why)))
}

func partial(say *language.Sentences, res kernel.Result) string {
	if strings.TrimSpace(res.Text) == "" {
		return ""
	}
	return fmt.Sprintf(say.Partial, res.Text)
}

// known is what is known of a call whose outcome is not.
func (d *desk) known(res kernel.Result) string {
	e, ok, err := d.b.log().Last(d.b.hard, event.Query{Run: res.Run, Types: []event.Type{event.OutcomeUnknown}})
	if err == nil && ok && res.Run != "" {
		if f, err := fact.Decode[fact.Failed](e); err == nil && f.Known != "" {
			return d.b.say(d.key).Translate(f.Known)
		}
	}
	if res.Err != nil {
		return res.Err.Error()
	}
	return d.b.say(d.key).Died
}

// file is the whole answer as a file, where it is long and the platform takes files.
func (d *desk) file(m received, res kernel.Result) []fact.BridgeQueued {
	limits := d.b.channels[d.key.Channel]
	if limits == nil || !limits.Limits().Files || res.Pruned {
		return nil
	}
	say := d.b.say(d.key)
	text, parts := say.WholeFile, len(d.b.cut(d.key.Channel, res.Text))
	switch {
	case parts < 4:
		return nil
	case parts > mostParts:
		text = say.CutFile
	}
	return []fact.BridgeQueued{{Peer: d.key, Chat: m.Chat, Kind: outReply, Text: text, File: "answer.md"}}
}

// Most of what is sent of one answer as files, and the largest of them: what platforms take from a bot.
const (
	mostFiles   = 10
	largestFile = 20_000_000
	longestRow  = 300 // of the words beside a file
)

// parts are the files that the agent embedded in its answer, and a row for each piece that is not sent: links,
// which nothing opens, and what the platform or the limits leave out.
func (d *desk) parts(m received, res kernel.Result) (files []fact.BridgeQueued, rows string) {
	ch, say := d.b.channels[d.key.Channel], d.b.say(d.key)
	var left []string
	for i, block := range res.Content {
		row := strings.ReplaceAll(strings.Join(strings.Fields(described(say, block.Noun(), block.String())), " "), "`", "'")
		if r := []rune(row); len(r) > longestRow {
			row = string(r[:longestRow]) + "…"
		}
		if block.Size == 0 || block.Link() || block.Size > largestFile || len(files) == mostFiles || ch == nil || !ch.Limits().Files {
			left = append(left, "📎 `"+row+"`")
			continue
		}
		files = append(files, fact.BridgeQueued{
			Peer: d.key, Chat: m.Chat, Kind: outReply, Text: d.b.render(d.key.Channel, "📎 `"+row+"`"), Part: i + 1,
			File: fmt.Sprintf("answer-%d%s", i+1, block.Extension()),
		})
	}
	return files, strings.Join(left, "\n\n")
}

// described is a piece of an answer that is no text, with what Perlica says of it in the language.
func described(say *language.Sentences, noun, text string) string {
	const unread = ", nothing in it can be read"
	text, none := strings.CutSuffix(text, unread)
	if text = say.Form(noun) + strings.TrimPrefix(text, noun); none {
		text += say.Form(unread)
	}
	return text
}

// How often the platform may fail at a file, and how often it is tried in all, before its message goes
// without it: while the platform cannot be reached, that says nothing of the file.
const (
	fetchFaults = 3
	fetchTries  = 12
)

// fetch brings the files of a message here, and puts on record which. A slow one holds up nothing but its
// contact's line. It returns false if ctx ends before that is done.
func (d *desk) fetch(ctx context.Context, m *received) bool {
	if len(m.Remote) == 0 {
		return true
	}
	f := fact.FilesFetched{Text: m.Text, Files: slices.Clone(m.Files)}
	for i, file := range m.Remote {
		path, err := d.fetchOne(ctx, m, len(m.Files)+i, file)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			f.Text = strings.TrimSpace(fmt.Sprintf("%s\n\n[%s could not be fetched: %s]", f.Text, file.Name, missing(err)))
		default:
			f.Files = append(f.Files, path)
		}
	}
	if d.b.commit(d.b.hard, event.NewFact(event.FilesFetched, "perlica", event.Refs{Input: m.input}, f)) != nil {
		return false // it ends the bridge
	}
	m.Text, m.Files, m.Remote = f.Text, f.Files, nil
	return true
}

// fetchOne fetches a file, and tries it again where that may help.
func (d *desk) fetchOne(ctx context.Context, m *received, n int, f fact.RemoteFile) (path string, err error) {
	ch, ok := d.b.channels[d.key.Channel].(channel.Fetcher)
	if !ok {
		return "", &channel.RejectedError{Why: "the channel hands out no files"}
	}
	var refused *channel.RejectedError
	faults := 0
	for try, wait := 1, d.b.opt.Backoff; ; try++ {
		answers := d.b.answers(d.key.Channel)
		path, err = ch.Fetch(ctx, m.Message, n, channel.File{Name: f.Name, MIME: f.MIME, Remote: f.ID, Size: f.Size})
		if err == nil || errors.As(err, &refused) || ctx.Err() != nil {
			return path, err
		}
		d.b.warn("a file could not be fetched", "channel", d.key.Channel, "error", err.Error())
		if !errors.Is(err, channel.ErrNotSent) {
			faults++
		}
		if faults == fetchFaults || try == fetchTries {
			return "", err
		}
		if wait, ok = d.b.backOff(ctx, wait, answers, err); !ok {
			return "", ctx.Err()
		}
	}
}

// missing says to the person who sent a file why it is not there.
func missing(err error) string {
	var refused *channel.RejectedError
	if errors.As(err, &refused) {
		return refused.Why
	}
	return "the download failed"
}

var errNotYours = errors.New("you may not answer this question")

// answer gives the answer that a message was understood as.
func (d *desk) answer(c Contact, m received) {
	there, err := d.b.thereOf(d.b.hard, m.Question)
	if err == nil && there != nil {
		d.b.desks.Go(func() { // nothing that is said here waits for a hub
			defer d.b.answering(m.Question, -1)
			d.answerThere(c, m, there)
		})
		return
	}
	q, err := interaction.Find(d.b.hard, &d.b.log().Reader, m.Question)
	if err == nil && !d.b.mayAnswer(c, m.Question) {
		err = errNotYours
	}
	if err == nil {
		err = d.b.opt.Runner.AnswerQuestion(context.WithoutCancel(d.b.hard), q,
			interaction.Answer{Option: m.Option, Text: m.Word, Always: m.Always, By: c.Label(), Where: d.key.Channel})
	}
	switch {
	case err == nil: // closing the card says it
		d.finish(m, event.Refs{Interaction: m.Question}, fact.BridgeFinished{How: endDone}, "")
	case d.b.log().Err() != nil:
		d.b.fail(err)
	default:
		d.finish(m, event.Refs{Interaction: m.Question}, fact.BridgeFinished{How: endRefused, Detail: err.Error()}, fmt.Sprintf(d.b.say(d.key).AnswerRefused, d.b.say(d.key).Error(err)))
	}
}
