// Package localtest has phones of the local channel for the table of cases.
package localtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/local"
)

// Subject returns the local channel for the table of cases.
func Subject() channeltest.Subject {
	const repeats = "the channel repeats a message until the phone has it"
	const noServer = "the platform is a Unix socket of this channel"
	return channeltest.Subject{
		Name: "local", Secrets: []string{token("Ada")},
		Start: start,
		Dial: func(address, _ string) (channel.Channel, error) {
			limits := local.DefaultLimits()
			limits.Buttons, limits.Files = true, true
			return local.Listen(address, limits)
		},
		Lacks: map[channeltest.Capability]string{
			channeltest.Pictures:  "a phone in a terminal stores the file",
			channeltest.HalfPairs: "a phone writes UTF-8 alone", channeltest.Echoes: "a phone sends nothing back",
			channeltest.Connects: noServer, channeltest.RateLimits: noServer, channeltest.ServerErrors: noServer,
			channeltest.HalfAnswers: repeats, channeltest.Drops: repeats, channeltest.LostAnswers: repeats,
			channeltest.Revocations: "the channel has no token of its own",
			channeltest.Deletions:   "a phone without its token is a new contact",
		},
	}
}

// token returns the token of a person's phone.
func token(name string) string { return "the-token-of-the-phone-of-" + name }

// platform has the phones of all people.
type platform struct {
	dir string
	ctx context.Context
	wg  sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	change chan struct{}
	phones map[string]*local.Phone // by contacts
	said   []said
	held   []said
	holds  bool
	count  int // the number of messages of people
	skew   time.Duration
	sent   []channeltest.Sent
}

// said is a message of a person.
type said struct {
	contact string
	local.Message
}

// start starts the phones of a test. Their folder has a short name, because the path of a socket is limited.
func start(t testing.TB) channeltest.Platform {
	dir, err := os.MkdirTemp("", "phone")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &platform{dir: dir, ctx: ctx, change: make(chan struct{}), phones: map[string]*local.Phone{}}
	t.Cleanup(func() {
		cancel()
		p.wg.Wait()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *platform) Address() string { return filepath.Join(p.dir, "socket", "phone.sock") }

func (p *platform) Join(name string) channeltest.Person {
	contact := local.ContactID(name, token(name))
	phone := &local.Phone{Path: p.Address(), Name: name, Token: token(name),
		Show: func(a local.Arrived) { p.show(contact, a) }}
	p.mu.Lock()
	p.phones[contact] = phone
	p.mu.Unlock()
	p.wg.Go(func() { phone.Run(p.ctx) })
	return channeltest.Person{Name: name, Contact: contact, Chat: contact}
}

// show adds a message that a phone shows, or changes an earlier one.
func (p *platform) show(chat string, a local.Arrived) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.sent, func(m channeltest.Sent) bool { return m.ID == a.Edits && m.Chat == chat })
	if a.Edits != "" && i >= 0 {
		p.sent[i].Text, p.sent[i].Shown, p.sent[i].Buttons, p.sent[i].Edited = a.Text, a.Text, a.Buttons, true
	} else {
		m := channeltest.Sent{ID: a.Key, Chat: chat, Text: a.Text, Shown: a.Text, Buttons: a.Buttons,
			ReplyTo: a.ReplyTo}
		if a.File != "" {
			m.File = &channeltest.File{Name: a.File, Data: a.Content}
		}
		p.sent = append(p.sent, m)
	}
	p.wake()
}

// wake wakes the waiting goroutines. The caller holds mu.
func (p *platform) wake() {
	close(p.change)
	p.change = make(chan struct{})
}

func (p *platform) Write(from channeltest.Person, m channeltest.Message) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	s := said{from.Contact, local.Message{ID: fmt.Sprint("m", p.count), Text: m.Text, ReplyTo: m.ReplyTo,
		Sent: time.Now().Add(p.skew)}}
	if m.File != nil {
		dir := filepath.Join(p.dir, s.ID)
		path := filepath.Join(dir, filepath.Base(m.File.Name))
		if err := os.Mkdir(dir, 0o700); err != nil {
			panic(err) // the folder of the test is writable
		}
		if err := os.WriteFile(path, m.File.Data, 0o600); err != nil {
			panic(err) // the folder of the test is writable
		}
		s.Files = []string{path}
	}
	p.say(s)
	return from.Contact + "/" + s.ID
}

// say gives a message to the phone of its person. The caller holds mu.
func (p *platform) say(s said) {
	if p.holds {
		p.held = append(p.held, s)
		return
	}
	p.said = append(p.said, s)
	p.phones[s.contact].Say(s.Message)
}

func (p *platform) Press(from channeltest.Person, sent, data string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.sent {
		for _, b := range m.Buttons {
			if m.ID == sent && b.Data == data {
				p.count++
				p.say(said{from.Contact, local.Message{ID: fmt.Sprint("m", p.count), Text: b.Label, ReplyTo: sent,
					Button: data, Sent: time.Now().Add(p.skew)}})
			}
		}
	}
}

func (p *platform) Sent() []channeltest.Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

func (p *platform) Wait(ctx context.Context, ok func() bool) error {
	return channeltest.Await(ctx, func() <-chan struct{} {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.change
	}, ok)
}

func (p *platform) Redeliver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.said {
		p.phones[s.contact].Say(s.Message)
	}
}

func (p *platform) Reverse(write func()) {
	p.mu.Lock()
	p.holds = true
	p.mu.Unlock()
	write()
	p.mu.Lock()
	defer p.mu.Unlock()
	held := p.held
	p.held, p.holds = nil, false
	for _, s := range slices.Backward(held) {
		p.say(s)
	}
}

func (p *platform) Skew(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skew += d
}

func (p *platform) Fail(channeltest.Operation, ...channeltest.Fault) {}

func (p *platform) Echo() {}

func (p *platform) Revoke() {}

func (p *platform) Delete(channeltest.Person) {}

var _ channeltest.Platform = (*platform)(nil)
