package service

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// inbox handles the messages of one contact. It has two queues, each with its own goroutine. The field "queue" has the
// inputs and commands, in order. The field "first" has the messages that do not wait for these: answers, and commands
// that change nothing.
type inbox struct {
	b   *Bridge
	key fact.Peer

	wake   chan struct{} // capacity 1: queue changed
	urgent chan struct{} // capacity 1: first changed

	// The goroutine of queue owns the conversation. Other goroutines may call its methods Cancel
	// and Alive under mu.
	mu            sync.Mutex // guards the fields below
	queue         []received
	first         []received               // messages that do not wait for the queue
	pending       *received                // the message from queue that is being handled
	decided       bool                     // the pending message can no longer be taken back
	giveUp        func()                   // ends the wait of the pending message; nil means that it does not wait
	convs         map[string]*conversation // by chat; the current conversations
	opening       sync.Mutex               // held while a conversation is opened or replaced; taken before mu
	now           *received                // the message of the running turn
	stop          chan fact.Stop
	status        *status
	statusID      string   // id of the status message
	openQuestions int      // open questions of the running turn
	remarks       []string // the remarks of the running turn outside the agent's messages
}

// conversation is the conversation of a contact in a chat. The fields are guarded by the inbox's mu.
type conversation struct {
	*kernel.Conversation
	users    int       // the number of messages that are being handled in this conversation
	lastUsed time.Time // the end of its last turn
}

// inboxOf returns the inbox of a contact. At the first call it starts the inbox's goroutines.
func (b *Bridge) inboxOf(who fact.Peer) *inbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	ib := b.inboxByPeer[who]
	if ib == nil {
		ib = &inbox{b: b, key: who, wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
			convs: map[string]*conversation{}}
		b.inboxByPeer[who] = ib
		b.inboxWG.Go(func() { ib.handleQueue(ib.wake, &ib.queue) })
		b.inboxWG.Go(func() { ib.handleQueue(ib.urgent, &ib.first) })
	}
	return ib
}

// addMessage puts a recorded message into its queue.
func (ib *inbox) addMessage(m received) {
	line, bell := &ib.queue, ib.wake
	switch m.Kind {
	case kindBack:
		// Nothing is left to do, because the earlier message was taken back when this message was recorded.
		return
	case kindSend:
		ib.releaseHeld(m.About)
		return
	}
	if m.Kind == kindAnswer {
		ib.b.countAnswers(m.Question, 1)
	}
	if m.Kind == kindAnswer || m.Kind == kindRefused || m.Kind == kindCommand && isImmediate(m.Text) {
		line, bell = &ib.first, ib.urgent
	}
	ib.mu.Lock()
	*line = append(*line, m)
	ib.mu.Unlock()
	select {
	case bell <- struct{}{}:
	default:
	}
}

// nextMessage takes the first message from a queue, or returns nil. It leaves out held messages, because these wait for
// their sender.
func (ib *inbox) nextMessage(line *[]received) *received {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	i := slices.IndexFunc(*line, func(m received) bool { return !m.Held })
	if i < 0 {
		return nil
	}
	m := (*line)[i]
	if *line = slices.Delete(*line, i, i+1); line == &ib.queue {
		ib.pending, ib.decided, ib.giveUp = &m, m.Kind != kindInput, nil
	}
	return &m
}

// markDone records that the message taken from a queue is handled.
func (ib *inbox) markDone(line *[]received) {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if line == &ib.queue {
		ib.pending = nil
	}
}

// handleQueue handles the messages of a queue until the bridge stops. The next start takes up the
// rest.
func (ib *inbox) handleQueue(bell chan struct{}, line *[]received) {
	for ib.b.turning.Err() == nil {
		if m := ib.nextMessage(line); m != nil {
			ib.handleMessage(*m)
			ib.markDone(line)
			continue
		}
		select {
		case <-bell:
		case <-ib.b.turning.Done():
		}
	}
}

// handleMessage handles one message.
func (ib *inbox) handleMessage(m received) {
	c, paired, err := ib.b.records.contact(ib.b.hard, ib.key.Channel, ib.key.Contact)
	switch {
	case err != nil:
		ib.b.fail(err)
	case !paired:
		// The contact was unpaired in the meantime. An unpaired contact gets no reply, except about
		// its answer.
		if m.Kind == kindAnswer {
			ib.b.countAnswers(m.Question, -1)
		}
		ib.finishMessage(m, event.Refs{}, fact.NewBridgeFinished(endRefused, errNotPaired),
			"")
	case m.Kind == kindRefused:
		ib.finishMessage(m, event.Refs{}, fact.BridgeFinished{How: endRefused}, m.Word)
	case m.Kind == kindAnswer:
		ib.answerQuestion(c, m)
	case m.Kind == kindCommand:
		ib.runCommand(c, m)
	default:
		ib.runTurn(c, m)
	}
}

// mostParts limits the messages of an answer that is also sent as a file. Many more messages would
// delay all later ones. The beginning and the end are sent.
const mostParts = 20

// finishMessage records the end of a message together with the reply to its sender.
func (ib *inbox) finishMessage(m received, refs event.Refs, f fact.BridgeFinished, text string,
	more ...fact.BridgeQueued) {
	refs.Input = m.input
	events := []event.Event{event.NewFact(event.BridgeFinished, "perlica", refs, f)}
	if m.Kind == kindInput && refs.Run == "" && f.How != endUnknown { // no call was made for the input
		left, err := ib.b.leaveQueue(ib.b.hard, m.input, "perlica", ib.key.Channel)
		if err != nil {
			ib.b.fail(err)
			return
		}
		events = append(events, left...)
	}
	kind := outNotice
	if f.How == endAnswered || f.How == endFailed || f.How == endUnknown {
		kind = outReply
	}
	if text != "" {
		if ib.b.isElsewhere(ib.key) {
			text = ib.b.heading() + text
		}
		parts := ib.b.cutText(ib.key.Channel, text)
		// The file has the whole text, so the middle of the text is not sent.
		if len(parts) > mostParts && slices.ContainsFunc(more, func(q fact.BridgeQueued) bool {
			return q.Part == 0 && q.Picture == 0
		}) {
			parts = append(parts[:mostParts-1], parts[len(parts)-1])
		}
		for i, part := range parts {
			q := fact.BridgeQueued{Peer: ib.key, Chat: m.Chat, Kind: kind, Text: part}
			if i == 0 {
				q.ReplyTo = m.Message
			}
			events = append(events, queueEvent(m.input, q))
		}
	}
	for _, q := range more {
		events = append(events, queueEvent(m.input, q))
	}
	// The end of the status message is in the same commit. A crash can therefore not leave a running status of a
	// finished turn.
	if m.statusEnd != nil {
		events = append(events, queueEvent(m.input, *m.statusEnd))
	}
	ib.b.info("finished", "from", ib.key.Channel+":"+ib.key.Contact, "how", string(f.How), "id", m.Message)
	_ = ib.b.commitEvents(ib.b.hard, events...) // an error ends the bridge
}

// current returns the message of the running turn, or an empty message.
func (ib *inbox) current() received {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if ib.now == nil {
		return received{}
	}
	return *ib.now
}

// stopTurn asks the running turn to end. It reports whether a turn is running.
func (ib *inbox) stopTurn(s fact.Stop) bool {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if ib.stop == nil {
		return false
	}
	select {
	case ib.stop <- s:
	default: // the turn was already asked to stop
	}
	return true
}

// useConversation returns the contact's conversation in a chat, and opens it if necessary. It starts no agent. The
// caller calls the function "done" when it needs the conversation no longer.
func (ib *inbox) useConversation(ctx context.Context, chat string) (conv *kernel.Conversation, done func(),
	err error) {
	ib.opening.Lock()
	defer ib.opening.Unlock()
	now, err := ib.currentConversation(ctx, chat)
	if err != nil {
		return nil, nil, err
	}
	ib.mu.Lock()
	defer ib.mu.Unlock()
	now.users++
	return now.Conversation, func() {
		ib.mu.Lock()
		defer ib.mu.Unlock()
		now.users--
	}, nil
}

// currentConversation returns the conversation in the contact's session of a chat. The caller holds opening.
func (ib *inbox) currentConversation(ctx context.Context, chat string) (*conversation, error) {
	session, err := ib.b.records.session(ctx, ib.key, chat)
	if err != nil {
		return nil, err
	}
	ib.mu.Lock()
	conv, busy := ib.convs[chat], ib.now != nil
	ib.mu.Unlock()
	if conv == nil {
		ib.closeUnused(ctx)
		return ib.openConversation(ctx, chat, session, "")
	}
	// A contact that was unpaired and paired again in the meantime starts a new session.
	_, paired, err := ib.b.records.contact(ctx, ib.key.Channel, ib.key.Contact)
	if err != nil || busy || !paired || session == conv.Session() {
		return conv, err
	}
	anew, err := ib.openConversation(ctx, chat, session, "")
	if err != nil {
		return nil, err
	}
	return anew, conv.Close(ctx)
}

// openConversation opens a conversation in a session, or in a new one, and records it as the contact's session in the
// chat. The caller holds opening.
func (ib *inbox) openConversation(ctx context.Context, chat string, session event.SessionID,
	provider string) (*conversation, error) {
	setup, err := ib.b.opt.Setup(session, provider)
	if err != nil {
		return nil, err
	}
	conv, err := ib.b.opt.Runner.Converse(ctx, setup, ib.b.settings().Idle, "service")
	if err != nil {
		return nil, err
	}
	if id := conv.Session(); id != session || provider != "" {
		f := fact.ContactSession{Peer: ib.key, Chat: chat}
		if err := ib.b.commitEvents(ctx, event.NewFact(event.ContactSession, "perlica", event.Refs{Session: id},
			f)); err != nil {
			return nil, errors.Join(err, conv.Close(ctx))
		}
	}
	now := &conversation{Conversation: conv}
	ib.mu.Lock()
	ib.convs[chat] = now
	ib.mu.Unlock()
	return now, nil
}

// closeUnused closes the conversations without an agent. Their sessions are then free for other front ends. The next
// message in such a chat opens its session again. The caller holds opening.
func (ib *inbox) closeUnused(ctx context.Context) {
	var unused []*conversation
	ib.mu.Lock()
	for chat, conv := range ib.convs {
		if conv.users == 0 && !conv.Alive() {
			unused = append(unused, conv)
			delete(ib.convs, chat)
		}
	}
	ib.mu.Unlock()
	for _, conv := range unused {
		_ = conv.Close(ctx) // the error is on record
	}
}

// moveSession continues a chat in another session. If session is empty, it continues in a new one.
func (ib *inbox) moveSession(ctx context.Context, chat string, session event.SessionID, provider string) error {
	ib.opening.Lock()
	defer ib.opening.Unlock()
	old := ib.opened(chat)
	if old != nil && old.Session() == session {
		return nil
	}
	if provider == "" && old != nil {
		provider = old.Provider()
	}
	if _, err := ib.openConversation(ctx, chat, session, provider); err != nil {
		// The chat stays in the old session, because the new one could not be opened.
		return err
	}
	if old != nil {
		return old.Close(ctx)
	}
	return nil
}

// opened returns the open conversation of a chat, or nil.
func (ib *inbox) opened(chat string) *kernel.Conversation {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if conv := ib.convs[chat]; conv != nil {
		return conv.Conversation
	}
	return nil
}

func (ib *inbox) closeConversations(ctx context.Context) {
	ib.mu.Lock()
	all := slices.Collect(maps.Values(ib.convs))
	ib.mu.Unlock()
	for _, conv := range all {
		_ = conv.Close(ctx) // the error is on record
	}
}

// showNotice handles a notice of the running turn.
func (ib *inbox) showNotice(n record.Notice) {
	switch n := n.(type) {
	case record.Asked:
		if n.Answerable {
			ib.questionOpened()
			ib.b.askContacts(ib, n.Question)
		}
	case record.Closed:
		ib.questionClosed()
		ib.b.closeCards(n.Question.ID, n.Answer, n.Reason)
		ib.progress(n)
	case record.Warned:
		ib.b.warn("warning of a run", "detail", n.Detail)
		if n.Subtype == "budget" || n.Subtype == "sound" {
			ib.addRemark(ib.b.sentencesFor(ib.key).Read(n.Detail, n.Coded))
		}
	default:
		ib.progress(n)
	}
}

// makeRoom ends the agents with the longest idle time until one more agent may live. The conversation "mine" needs the
// new agent.
func (b *Bridge) makeRoom(mine *kernel.Conversation) {
	for {
		b.mu.Lock()
		alive := 0
		var oldest *conversation
		var since time.Time // the end of its last turn
		for _, ib := range b.inboxByPeer {
			ib.mu.Lock()
			for chat, conv := range ib.convs {
				running := ib.now != nil && ib.now.Chat == chat
				if conv.Conversation == mine || running && ib.openQuestions > 0 || !conv.Alive() {
					continue
				}
				alive++
				if !running && (oldest == nil || conv.lastUsed.Before(since)) {
					oldest, since = conv, conv.lastUsed
				}
			}
			ib.mu.Unlock()
		}
		room := alive < b.current.Agents
		b.mu.Unlock()
		if room || oldest == nil {
			return
		}
		if !oldest.Rest() {
			// The agent was not ended, because a turn has begun in this conversation. This turn keeps its agent.
			return
		}
	}
}
