package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// typingEvery and statusEvery are the intervals of the signs that the agent works. A platform may
// name its own interval.
const (
	typingEvery = 4 * time.Second
	statusEvery = 3 * time.Second
)

// messageChunk is ACP's kind of update for a piece of an answer.
const messageChunk = "agent_message_chunk"

// status shows that a turn is running: by a typing sign, and by one message that is edited in place
// if the platform can edit. The message shows the running tools. If the platform can delete
// messages, it also shows the answer so far. The status is best effort and nothing waits for it.
// The whole answer comes in separate messages.
type status struct {
	inbox  *inbox
	m      received
	say    *language.Sentences
	stream bool   // the message shows the answer so far
	where  string // the project's name; empty means that the bot serves one project
	cancel context.CancelFunc
	wg     sync.WaitGroup
	dirty  chan struct{} // capacity 1

	id string // the id of the queued message; empty means not yet made; owned by keepUpdated

	mu      sync.Mutex // guards the fields below
	answer  strings.Builder
	tools   int
	title   string
	seen    map[string]bool // true means that the tool call was completed
	refused int             // questions and requests without a yes
}

func newStatus(ib *inbox, m received) *status {
	ctx, cancel := context.WithCancel(ib.b.hard)
	s := &status{inbox: ib, m: m, say: ib.b.sentencesFor(ib.key), where: ib.b.name(), cancel: cancel,
		dirty: make(chan struct{}, 1), seen: map[string]bool{}}
	ch := ib.b.channels[ib.key.Channel]
	if t, ok := ch.(channel.Typist); ok {
		s.wg.Go(func() {
			for ok := true; ok; ok = channel.Wait(ctx, typingEvery) {
				once, done := context.WithTimeout(ctx, typingEvery)
				_ = t.Typing(once, m.Chat) // a failed sign does no harm
				done()
			}
		})
	}
	if e, ok := ch.(channel.Editor); ok {
		_, streams := ch.(channel.Streamer)
		s.stream = streams && ib.b.settings().Stream
		s.wg.Go(func() { s.keepUpdated(ctx, e) })
	}
	return s
}

// keepUpdated makes the message after the turn has run for a while. It then edits the message at
// the platform's pace.
func (s *status) keepUpdated(ctx context.Context, e channel.Editor) {
	every := statusEvery
	if p, ok := e.(channel.Streamer); ok {
		every = p.Pace(s.m.Chat)
	}
	for wait := every; channel.Wait(ctx, wait); {
		wait = every
		select {
		case <-s.dirty:
		default:
			continue
		}
		if s.id == "" {
			s.makeMessage()
			continue
		}
		err := s.editMessage(ctx, e, s.shown())
		var limit *channel.RateLimitError
		var refused *channel.RejectedError
		if errors.As(err, &limit) {
			wait = max(wait, limit.After)
			s.requestEdit()
		} else if errors.As(err, &refused) {
			break // a further edit would be refused, too
		}
	}
	<-ctx.Done()
}

// over returns the last change of the status message: the results of the tools, or the deletion if the platform can
// delete the message. The caller records this change with the end of the turn. nil means that there is no message.
func (s *status) over() *fact.BridgeQueued {
	if s.id == "" {
		return nil
	}
	f := s.inbox.b.statusEnd(s.inbox.key, s.m.Chat, s.id, s.endText())
	s.mu.Lock()
	tools := s.tools
	s.mu.Unlock()
	if _, ok := s.inbox.b.channels[s.inbox.key.Channel].(channel.Streamer); ok && tools == 0 {
		f.Text = ""
	}
	return &f
}

// statusEnd returns the change of a status message at the end of its turn.
func (b *Bridge) statusEnd(who fact.Peer, chat, sign, text string) fact.BridgeQueued {
	return fact.BridgeQueued{Peer: who, Chat: chat, Kind: outEnd, Target: sign, Text: b.renderShort(who.Channel, text)}
}

// endStatuses returns the events that end the status messages of turns that an earlier bridge left
// running.
func (b *Bridge) endStatuses(ctx context.Context) (events []event.Event, err error) {
	signs, err := b.records.statuses(ctx)
	for _, q := range signs {
		if _, ok := b.channels[q.Channel].(channel.Editor); ok {
			events = append(events, queueEvent(q.input, b.statusEnd(q.Peer, q.Chat, q.ID,
				b.mark("⏹")+" "+b.sentencesFor(q.Peer).Interrupted)))
		}
	}
	return events, err
}

func (s *status) makeMessage() {
	b := s.inbox.b
	s.id = newID()
	s.inbox.mu.Lock()
	s.inbox.statusID = s.id
	s.inbox.mu.Unlock()
	_ = b.commitEvents(b.hard, queueEvent(s.m.input, fact.BridgeQueued{ // an error ends the bridge
		ID: s.id, Peer: s.inbox.key, Chat: s.m.Chat, Kind: outStatus, Text: s.shown(),
	}))
}

// shown returns the message of a running turn: the end of the answer so far, and the tools.
func (s *status) shown() string {
	const mostOfSign = 300
	s.mu.Lock()
	answer, tools := s.answer.String(), s.tools
	s.mu.Unlock()
	name, sign := s.inbox.key.Channel, s.mark("⏳")
	if tools > 0 {
		sign += " " + s.text()
	}
	sign = s.inbox.b.renderShort(name, sign)
	ch := s.inbox.b.channels[name]
	if strings.TrimSpace(answer) == "" || ch == nil {
		return sign
	}
	if channel.Units(sign) > mostOfSign {
		sign = s.inbox.b.renderShort(name, s.mark("⏳"))
	}
	limits := ch.Limits()
	if limits.Text > 0 {
		limits.Text -= channel.Units(sign) + len("\n\n")
	}
	parts := channel.Cut(answer, limits)
	return parts[len(parts)-1] + "\n\n" + sign
}

func (s *status) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools == 1 {
		return fmt.Sprintf(s.say.Tool, s.title)
	}
	return fmt.Sprintf(s.say.Tools, s.tools, s.title)
}

func (s *status) mark(sign string) string { return marked(sign, s.where) }

// mark returns a sign such as ⏳, followed by the project's name if the bot serves several projects.
func (b *Bridge) mark(sign string) string { return marked(sign, b.name()) }

func marked(sign, project string) string {
	if project != "" {
		return sign + " 📁 " + literal(project)
	}
	return sign
}

// editMessage changes the message if it has arrived.
func (s *status) editMessage(ctx context.Context, e channel.Editor, text string) error {
	q, err := s.inbox.b.records.byID(ctx, s.id)
	if err != nil || q == nil || q.platform == "" {
		return err
	}
	return e.Edit(ctx, q.platform, channel.Outbound{Chat: s.m.Chat, Text: text, Key: s.id})
}

// endText returns the last text of the message. Only completed tool calls get the mark of completion. A refused call
// never gets it, even if the agent reports a success.
func (s *status) endText() string {
	s.mu.Lock()
	completed := 0
	for _, done := range s.seen {
		if done {
			completed++
		}
	}
	not := s.tools - max(0, min(completed, s.tools-s.refused))
	one, tools, title := s.tools == 1, s.tools, s.title
	s.mu.Unlock()
	switch {
	case not == 0:
		return s.mark("✓") + " " + s.text()
	case one:
		return s.mark("✗") + " " + fmt.Sprintf(s.say.NotOne, title)
	case not == 1:
		return s.mark("✗") + " " + fmt.Sprintf(s.say.NotOneOf, tools, title)
	}
	return s.mark("✗") + " " + fmt.Sprintf(s.say.NotSeveral, not, tools, title)
}

// countRefusal counts a request without a yes.
func (s *status) countRefusal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
}

// tool records an update of a tool call.
func (s *status) tool(id, title, state string, failed bool) {
	s.mu.Lock()
	if _, seen := s.seen[id]; title != "" && !seen {
		s.seen[id] = false
		s.tools++
		s.title = title
	}
	if _, seen := s.seen[id]; seen && state != "" {
		s.seen[id] = state == "completed" && !failed
	}
	s.mu.Unlock()
	s.requestEdit()
}

// said records a piece of the answer.
func (s *status) said(text string) {
	if !s.stream || text == "" {
		return
	}
	s.mu.Lock()
	s.answer.WriteString(text)
	s.mu.Unlock()
	s.requestEdit()
}

// requestEdit requests an edit of the message.
func (s *status) requestEdit() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

func (s *status) stopUpdates() {
	s.cancel()
	s.wg.Wait()
}

// progress records the agent's updates and its refused requests.
func (ib *inbox) progress(n record.Notice) {
	ib.mu.Lock()
	s := ib.status
	ib.mu.Unlock()
	if s == nil {
		return
	}
	switch n := n.(type) {
	case record.Updated:
		if n.Kind == messageChunk {
			s.said(n.Text)
		}
		if words := access.Cut(n.Saying(), longestRow); words != "" && n.Title == "" {
			ib.addRemark(words)
		}
		if n.Tool != nil {
			s.tool(string(n.Tool.ID), n.Tool.Title, string(n.Tool.Status), n.Tool.Failed())
		}
	case record.Decided:
		if n.Effect == string(policy.Deny) {
			s.countRefusal()
		}
	case record.Closed:
		allowed := func(o interaction.Option) bool { return n.Answer != nil && o.ID == n.Answer.Option && o.Allows() }
		if !slices.ContainsFunc(n.Question.Options, allowed) {
			s.countRefusal()
		}
	}
}

// mostRemarks limits the different remarks of a turn that are passed on. The record has all.
const mostRemarks = 5

// addRemark stores a remark for the end of the turn: a warning of a budget or about a sound, or a remark of the agent
// outside its messages, such as a notice or a compaction.
func (ib *inbox) addRemark(words string) {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if len(ib.remarks) < mostRemarks && !slices.Contains(ib.remarks, words) {
		ib.remarks = append(ib.remarks, words)
	}
}

// remarkRows returns the remarks of the turn, one in each row.
func (ib *inbox) remarkRows() string {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	var rows []string
	for _, words := range ib.remarks {
		rows = append(rows, "ℹ️ "+literal(words))
	}
	return strings.Join(rows, "\n\n")
}
