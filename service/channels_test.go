package service_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/discord/discordtest"
	"github.com/perlica/perlica/service/email/emailtest"
	"github.com/perlica/perlica/service/feishu/feishutest"
	"github.com/perlica/perlica/service/local"
	"github.com/perlica/perlica/service/matrix/matrixtest"
	"github.com/perlica/perlica/service/slack/slacktest"
	"github.com/perlica/perlica/service/telegram/telegramtest"
	"github.com/perlica/perlica/service/webhook/webhooktest"
)

// subjects are the channels over which the bridge is tested. All other tests of this package use the local channel.
var subjects = []channeltest.Subject{discordtest.Subject(), emailtest.Subject(), feishutest.Subject(),
	matrixtest.Subject(), slacktest.Subject(), telegramtest.Subject(), webhooktest.Subject()}

var (
	channelMessages = flag.Int("channel-messages", 30, "how many messages TestChannelKilled sends over each channel")
	channelKills    = flag.Int("channel-kills", 4, "how often TestChannelKilled kills the bridge of each channel")
)

// platformVar has the name and the address of a running platform for a bridge that the test kills.
const platformVar = "PERLICA_SERVICE_PLATFORM"

// toSubject returns a channel to the platform that platformVar names, or nil.
func (w *world) toSubject() (ch channel.Channel, end func() error, err error) {
	name, address, ok := strings.Cut(os.Getenv(platformVar), " ")
	if !ok {
		return nil, func() error { return nil }, nil
	}
	i := slices.IndexFunc(subjects, func(s channeltest.Subject) bool { return s.Name == name })
	ch, err = subjects[i].Dial(address, w.path("files"))
	return ch, func() error {
		if c, ok := ch.(io.Closer); ok {
			return c.Close()
		}
		return nil
	}, err
}

// venue is the platform of a subject, with the people of a test.
type venue struct {
	channeltest.Platform
	w *world
	s channeltest.Subject

	mu     sync.Mutex           // guards the fields below
	people map[string][]*person // by chat
	at     map[*person]channeltest.Person
	said   map[string]string // the first line of each message, by the message's id
}

// venue starts a platform and delivers the bot's messages to people until the test ends.
func (w *world) venue(s channeltest.Subject) *venue {
	v := &venue{Platform: s.Start(w.t), w: w, s: s, people: map[string][]*person{}, at: map[*person]channeltest.Person{},
		said: map[string]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { v.run(ctx) })
	w.t.Cleanup(func() { cancel(); wg.Wait() })
	return v
}

// join adds a person to the platform.
func (v *venue) join(name string) *person {
	return v.watch(v.Join(name))
}

// enter returns a person in a thread of the platform's group. All people in a thread see the same messages.
func (v *venue) enter(who *person, thread string) *person {
	v.mu.Lock()
	at := v.at[who]
	v.mu.Unlock()
	return v.watch(v.Platform.(channeltest.Threads).Thread(thread, at))
}

// watch returns a person that gets the messages of a chat.
func (v *venue) watch(at channeltest.Person) *person {
	who := newPerson(v.w.t, "", at.Name)
	who.Contact = at.Contact
	who.deliver = func(m local.Message) string {
		v.mu.Lock()
		defer v.mu.Unlock()
		if m.Button != "" {
			v.Press(at, m.ReplyTo, m.Button)
			return ""
		}
		id := v.Write(at, channeltest.Message{Text: m.Text, ReplyTo: m.ReplyTo})
		v.said[id], _, _ = strings.Cut(m.Text, "\n")
		return id
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.people[at.Chat], v.at[who] = append(v.people[at.Chat], who), at
	return who
}

// run delivers new and edited messages of the bot to people until ctx ends.
func (v *venue) run(ctx context.Context) {
	shown := map[string]string{} // the last text of each message, by the message's id
	for {
		var news []channeltest.Sent
		if v.Wait(ctx, func() bool {
			for _, m := range v.Sent() {
				if text, ok := shown[m.ID]; (!ok || text != m.Text) && !m.Removed {
					news = append(news, m)
				}
			}
			return len(news) > 0
		}) != nil {
			return
		}
		for _, m := range news {
			a := local.Arrived{Key: m.ID, Text: m.Shown, Buttons: m.Buttons}
			if _, edited := shown[m.ID]; edited {
				a.Edits = m.ID
			}
			if m.File != nil {
				a.File, a.Content = m.File.Name, m.File.Data
			}
			shown[m.ID] = m.Text
			v.mu.Lock()
			people, said := v.people[m.Chat], v.said[m.ReplyTo]
			v.mu.Unlock()
			for _, who := range people {
				a.ReplyTo = who.Contact + "/" + said
				who.Show(a)
			}
		}
	}
}

// dial returns a channel to the platform. It ends with the test.
func (v *venue) dial() channel.Channel {
	v.w.t.Helper()
	ch, err := v.s.Dial(v.Address(), v.w.path("files"))
	if err != nil {
		v.w.t.Fatal(err)
	}
	return ch
}

// serve runs a bridge over the platform. The result "stop" ends the bridge and its channel.
func (v *venue) serve() (s *serving, stop func()) {
	v.w.t.Helper()
	ch := v.dial()
	s = v.w.serve(local.DefaultLimits(), func(o *service.Options) { o.Channels = []channel.Channel{ch} })
	return s, func() {
		v.w.t.Helper()
		err := s.stop()
		if c, ok := ch.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
		if err != nil {
			v.w.t.Fatal(err)
		}
	}
}

// TestChannels runs the bridge over each channel.
func TestChannels(t *testing.T) {
	for _, s := range subjects {
		t.Run(s.Name, func(t *testing.T) {
			for name, run := range map[string]func(*world, *venue, channeltest.Subject){
				"pairing": pairOver, "question": askOver, "long answer": longOver, "redelivery": redeliverOver,
				"restart": restartOver, "pictures": picturesOver,
			} {
				t.Run(name, func(t *testing.T) {
					w := newWorld(t)
					run(w, w.venue(s), s)
				})
			}
		})
	}
}

// pairOver checks that a stranger makes no call before the pairing.
func pairOver(w *world, v *venue, _ channeltest.Subject) {
	s, stop := v.serve()
	alice, eve := v.join("Alice"), v.join("Eve")
	eve.say("let me in")
	w.pair(s, alice)
	alice.say("hello")
	alice.expect("You said: hello")
	stop()
	if n := strings.Count(w.prompts(), "session/prompt"); n != 1 || eve.count("You said") > 0 {
		w.t.Errorf("%d prompts, and Eve got %q", n, eve.arrived)
	}
}

// askOver checks that a button and a numbered answer reach the agent.
func askOver(w *world, v *venue, s channeltest.Subject) {
	b, stop := v.serve()
	alice := v.join("Alice")
	w.pair(b, alice)
	const ask = `@ask execute "Build it" command="make"`
	if _, lacks := s.Lacks[channeltest.Buttons]; !lacks {
		alice.say(ask)
		card := alice.expect("Build it")
		i := slices.IndexFunc(card.Buttons, func(b channel.Button) bool { return strings.Contains(b.Label, "Reject") })
		if i < 0 {
			w.t.Fatalf("the card has the buttons %+v", card.Buttons)
		}
		alice.deliver(local.Message{ReplyTo: card.Key, Button: card.Buttons[i].Data})
		alice.expect("permission: reject")
	}
	alice.say(ask)
	if _, lacks := s.Lacks[channeltest.TextAnswers]; lacks {
		onlyByButton(alice)
	} else {
		card := alice.expect("and the number")
		alice.say(asking.FindStringSubmatch(card.Text)[1] + " 1")
	}
	alice.expect("permission: allow")
	stop()
}

// onlyByButton checks that no text answers the open question, and allows it by a button.
func onlyByButton(p *person) {
	p.t.Helper()
	card := p.expect("open the link of an option")
	i := slices.IndexFunc(card.Buttons, func(b channel.Button) bool { return strings.Contains(b.Label, "Allow") })
	if i < 0 {
		p.t.Fatalf("the card is %+v", card)
	}
	id := strings.Split(card.Buttons[i].Data, ":")[1]
	p.say("/allow")
	p.expect("only by the link")
	for _, text := range []string{"1", "#" + id[len(id)-8:] + " 1", "#" + id + " 1"} {
		p.say(text)
		p.expect("It is held")
	}
	if p.count("permission: allow") > 0 {
		p.t.Error("a text has answered the question")
	}
	p.deliver(local.Message{ReplyTo: card.Key, Button: card.Buttons[i].Data})
}

// TestMailApprovesNoDanger checks that a card over mail has no link that allows an always-asked command. A used link
// does nothing.
func TestMailApprovesNoDanger(t *testing.T) {
	w := newWorld(t)
	s := emailtest.Subject()
	v := w.venue(s)
	b, stop := v.serve()
	alice := v.join("Alice")
	w.pair(b, alice)
	alice.say(`@ask execute "Clean" command="sudo ls"`)
	card := alice.expect("cannot be chosen by mail")
	if len(card.Buttons) == 0 {
		t.Fatal("the card has no link")
	}
	for _, option := range card.Buttons {
		if !strings.Contains(option.Label, "Reject") {
			t.Errorf("the card has the link %q", option.Label)
		}
	}
	no := local.Message{ReplyTo: card.Key, Button: card.Buttons[0].Data}
	alice.deliver(no)
	alice.expect("permission: reject")
	alice.deliver(no)
	alice.expect("not open to you any more")
	stop()
}

// longOver checks that all parts of a long answer arrive in order, or that its file arrives.
func longOver(w *world, v *venue, _ channeltest.Subject) {
	b, stop := v.serve()
	alice := v.join("Alice")
	w.pair(b, alice)
	alice.say("@stream 3000 10\n@say the end")
	alice.expect("the end")
	stop()
	if list := v.Sent(); len(list) < 2 {
		w.t.Errorf("a long answer became %d messages", len(list))
	}
}

// redeliverOver checks that a message that comes again makes no second call, also after a restart.
func redeliverOver(w *world, v *venue, s channeltest.Subject) {
	if why, lacks := s.Lacks[channeltest.Redeliveries]; lacks {
		w.t.Skip(why)
	}
	b, stop := v.serve()
	alice := v.join("Alice")
	w.pair(b, alice)
	alice.say("hello")
	alice.expect("You said: hello")
	v.Redeliver()
	alice.say("second")
	alice.expect("You said: second")
	stop()
	v.Redeliver()
	_, stop = v.serve()
	alice.say("third")
	alice.expect("You said: third")
	stop()
	if n := strings.Count(w.prompts(), "session/prompt"); n != 3 {
		w.t.Errorf("three messages made %d prompts", n)
	}
}

// restartOver checks that a message of the time between two bridges is answered.
func restartOver(w *world, v *venue, _ channeltest.Subject) {
	b, stop := v.serve()
	alice := v.join("Alice")
	w.pair(b, alice)
	stop()
	alice.say("hello")
	_, stop = v.serve()
	alice.expect("You said: hello")
	stop()
}

// TestChannelKilled kills the bridge over each channel repeatedly. The platform misbehaves in every way of the table.
// Each message is called at most once, and its sender learns the outcome.
func TestChannelKilled(t *testing.T) {
	for _, s := range subjects {
		t.Run(s.Name, func(t *testing.T) {
			seed := *tortureSeed
			if seed == 0 {
				seed = uint64(time.Now().UnixNano()) % 1_000_000
			}
			rng := seeded(t, seed)
			w := newWorld(t)
			v := w.venue(s)
			people := []*person{v.join("P0"), v.join("P1"), v.join("P2")}
			b, stop := v.serve()
			for _, p := range people {
				w.pair(b, p)
				p.mu.Lock()
				p.also = func(a local.Arrived) { p.allow(a); p.confirm(a) }
				p.mu.Unlock()
			}
			stop()
			faults := slices.DeleteFunc([]channeltest.Fault{channeltest.ServerError, channeltest.LateServerError,
				channeltest.Half, channeltest.Drop, channeltest.LateDrop, channeltest.RateLimit},
				func(f channeltest.Fault) bool { return !s.Has(f) })
			env := platformVar + "=" + s.Name + " " + v.Address()
			bridge := w.spawn("bridge", rng.Uint64(), env)
			sent := make([][]string, len(people))
			kills := 0
			for i := range *channelMessages {
				n := rng.IntN(len(people))
				text := fmt.Sprintf("<p%d-%03d>", n, len(sent[n]))
				sent[n] = append(sent[n], text)
				switch script := text; {
				case rng.IntN(7) == 0:
					people[n].say(script + "\n@ask execute \"Build it\" command=\"make\"")
				case rng.IntN(5) == 0:
					people[n].say(script + "\n@sleep 50ms")
				default:
					people[n].say(script)
				}
				if f := rng.IntN(3*len(faults) + 1); f < len(faults) {
					v.Fail([]channeltest.Operation{channeltest.Sending, channeltest.Receiving}[rng.IntN(2)], faults[f])
				}
				// A redelivery repeats all messages, so it becomes rarer with their number.
				if _, lacks := s.Lacks[channeltest.Redeliveries]; !lacks && rng.IntN(5+i/5) == 0 {
					v.Redeliver()
				}
				if rng.IntN(4) == 0 {
					people[n].outcome(sent[n][rng.IntN(len(sent[n]))])
				}
				if (i+1)*(*channelKills)/(*channelMessages) > kills {
					pause(time.Duration(rng.IntN(200)) * time.Millisecond)
					kills++
					bridge.kill()
					bridge = w.spawn("bridge", rng.Uint64(), env)
				}
			}
			for n, p := range people {
				for _, text := range sent[n] {
					p.outcome(text)
				}
			}
			_ = bridge.stdin.Close() // the end of its input stops the bridge normally
			if err := bridge.Wait(); err != nil {
				t.Errorf("the bridge: %v", err)
			}
			t.Logf("%d messages; the bridge was killed %d times", *channelMessages, kills)
			w.audit(people, sent)
		})
	}
}
