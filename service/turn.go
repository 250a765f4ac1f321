package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// runTurn answers one input with at most one call. If the input was called before, runTurn makes no call and reports
// the recorded result.
func (ib *inbox) runTurn(c Contact, m received) {
	b, say := ib.b, ib.b.sentencesFor(ib.key)
	if !c.Rights.Has(access.Ask) {
		ib.finishMessage(m, event.Refs{}, fact.BridgeFinished{How: endRefused}, say.MayNotAsk)
		return
	}
	waiting, over := context.WithCancel(b.turning)
	defer over()
	ib.setGiveUp(over)
	if !ib.fetchFiles(waiting, &m) || !b.slots.takeSlot(waiting) {
		return // the message was taken back, or the next start answers it
	}
	defer ib.releaseSlot()
	if b.turning.Err() != nil || !ib.claimPending() || ib.takenBackElsewhere(m) {
		return
	}
	conv, done, err := ib.useConversation(b.hard, m.Chat)
	if err != nil {
		if b.log().Err() == nil {
			ib.finishMessage(m, event.Refs{}, fact.NewBridgeFinished(endFailed, err),
				fmt.Sprintf(say.NotSent, say.Error(err)))
		}
		return
	}
	defer done()
	b.makeRoom(conv)
	stop := make(chan fact.Stop, 1)
	end := ib.beginTurn(m, stop)
	// The bridge may have stopped all turns before it knew this turn, so this turn must not begin.
	if b.turning.Err() != nil {
		end()
		return // the next start answers it
	}
	b.info("turn", "from", c.Label(), "id", m.Message)
	res, err := conv.Run(b.hard, kernel.Turn{
		Input: kernel.Input{ID: m.input, Text: m.Text, Attachments: m.Files, Source: ib.key.Channel, Sender: c.Label()},
		Wait:  true, Permissions: b.settings().Permissions, AnswerIn: b.settings().AnswerIn,
		Stop: stop, Show: ib.showNotice,
	})
	m.statusEnd = end()
	var stopped *kernel.StoppedError
	switch {
	case err == nil:
		ib.tellResult(m, res)
	case b.log().Err() != nil:
		b.fail(err) // the next start finds out the outcome
	case errors.As(err, &stopped) && b.turning.Err() != nil:
		// The bridge stops, and nothing was sent to the agent. The next start answers the message.
	case errors.Is(err, kernel.ErrInputRunning):
		ib.finishMessage(m, event.Refs{}, fact.NewBridgeFinished(endUnknown, err),
			say.Elsewhere)
	default:
		ib.finishMessage(m, event.Refs{}, fact.NewBridgeFinished(endFailed, err),
			fmt.Sprintf(say.NotSent, say.Error(err)))
	}
}

// takenBackElsewhere reports whether another front end took back a waiting message. It tells the
// sender.
func (ib *inbox) takenBackElsewhere(m received) bool {
	e, ok, err := ib.b.inQueue(ib.b.hard, m.input)
	if err != nil {
		ib.b.fail(err)
		return true
	}
	if !ok || e.Type != event.MessageWithdrawn {
		return false
	}
	f, _ := fact.Decode[fact.MessageWithdrawn](e) // if it was pruned, the reply names no person
	ib.finishMessage(m, event.Refs{}, fact.BridgeFinished{How: endBack, Detail: f.Where},
		fmt.Sprintf(ib.b.sentencesFor(ib.key).TakenBackBy, literal(f.By), literal(f.Where)))
	return true
}

// beginTurn makes m the message of the running turn. The returned function ends the turn and returns the last change of
// its status message, or nil.
func (ib *inbox) beginTurn(m received, stop chan fact.Stop) (end func() *fact.BridgeQueued) {
	s := newStatus(ib, m) // before mu, because Bridge.mu is taken before inbox.mu
	ib.mu.Lock()
	ib.now, ib.stop, ib.remarks = &m, stop, nil
	ib.status = s
	ib.mu.Unlock()
	return func() *fact.BridgeQueued {
		s.stopUpdates()
		ib.mu.Lock()
		ib.now, ib.stop, ib.status, ib.statusID = nil, nil, nil, ""
		if conv := ib.convs[m.Chat]; conv != nil {
			conv.lastUsed = ib.b.opt.Now()
		}
		ib.mu.Unlock()
		return s.over()
	}
}

// tellResult finishes a message after its call.
func (ib *inbox) tellResult(m received, res record.Result) {
	refs, say := event.Refs{Session: res.Session, Run: res.Run}, ib.b.sentencesFor(ib.key)
	switch res.Outcome {
	case record.OutcomeResponded:
		text := res.Text
		files, rows := ib.parts(m, res)
		if strings.TrimSpace(text) == "" && len(res.Content) == 0 {
			text = say.Silent
		}
		for _, more := range []string{rows, ib.remarkRows(), ended(say, res)} {
			if more != "" {
				text = strings.TrimLeft(strings.TrimRight(text, "\n")+"\n\n"+more, "\n")
			}
		}
		ib.finishMessage(m, refs, fact.BridgeFinished{How: endAnswered}, text, append(ib.answerFile(m, res), files...)...)
	case record.OutcomeProviderError:
		if res.Stopped != nil && res.Calls == 0 { // nothing was sent, so this is not a failure
			ib.finishMessage(m, refs, fact.NewBridgeFinished(endFailed, res.Err), ended(say, res))
			return
		}
		ib.finishMessage(m, refs, fact.NewBridgeFinished(endFailed, res.Err),
			strings.TrimRight(fmt.Sprintf(say.Failed, say.Error(res.Err), partial(say, res))+"\n\n"+ib.remarkRows(), "\n"))
	default:
		known := ib.known(res)
		ib.finishMessage(m, refs, fact.NewBridgeFinished(endUnknown, known),
			unknown(say, say.Say(known), res))
	}
}

// unknown returns the text about a message with an unknown outcome. Without a run, it names no record.
func unknown(say *language.Sentences, known string, res record.Result) string {
	text := fmt.Sprintf(say.Unknown, known, partial(say, res))
	if res.Run != "" {
		text += fmt.Sprintf(say.UnknownRecord, shortRun(res.Run))
	}
	return text
}

func shortRun(id event.RunID) string { return string(id[max(0, len(id)-8):]) }

// ended returns the reason why a turn ended, if it is not obvious.
func ended(say *language.Sentences, res record.Result) string {
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

// stopped returns the name of the person that stopped a turn, or the reason of the stop.
func stopped(say *language.Sentences, s fact.Stop) string {
	if s.Person != "" {
		return fmt.Sprintf(say.StoppedBy, literal(s.Person))
	}
	return fmt.Sprintf(say.StoppedBecause, say.Say(s.Reason()))
}

func partial(say *language.Sentences, res record.Result) string {
	if strings.TrimSpace(res.Text) == "" {
		return ""
	}
	return fmt.Sprintf(say.Partial, res.Text)
}

// known returns the known facts of a call with an unknown outcome.
func (ib *inbox) known(res record.Result) *message.Text {
	e, ok, err := ib.b.log().Last(ib.b.hard, event.Query{Run: res.Run, Types: []event.Type{event.OutcomeUnknown}})
	if err == nil && ok && res.Run != "" {
		if f, err := fact.Decode[fact.Failed](e); err == nil && f.Known != "" {
			return &message.Text{Text: f.Known, Coded: f.KnownMessage}
		}
	}
	if res.Err != nil {
		return message.Of(res.Err)
	}
	return died
}

// answerFile returns the whole answer as a file if it is long and the platform accepts files.
func (ib *inbox) answerFile(m received, res record.Result) []fact.BridgeQueued {
	limits := ib.b.channels[ib.key.Channel]
	if limits == nil || !limits.Limits().Files || res.Pruned {
		return nil
	}
	say := ib.b.sentencesFor(ib.key)
	text, parts := say.WholeFile, len(ib.b.cutText(ib.key.Channel, res.Text))
	switch {
	case parts < 4:
		return nil
	case parts > mostParts:
		text = say.CutFile
	}
	return []fact.BridgeQueued{{Peer: ib.key, Chat: m.Chat, Kind: outReply, Text: text, File: "answer.md"}}
}

// mostFiles and largestFile limit the files that are sent with one answer. They are the limits of
// the platforms.
const (
	mostFiles   = 10
	largestFile = 20_000_000
	longestRow  = 300 // characters of the text next to a file
)

// parts returns the files that the agent embedded in its answer, and then the pictures of its tools. It also returns a
// row for each piece that is not sent. These are links, which nothing opens, and files beyond the limits.
func (ib *inbox) parts(m received, res record.Result) (files []fact.BridgeQueued, rows string) {
	ch := ib.b.channels[ib.key.Channel]
	var left []string
	for i, block := range res.Content {
		row := ib.contentRow(block.Noun(), block.String())
		if block.Size == 0 || block.Link() || block.Size > largestFile || len(files) == mostFiles || ch == nil ||
			!ch.Limits().Files {
			left = append(left, row)
			continue
		}
		files = append(files, fact.BridgeQueued{
			Peer: ib.key, Chat: m.Chat, Kind: outReply, Text: ib.b.renderShort(ib.key.Channel, row), Part: i + 1,
			File: fmt.Sprintf("answer-%d%s", i+1, block.Extension()),
		})
	}
	pictures, row := ib.toolPictures(m, res)
	if row != "" {
		left = append(left, row)
	}
	return append(files, pictures...), strings.Join(left, "\n\n")
}

// described returns the description of a piece of an answer that is not text, in the contact's
// language.
func described(say *language.Sentences, noun, text string) string {
	const unread = ", nothing in it can be read"
	text, none := strings.CutSuffix(text, unread)
	if text = say.Word(noun) + strings.TrimPrefix(text, noun); none {
		text += say.Word(unread)
	}
	return text
}

// These are limits for the download of one file. fetchFaults is the number of answers with an error from the platform.
// fetchTries is the number of all attempts, including attempts without an answer. After either limit the agent gets the
// message without the file.
const (
	fetchFaults = 3
	fetchTries  = 12
)

// fetchFiles downloads the files of a message and records them. A slow file delays only its
// contact's queue. fetchFiles returns false if ctx ends first.
func (ib *inbox) fetchFiles(ctx context.Context, m *received) bool {
	if len(m.Remote) == 0 {
		return true
	}
	f := fact.FilesFetched{Text: m.Text, Files: slices.Clone(m.Files)}
	for i, file := range m.Remote {
		path, err := ib.fetchFile(ctx, m, len(m.Files)+i, file)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			f.Text = strings.TrimSpace(fmt.Sprintf("%s\n\n[%s could not be fetched: %s]", f.Text, file.Name, missing(err)))
		default:
			f.Files = append(f.Files, path)
		}
	}
	if ib.b.commitEvents(ib.b.hard, event.NewFact(event.FilesFetched, "perlica", event.Refs{Input: m.input}, f)) != nil {
		return false // an error ends the bridge
	}
	m.Text, m.Files, m.Remote = f.Text, f.Files, nil
	return true
}

// fetchFile fetches a file and tries again if that may help.
func (ib *inbox) fetchFile(ctx context.Context, m *received, n int, f fact.RemoteFile) (path string, err error) {
	ch, ok := ib.b.channels[ib.key.Channel].(channel.Fetcher)
	if !ok {
		return "", &channel.RejectedError{Why: "the channel hands out no files"}
	}
	var refused *channel.RejectedError
	faults := 0
	for try, wait := 1, ib.b.opt.Backoff; ; try++ {
		answers := ib.b.answers(ib.key.Channel)
		path, err = ch.Fetch(ctx, m.Message, n, channel.File{Name: f.Name, MIME: f.MIME, Remote: f.ID, Size: f.Size})
		if err == nil || errors.As(err, &refused) || ctx.Err() != nil {
			return path, err
		}
		ib.b.warn("a file could not be fetched", "channel", ib.key.Channel, "error", err.Error())
		if !errors.Is(err, channel.ErrNotSent) {
			faults++
		}
		if faults == fetchFaults || try == fetchTries {
			return "", err
		}
		if wait, ok = ib.b.backOff(ctx, wait, answers, err); !ok {
			return "", ctx.Err()
		}
	}
}

// missing tells the sender of a file why it is missing.
func missing(err error) string {
	var refused *channel.RejectedError
	if errors.As(err, &refused) {
		return refused.Why
	}
	return "the download failed"
}

var (
	errNotYours  = message.New("service.not-yours", "you may not answer this question")
	errNotPaired = message.New("service.not-paired", "the contact is not paired any more")
	died         = message.New("service.died", "the agent or the bridge died while it was being answered")
)

// answerQuestion submits the answer that a message contains.
func (ib *inbox) answerQuestion(c Contact, m received) {
	there, err := ib.b.teamQuestionOf(ib.b.hard, m.Question)
	if err == nil && there != nil {
		ib.b.inboxWG.Go(func() { // its own goroutine, so that a slow hub delays no other message
			defer ib.b.countAnswers(m.Question, -1)
			ib.answerTeamQuestion(c, m, there)
		})
		return
	}
	q, err := interaction.Find(ib.b.hard, &ib.b.log().Reader, m.Question)
	if err == nil && !ib.b.mayAnswer(c, m.Question) {
		err = errNotYours
	}
	if err == nil {
		err = ib.b.opt.Runner.AnswerQuestion(context.WithoutCancel(ib.b.hard), q,
			interaction.Answer{Option: m.Option, Text: m.Word, Always: m.Always, By: c.Label(), Where: ib.key.Channel})
	}
	switch {
	case err == nil: // the closed card already shows the answer to its sender
		ib.finishMessage(m, event.Refs{Interaction: m.Question}, fact.BridgeFinished{How: endDone}, "")
	case ib.b.log().Err() != nil:
		ib.b.fail(err)
	default:
		ib.finishMessage(m, event.Refs{Interaction: m.Question}, fact.NewBridgeFinished(endRefused, err),
			fmt.Sprintf(ib.b.sentencesFor(ib.key).AnswerRefused, ib.b.sentencesFor(ib.key).Error(err)))
	}
}
