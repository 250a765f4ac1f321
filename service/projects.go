package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/bot"
	"github.com/perlica/perlica/service/channel"
)

// Projects are the projects that one bot serves: a bridge for each, with its own log, and one poll of each
// channel for all of them. The first is the bot's home, whose bridge polls.
//
// A message goes through three steps, each on disk before the next: its project is put on record in the user's own
// log, the message in that project's, and behind it, in the user's, how far its channel was read. After a death
// between any two the platform delivers it once more: it goes to the same project, which knows it.
type Projects struct {
	record *bot.Record
	list   []*served     // the home first; does not change once Run has begun
	over   chan struct{} // closed when no channel is polled any more
	end    func()
}

// NewProjects returns the projects of the bot of the record: its home, that people call name, and those that are
// added.
func NewProjects(record *bot.Record, name, log string, home *Bridge) *Projects {
	p := &Projects{record: record, over: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.over) })
	s := &served{log: log, name: name, b: home}
	home.projects, home.served = p, s
	p.list = []*served{s}
	return p
}

// Add adds a project that people call name, before Run. It is opened by Run, and again where it fails or cannot be opened.
func (p *Projects) Add(name, log string, open Opener) {
	p.list = append(p.list, &served{log: log, name: name, open: open, wanted: make(chan struct{}, 1), err: errOpening})
}

// Set replaces the settings of the project with this log, if it is served. See Bridge.Set.
func (p *Projects) Set(log string, settings Settings) {
	for _, s := range p.list {
		if b, _ := s.working(); b != nil && s.log == log {
			b.Set(settings)
		}
	}
}

// Run serves all of them until ctx ends, as Bridge.Run does. It returns how that of the home ended; one of the
// others that fails holds up no other.
func (p *Projects) Run(ctx context.Context) error {
	others, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var all sync.WaitGroup
	for _, s := range p.list[1:] {
		tried := make(chan struct{})
		all.Go(func() { p.serve(others, s, sync.OnceFunc(func() { close(tried) })) })
		<-tried
	}
	all.Go(func() { // what is received must have a bridge that takes it
		<-p.over
		stop()
	})
	err := p.list[0].b.Run(ctx)
	p.end()
	all.Wait()
	return err
}

// Close closes all of the bridges. Run must have returned.
func (p *Projects) Close(ctx context.Context) (err error) {
	for _, s := range p.list[1:] { // whose bridges Run has closed
		err = errors.Join(err, s.closed)
	}
	return errors.Join(err, p.list[0].b.Close(ctx))
}

// Paired reports whether a contact is paired in one of the projects.
func (p *Projects) Paired(ctx context.Context, channel, contact string) bool {
	for _, s := range p.list {
		if b, _ := s.working(); b != nil {
			if paired, err := b.records.Paired(ctx, channel, contact); err == nil && paired {
				return true
			}
		}
	}
	return false
}

// Live returns what all of the bridges do now.
func (p *Projects) Live(ctx context.Context) (l Live, err error) {
	for i, s := range p.list {
		b, why := s.working()
		if b == nil {
			l.Projects = append(l.Projects, fmt.Sprintf("%s: not served: %v", s.name, why))
			continue
		}
		one, err := b.Live(ctx)
		if err != nil && i == 0 {
			return l, err
		}
		if err != nil { // the others are looked at all the same
			l.Projects = append(l.Projects, fmt.Sprintf("%s: cannot be read: %v", s.name, err))
			continue
		}
		row := fmt.Sprintf("%s: %d paired", s.name, len(one.Contacts))
		for _, list := range []*[]string{&one.Turns, &one.Questions, &one.Errors} {
			for i := range *list {
				(*list)[i] = s.name + ": " + (*list)[i]
			}
		}
		if i == 0 {
			l, one = one, Live{}
		}
		l.Projects = append(l.Projects, row)
		l.Turns, l.Questions, l.Errors = append(l.Turns, one.Turns...), append(l.Questions, one.Questions...), append(l.Errors, one.Errors...)
		l.Queued, l.InLine, l.Held, l.Unsent = l.Queued+one.Queued, l.InLine+one.InLine, l.Held+one.Held, l.Unsent+one.Unsent
		for _, c := range one.Contacts {
			if !slices.ContainsFunc(l.Contacts, func(o Contact) bool { return o.key() == c.key() }) {
				l.Contacts = append(l.Contacts, c)
			}
		}
		l.Unconfirmed = append(l.Unconfirmed, one.Unconfirmed...)
	}
	return l, nil
}

// each calls f for each project that is served. One other than the home that fails at it is served no more, and
// missing says that one is not.
func (p *Projects) each(ctx context.Context, f func(s *served, b *Bridge) error) (missing bool, err error) {
	for i, s := range p.list {
		b, _ := s.working()
		if b == nil {
			missing = true
			continue
		}
		err := f(s, b)
		switch {
		case err == nil:
		case i == 0 || ctx.Err() != nil:
			return missing, err
		default:
			p.fail(s, b, err)
			missing = true
		}
	}
	return missing, nil
}

// pairedIn returns the projects in which a contact is paired.
func (p *Projects) pairedIn(ctx context.Context, who fact.Peer) (list []*served, err error) {
	_, err = p.each(ctx, func(s *served, b *Bridge) error {
		paired, err := b.records.Paired(ctx, who.Channel, who.Contact)
		if paired {
			list = append(list, s)
		}
		return err
	})
	return list, err
}

// chosen is the project that a contact has chosen, whether it is served or not; nil: none that is still one of the
// bot's.
func (p *Projects) chosen(who fact.Peer) *served {
	log := p.record.Chosen(who)
	if i := slices.IndexFunc(p.list, func(s *served) bool { return s.log == log }); i >= 0 {
		return p.list[i]
	}
	return nil
}

// current is the project to which the messages of a contact go who is paired in those: the one that it has chosen,
// also if it cannot be served now, else the first; nil: none.
func (p *Projects) current(who fact.Peer, paired []*served) *served {
	s := p.chosen(who)
	if s != nil {
		if b, _ := s.working(); b == nil || slices.Contains(paired, s) {
			return s
		}
	}
	if len(paired) > 0 {
		return paired[0]
	}
	return nil
}

// offered are the projects between which a contact can choose, in their order.
func (p *Projects) offered(ctx context.Context, who fact.Peer) (list []*served, now *served, err error) {
	paired, err := p.pairedIn(ctx, who)
	now = p.current(who, paired)
	for _, s := range p.list {
		if s == now || slices.Contains(paired, s) {
			list = append(list, s)
		}
	}
	return list, now, err
}

// pick finds a project by its name or its number.
func pick(list []*served, name string) *served {
	i := slices.IndexFunc(list, func(s *served) bool { return strings.EqualFold(s.name, name) })
	if n, err := strconv.Atoi(name); i < 0 && err == nil {
		i = n - 1
	}
	if i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

// cursor returns how far a channel has been read. For a bot that has just got a second project that is what is on
// record in the log of its home.
func (b *Bridge) cursor(ctx context.Context, channel string) (string, error) {
	if b.projects != nil {
		if cursor, ok := b.projects.record.Cursor(channel); ok {
			return cursor, nil
		}
	}
	return b.records.cursor(ctx, channel)
}

// polled are the channels that this bridge polls.
func (b *Bridge) polled() []channel.Channel {
	if b.projects != nil && b.projects.list[0] != b.served {
		return nil
	}
	return b.opt.Channels
}

// unpolled takes note that a bridge polls no more.
func (p *Projects) unpolled(b *Bridge) {
	if p.list[0] == b.served {
		p.end()
	}
}

// family are the bridges of the bot: this one, where there are no others.
func (b *Bridge) family() (list []*Bridge) {
	if b.projects == nil {
		return []*Bridge{b}
	}
	for _, s := range b.projects.list {
		if o, _ := s.working(); o != nil {
			list = append(list, o)
		}
	}
	return list
}

// cardsIn is how many questions have a card in a chat.
func (b *Bridge) cardsIn(channel, chat string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.asked {
		if a.inChat(channel, chat) != nil {
			n++
		}
	}
	return n
}

// name is what people call the project; empty: the bot serves no other.
func (b *Bridge) name() string {
	if b.projects == nil || len(b.projects.list) < 2 {
		return ""
	}
	return b.served.name
}

// heading begins what is sent of a project, where there are several.
func (b *Bridge) heading() string {
	if name := b.name(); name != "" {
		return "📁 **" + literal(name) + "**\n\n"
	}
	return ""
}

// isElsewhere reports whether a contact is in another project now.
func (b *Bridge) isElsewhere(who fact.Peer) bool {
	if b.projects == nil {
		return false
	}
	s := b.projects.chosen(who)
	return s != nil && s != b.served
}

// project says between which projects a contact can choose, and in which one it is; the switch itself came with
// the message.
func (d *desk) project(ctx context.Context, name string) (string, error) {
	say, p := d.b.say(d.key), d.b.projects
	if p == nil || len(p.list) < 2 {
		return say.OneProject, nil
	}
	list, now, err := p.offered(ctx, d.key)
	if err != nil {
		return "", err
	}
	rows := d.rows(say, list, now)
	switch s := pick(list, name); {
	case name == "":
		return rows, nil
	case s != nil && s != now: // it has come back behind this message, or a later one leads elsewhere
		return rows, nil
	case s == nil:
		return "", language.Said(fmt.Sprintf(say.NoProject, name) + "\n\n" + rows)
	default:
		return fmt.Sprintf(say.ProjectIs, literal(s.name)) + "\n\n" + rows, nil
	}
}

func (d *desk) rows(say *language.Sentences, list []*served, now *served) string {
	var t strings.Builder
	for i, s := range list {
		fmt.Fprintf(&t, "%d. %s", i+1, literal(s.name))
		if s == now {
			t.WriteString(say.YouAreHere)
		}
		if b, _ := s.working(); b == nil {
			t.WriteString(say.NotServed)
		}
		t.WriteString("\n")
	}
	return t.String() + say.HowToSwitch
}
