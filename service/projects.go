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

// Projects holds the projects that one bot serves. Each project has a bridge with its own log. Each
// channel has one poll for all projects. The first project is the bot's home, and its bridge polls.
//
// A message goes through three steps, each on disk before the next one. The user's own log records
// the message's project. The project's log records the message. The user's own log then records the
// channel's cursor. After a death between two steps the platform delivers the message again. It
// goes to the same project, which recognises it.
type Projects struct {
	record *bot.Record
	list   []*served     // the home first; fixed when Run begins
	over   chan struct{} // closed when no channel is polled any longer
	end    func()
}

// NewProjects returns the projects of a bot. home is the bridge of the bot's home. The parameter "name" is the name by
// which people call this project.
func NewProjects(record *bot.Record, name, log string, home *Bridge) *Projects {
	p := &Projects{record: record, over: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.over) })
	s := &served{log: log, name: name, b: home}
	home.projects, home.served = p, s
	p.list = []*served{s}
	return p
}

// Add adds a project. The parameter "name" is the name by which people call it. Add must be called before Run. Run
// opens the project, and opens it again after a failure.
func (p *Projects) Add(name, log string, open Opener) {
	p.list = append(p.list, &served{log: log, name: name, open: open, wanted: make(chan struct{}, 1), err: errOpening})
}

// Set replaces the settings of the served project with this log. See Bridge.Set.
func (p *Projects) Set(log string, settings Settings) {
	for _, s := range p.list {
		if b, _ := s.working(); b != nil && s.log == log {
			b.Set(settings)
		}
	}
}

// Run serves all projects until ctx ends, as Bridge.Run does. It returns the result of the home. A
// failing project does not stop the others.
func (p *Projects) Run(ctx context.Context) error {
	others, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var all sync.WaitGroup
	for _, s := range p.list[1:] {
		tried := make(chan struct{})
		all.Go(func() { p.serveProject(others, s, sync.OnceFunc(func() { close(tried) })) })
		<-tried
	}
	// The other bridges run until polling has ended, because a received message needs the bridge of its project.
	all.Go(func() {
		<-p.over
		stop()
	})
	err := p.list[0].b.Run(ctx)
	p.end()
	all.Wait()
	return err
}

// Close closes all bridges. Run must have returned.
func (p *Projects) Close(ctx context.Context) (err error) {
	for _, s := range p.list[1:] { // Run has closed these bridges
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

// Live returns the current state of all bridges.
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
		// List the other projects even if one cannot be read.
		if err != nil {
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
		l.Turns, l.Questions, l.Errors = append(l.Turns, one.Turns...), append(l.Questions, one.Questions...),
			append(l.Errors, one.Errors...)
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

// eachBridge calls the function f for each served project. If f fails for a project other than the home, that project
// is no longer served. The result "missing" reports that at least one project is not served.
func (p *Projects) eachBridge(ctx context.Context, f func(s *served, b *Bridge) error) (missing bool, err error) {
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
			p.markFailed(s, b, err)
			missing = true
		}
	}
	return missing, nil
}

// pairedIn returns the projects in which a contact is paired.
func (p *Projects) pairedIn(ctx context.Context, who fact.Peer) (list []*served, err error) {
	_, err = p.eachBridge(ctx, func(s *served, b *Bridge) error {
		paired, err := b.records.Paired(ctx, who.Channel, who.Contact)
		if paired {
			list = append(list, s)
		}
		return err
	})
	return list, err
}

// chosen returns the project that a contact has chosen, even if it is not served. It returns nil if
// the bot no longer has this project.
func (p *Projects) chosen(who fact.Peer) *served {
	log := p.record.Chosen(who)
	if i := slices.IndexFunc(p.list, func(s *served) bool { return s.log == log }); i >= 0 {
		return p.list[i]
	}
	return nil
}

// current returns the project that gets a contact's messages. It is the chosen project, even if it cannot be served
// now. Without a choice it is the first project in paired, or nil.
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

// offered returns the projects that a contact can choose, in their order.
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

// cursor returns a channel's cursor. When a bot gets its second project, its first cursor comes from the log of its
// home.
func (b *Bridge) cursor(ctx context.Context, channel string) (string, error) {
	if b.projects != nil {
		if cursor, ok := b.projects.record.Cursor(channel); ok {
			return cursor, nil
		}
	}
	return b.records.cursor(ctx, channel)
}

// polled returns the channels that this bridge polls.
func (b *Bridge) polled() []channel.Channel {
	if b.projects != nil && b.projects.list[0] != b.served {
		return nil
	}
	return b.opt.Channels
}

// unpolled records that a bridge has stopped polling.
func (p *Projects) unpolled(b *Bridge) {
	if p.list[0] == b.served {
		p.end()
	}
}

// allBridges returns all running bridges of the bot.
func (b *Bridge) allBridges() (list []*Bridge) {
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

// cardsIn counts the questions with a card in a chat.
func (b *Bridge) cardsIn(channel, chat string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.openQuestions {
		if a.inChat(channel, chat) != nil {
			n++
		}
	}
	return n
}

// name returns the project's name. It is empty if the bot serves one project.
func (b *Bridge) name() string {
	if b.projects == nil || len(b.projects.list) < 2 {
		return ""
	}
	return b.served.name
}

// heading returns the first line of a project's messages if the bot serves several projects.
func (b *Bridge) heading() string {
	if name := b.name(); name != "" {
		return "📁 **" + literal(name) + "**\n\n"
	}
	return ""
}

// isElsewhere reports whether a contact has chosen another project.
func (b *Bridge) isElsewhere(who fact.Peer) bool {
	if b.projects == nil {
		return false
	}
	s := b.projects.chosen(who)
	return s != nil && s != b.served
}

// changeProject lists the projects of a contact and marks the current one. The routing of the
// message has already changed the project.
func (ib *inbox) changeProject(ctx context.Context, name string) (string, error) {
	say, p := ib.b.sentencesFor(ib.key), ib.b.projects
	if p == nil || len(p.list) < 2 {
		return say.OneProject, nil
	}
	list, now, err := p.offered(ctx, ib.key)
	if err != nil {
		return "", err
	}
	rows := ib.rows(say, list, now)
	switch s := pick(list, name); {
	case name == "":
		return rows, nil
	case s != nil && s != now:
		// This message chose the project s, but a later message has already chosen another one. The rows mark that one.
		return rows, nil
	case s == nil:
		return "", language.Said(fmt.Sprintf(say.NoProject, name) + "\n\n" + rows)
	default:
		return fmt.Sprintf(say.ProjectIs, literal(s.name)) + "\n\n" + rows, nil
	}
}

func (ib *inbox) rows(say *language.Sentences, list []*served, now *served) string {
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
