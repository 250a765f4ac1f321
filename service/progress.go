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
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// How often a platform is told that the agent works, where it does not say so itself.
const (
	typingEvery = 4 * time.Second
	statusEvery = 3 * time.Second
)

// messageChunk is the kind of the updates that an answer is made of, as ACP has it.
const messageChunk = "agent_message_chunk"

// status shows that a turn goes on: a typing sign, and, where messages can be edited, one message that is
// edited in place: which tools run, and, where it can be taken back, the answer as far as it has come. Nothing of it is
// promised, and nothing waits for it: the whole answer comes as messages of its own.
type status struct {
	d      *desk
	m      received
	say    *language.Sentences
	stream bool   // the answer is shown as it comes
	where  string // the project's name; empty: there is no other
	cancel context.CancelFunc
	wg     sync.WaitGroup
	dirty  chan struct{} // capacity 1

	id string // of the queued message; empty: there is none; keep's own

	mu      sync.Mutex // guards what follows
	answer  strings.Builder
	tools   int
	title   string
	seen    map[string]bool // true: it was completed
	refused int             // questions and requests that got no yes
}

func newStatus(d *desk, m received) *status {
	ctx, cancel := context.WithCancel(d.b.hard)
	s := &status{d: d, m: m, say: d.b.say(d.key), where: d.b.name(), cancel: cancel, dirty: make(chan struct{}, 1), seen: map[string]bool{}}
	ch := d.b.channels[d.key.Channel]
	if t, ok := ch.(channel.Typist); ok {
		s.wg.Go(func() {
			for ok := true; ok; ok = channel.Wait(ctx, typingEvery) {
				once, done := context.WithTimeout(ctx, typingEvery)
				_ = t.Typing(once, m.Chat) // only a sign
				done()
			}
		})
	}
	if e, ok := ch.(channel.Editor); ok {
		_, streams := ch.(channel.Streamer)
		s.stream = streams && d.b.set().Stream
		s.wg.Go(func() { s.keep(ctx, e) })
	}
	return s
}

// keep makes the message once the turn has gone on for a while, and edits it at the platform's pace.
func (s *status) keep(ctx context.Context, e channel.Editor) {
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
			s.make()
			continue
		}
		err := s.edit(ctx, e, s.shown())
		var limit *channel.RateLimitError
		var refused *channel.RejectedError
		if errors.As(err, &limit) {
			wait = max(wait, limit.After)
			s.touch()
		} else if errors.As(err, &refused) {
			break // so it would be with the next one
		}
	}
	<-ctx.Done()
}

// over is what the message is changed to when its turn is over: how the tools ended, or nothing, if it can be taken
// back. It is put on record with the end of the turn; nil: there is no message.
func (s *status) over() *fact.BridgeQueued {
	if s.id == "" {
		return nil
	}
	f := s.d.b.signEnds(s.d.key, s.m.Chat, s.id, s.end())
	s.mu.Lock()
	tools := s.tools
	s.mu.Unlock()
	if _, ok := s.d.b.channels[s.d.key.Channel].(channel.Streamer); ok && tools == 0 {
		f.Text = ""
	}
	return &f
}

// signEnds is the change of a sign of progress to its end.
func (b *Bridge) signEnds(who fact.Peer, chat, sign, text string) fact.BridgeQueued {
	return fact.BridgeQueued{Peer: who, Chat: chat, Kind: outEnd, Target: sign, Text: b.render(who.Channel, text)}
}

// endSigns are the events by which the signs of turns end that were under way when an earlier bridge died.
func (b *Bridge) endSigns(ctx context.Context) (events []event.Event, err error) {
	signs, err := b.records.signs(ctx)
	for _, q := range signs {
		if _, ok := b.channels[q.Channel].(channel.Editor); ok {
			events = append(events, queueEvent(q.input, b.signEnds(q.Peer, q.Chat, q.ID, b.mark("⏹")+" "+b.say(q.Peer).Interrupted)))
		}
	}
	return events, err
}

func (s *status) make() {
	b := s.d.b
	s.id = newID()
	s.d.mu.Lock()
	s.d.sign = s.id
	s.d.mu.Unlock()
	_ = b.commit(b.hard, queueEvent(s.m.input, fact.BridgeQueued{ // it ends the bridge
		ID: s.id, Peer: s.d.key, Chat: s.m.Chat, Kind: outStatus, Text: s.shown(),
	}))
}

// shown is the message while the turn goes on: the end of what the agent has said so far, and its tools.
func (s *status) shown() string {
	const mostOfSign = 300
	s.mu.Lock()
	answer, tools := s.answer.String(), s.tools
	s.mu.Unlock()
	name, sign := s.d.key.Channel, s.mark("⏳")
	if tools > 0 {
		sign += " " + s.text()
	}
	sign = s.d.b.render(name, sign)
	ch := s.d.b.channels[name]
	if strings.TrimSpace(answer) == "" || ch == nil {
		return sign
	}
	if channel.Units(sign) > mostOfSign {
		sign = s.d.b.render(name, s.mark("⏳"))
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

// mark is a sign with the project's name, where there are several.
func (b *Bridge) mark(sign string) string { return marked(sign, b.name()) }

func marked(sign, project string) string {
	if project != "" {
		return sign + " 📁 " + literal(project)
	}
	return sign
}

// edit changes the message, if it has arrived.
func (s *status) edit(ctx context.Context, e channel.Editor, text string) error {
	q, err := s.d.b.records.byID(ctx, s.id)
	if err != nil || q == nil || q.platform == "" {
		return err
	}
	return e.Edit(ctx, q.platform, channel.Outbound{Chat: s.m.Chat, Text: text, Key: s.id})
}

// end is what is left to be read. Only calls that were completed have the mark for it, and none for a yes
// that nobody gave, whatever the agent says of it.
func (s *status) end() string {
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

// refuse takes note of a request that got no yes.
func (s *status) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
}

// tool notes an update of a tool call.
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
	s.touch()
}

// said takes note of a piece of the answer.
func (s *status) said(text string) {
	if !s.stream || text == "" {
		return
	}
	s.mu.Lock()
	s.answer.WriteString(text)
	s.mu.Unlock()
	s.touch()
}

// touch has the message be edited soon.
func (s *status) touch() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

func (s *status) stop() {
	s.cancel()
	s.wg.Wait()
}

// progress takes note of what the agent does, and of what it may not do.
func (d *desk) progress(n kernel.Notice) {
	d.mu.Lock()
	s := d.status
	d.mu.Unlock()
	if s == nil {
		return
	}
	switch n := n.(type) {
	case kernel.Updated:
		if n.Kind == messageChunk {
			s.said(n.Text)
		}
		if words := access.Cut(n.Saying(), longestRow); words != "" && n.Title == "" {
			d.hear(words)
		}
		if n.Tool != nil {
			s.tool(string(n.Tool.ID), n.Tool.Title, string(n.Tool.Status), n.Tool.Failed())
		}
	case kernel.Decided:
		if n.Effect == string(policy.Deny) {
			s.refuse()
		}
	case kernel.Closed:
		allowed := func(o interaction.Option) bool { return n.Answer != nil && o.ID == n.Answer.Option && o.Allows() }
		if !slices.ContainsFunc(n.Question.Options, allowed) {
			s.refuse()
		}
	}
}

// mostSayings is how many different sayings of a turn are passed on; all are on record.
const mostSayings = 5

// hear keeps what an agent says beside its messages, a notice or a compaction, for the end of the turn.
func (d *desk) hear(words string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sayings) < mostSayings && !slices.Contains(d.sayings, words) {
		d.sayings = append(d.sayings, words)
	}
}

// said is what the agent said beside its messages, a row each.
func (d *desk) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var rows []string
	for _, words := range d.sayings {
		rows = append(rows, "ℹ️ "+literal(words))
	}
	return strings.Join(rows, "\n\n")
}
