package service_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// TestAnOpenQuestionHoldsNoSlot checks that other messages are answered while a question is open,
// even with one agent at a time.
func TestAnOpenQuestionHoldsNoSlot(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) { o.Settings.Agents = 1 })
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice)
	w.pair(s, bob)
	for range 2 { // a slot is released and taken back exactly once
		alice.say(`@ask execute "May I" command="make"`)
		card := alice.expect("Answer with an option's number")
		bob.say("hello")
		bob.expect("You said: hello")
		alice.allow(card)
		alice.expect("answered at")
		alice.say("thanks")
		alice.expect("You said: thanks")
	}
}

// hasty is a platform that answers each poll at once with a repeated message or none.
type hasty struct {
	*local.Channel
	name  string
	list  []channel.Inbound
	polls *atomic.Int32
}

func (c hasty) Name() string { return c.name }

func (c hasty) Poll(_ context.Context, cursor string) ([]channel.Inbound, string, error) {
	c.polls.Add(1)
	return c.list, cursor, nil
}

// TestPollsDoNotSpin checks that a platform that answers at once without new messages is polled
// with pauses.
func TestPollsDoNotSpin(t *testing.T) {
	w := newWorld(t)
	empty, same := hasty{name: "empty", polls: &atomic.Int32{}}, hasty{name: "same", polls: &atomic.Int32{}}
	s := w.serve(local.DefaultLimits(), func(o *service.Options) {
		o.Backoff = time.Hour
		empty.Channel = o.Channels[0].(*local.Channel)
		same.Channel, same.list = empty.Channel, []channel.Inbound{{ID: "1", Chat: "c", Contact: "stranger"}}
		o.Channels = append(o.Channels, empty, same)
	})
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("hello")
	alice.expect("You said: hello")
	if n := empty.polls.Load(); n != 1 {
		t.Errorf("%d polls of a platform that has nothing", n)
	}
	if n := same.polls.Load(); n != 1 {
		t.Errorf("%d polls of a platform that has the same again", n)
	}
}

// unreadable is a platform that cannot be polled.
type unreadable struct {
	hasty
	again chan struct{} // closed at the second poll
}

func (c unreadable) Poll(context.Context, string) ([]channel.Inbound, string, error) {
	if c.polls.Add(1) == 2 {
		close(c.again)
	}
	return nil, "", channel.ErrNotSent
}

// TestAFaultIsOfItsBridge checks that a bridge does not show a channel's fault that an earlier bridge has recorded.
func TestAFaultIsOfItsBridge(t *testing.T) {
	w := newWorld(t)
	faults := func(s *serving) (n int) {
		st, err := s.Records().Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range st.Channels {
			if c.Error != "" {
				n++
			}
		}
		return n
	}
	again := make(chan struct{})
	s := w.serve(local.DefaultLimits(), func(o *service.Options) {
		o.Channels = append(o.Channels, unreadable{hasty{o.Channels[0].(*local.Channel), "broken", nil, &atomic.Int32{}},
			again})
		o.LeftOut = []service.ChannelStatus{{Name: "absent", Error: "left out"}}
	})
	alice := w.phone("alice")
	w.pair(s, alice)
	if <-again; faults(s) != 2 {
		t.Errorf("%d channels are shown as faulty", faults(s))
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = w.serve(local.DefaultLimits())
	alice.say("hello")
	alice.expect("You said: hello")
	if n := faults(s); n != 0 {
		t.Errorf("%d channels are shown as faulty", n)
	}
}
