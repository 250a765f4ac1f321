package service_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// noFiles is a platform that answers every file with the same unspecific error.
type noFiles struct{ *local.Channel }

func (c noFiles) Send(ctx context.Context, m channel.Outbound) (string, error) {
	if m.File != nil {
		return "", errors.New("the server answers 500")
	}
	return c.Channel.Send(ctx, m)
}

// TestAFileThatCannotLeaveHoldsUpNothing checks that an unsendable file is given up and the later
// messages are sent.
func TestAFileThatCannotLeaveHoldsUpNothing(t *testing.T) {
	limits := local.DefaultLimits()
	limits.Text, limits.Files = 200, true
	w := newWorld(t)
	s := w.serve(limits, func(o *service.Options) { o.Channels[0] = noFiles{o.Channels[0].(*local.Channel)} })
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(strings.Repeat("many words ", 100))
	alice.say("the next one")
	alice.expect("You said: the next one")
	alice.expect("could not be sent here")
	st, err := s.Records().Status(t.Context())
	if err != nil || st.Failed != 1 {
		t.Errorf("%d are recorded as given up, %v", st.Failed, err)
	}
}

// lateAck is a platform that is unreachable four times and then fails once at each text.
type lateAck struct {
	*local.Channel
	tries map[string]int // by key; used by one outbox
}

func (c lateAck) Send(ctx context.Context, m channel.Outbound) (string, error) {
	c.tries[m.Key]++
	switch n := c.tries[m.Key]; {
	case n <= 4:
		return "", channel.ErrNotSent
	case n == 5:
		return "", errors.New("the server answers 500")
	}
	return c.Channel.Send(ctx, m)
}

// TestAnAckIsNotGivenUpForAnUnreachablePlatform checks that only failures of the platform itself
// count.
func TestAnAckIsNotGivenUpForAnUnreachablePlatform(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) {
		o.Backoff = time.Millisecond
		o.Channels[0] = lateAck{o.Channels[0].(*local.Channel), map[string]int{}}
	})
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("hello")
	alice.expect("ACK")
	alice.expect("You said: hello")
}

// hostile is a platform that fails at some messages in its own way.
type hostile struct {
	*local.Channel
	fail func(m channel.Outbound) error
}

func (c hostile) Send(ctx context.Context, m channel.Outbound) (string, error) {
	if err := c.fail(m); err != nil {
		return "", err
	}
	return c.Channel.Send(ctx, m)
}

// hostile runs a bridge with a channel that returns the errors of the function "fail". It also returns a paired person.
func (w *world) hostile(limits channel.Limits, fail func(m channel.Outbound) error) (*serving, *person) {
	s := w.serve(limits, func(o *service.Options) {
		o.Backoff, o.Settings.Grace = time.Millisecond, time.Millisecond // a question may be open at the end
		o.Channels[0] = hostile{o.Channels[0].(*local.Channel), fail}
	})
	alice := w.phone("alice")
	w.pair(s, alice)
	return s, alice
}

// TestWhatCannotBeSentHoldsUpNothing checks an answer that the platform always fails at or refuses.
// The contact is told, and the later messages are sent.
func TestWhatCannotBeSentHoldsUpNothing(t *testing.T) {
	for name, fault := range map[string]error{"500 for ever": errors.New("the server answers 500"),
		"refused": &channel.RejectedError{Why: "400"}} {
		t.Run(name, func(t *testing.T) {
			s, alice := newWorld(t).hostile(local.DefaultLimits(), func(m channel.Outbound) error {
				if strings.Contains(m.Text, "poison") {
					return fault
				}
				return nil
			})
			alice.say("poison")
			alice.expect("An answer could not be sent here")
			alice.say("the next one")
			alice.expect("You said: the next one")
			if st, err := s.Records().Status(t.Context()); err != nil || st.Failed != 1 {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
}

// TestNothingIsGivenUpWhileThePlatformFails checks that a failure at every message is the
// platform's fault.
func TestNothingIsGivenUpWhileThePlatformFails(t *testing.T) {
	var down atomic.Int32
	s, alice := newWorld(t).hostile(local.DefaultLimits(), func(m channel.Outbound) error {
		if down.Load() > 0 && !strings.Contains(m.Text, "ACK") && down.Add(-1) > 0 {
			return errors.New("the server answers 502")
		}
		return nil
	})
	down.Store(9)
	alice.say("hello")
	alice.expect("You said: hello")
	if st, err := s.Records().Status(t.Context()); err != nil || st.Failed != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestACardFallsBack checks that a refused card is sent without its buttons. If this is refused,
// too, the contact is told where the question waits.
func TestACardFallsBack(t *testing.T) {
	const ask = `@ask execute "May I" command="make"`
	limits := local.DefaultLimits()
	limits.Buttons = true
	_, alice := newWorld(t).hostile(limits, func(m channel.Outbound) error {
		if len(m.Buttons) > 0 {
			return &channel.RejectedError{Why: "400: BUTTON_DATA_INVALID"}
		}
		return nil
	})
	alice.say(ask)
	card := alice.expect("Answer with an option's number")
	if len(card.Buttons) > 0 {
		t.Errorf("it has buttons: %+v", card)
	}
	alice.allow(card)
	alice.expect("answered at")

	_, alice = newWorld(t).hostile(limits, func(m channel.Outbound) error {
		if strings.Contains(m.Text, "with `#") {
			return &channel.RejectedError{Why: "403"}
		}
		return nil
	})
	alice.say(ask)
	alice.expect("It waits for an answer where Perlica runs: `perlica pending`")
}

// TestBackOffEndsWhenThePlatformAnswers checks that the arrival of one contact's message ends the
// waits of the other contacts' messages.
func TestBackOffEndsWhenThePlatformAnswers(t *testing.T) {
	w := newWorld(t)
	var down atomic.Bool
	failed := make(chan struct{}, 100)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) {
		o.Channels[0] = hostile{o.Channels[0].(*local.Channel), func(m channel.Outbound) error {
			if down.Load() && strings.Contains(m.Text, "You said") {
				failed <- struct{}{}
				return channel.ErrNotSent
			}
			return nil
		}}
		o.Backoff = time.Hour
	})
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice)
	w.pair(s, bob)
	down.Store(true)
	bob.say("one")
	<-failed
	down.Store(false)
	// The acknowledgement of this message arrives, which ends the wait of bob's message.
	alice.say("two")
	bob.expect("You said: one")
	alice.expect("You said: two")
}

// TestBackOffEndsWithANewMessage checks that a contact that writes again after an outage waits for no further attempt.
// The platform has accepted no message since the outage.
func TestBackOffEndsWithANewMessage(t *testing.T) {
	w := newWorld(t)
	var down atomic.Bool
	failed := make(chan struct{}, 100)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) {
		o.Channels[0] = hostile{o.Channels[0].(*local.Channel), func(channel.Outbound) error {
			if down.Load() {
				failed <- struct{}{}
				return channel.ErrNotSent
			}
			return nil
		}}
		o.Backoff = time.Hour
	})
	alice := w.phone("alice")
	w.pair(s, alice)
	down.Store(true)
	alice.say("one")
	// The first message of the outbox has failed. All later messages wait for it.
	<-failed
	down.Store(false)
	alice.say("two")
	alice.expect("You said: one")
	alice.expect("You said: two")
}

// TestARepetitionDelaysNoMessage checks that the next message after several repetitions is received
// at once.
func TestARepetitionDelaysNoMessage(t *testing.T) {
	w := newWorld(t)
	var pushed pushes
	s := w.serve(local.DefaultLimits(), func(o *service.Options) {
		pushed = pushes{o.Channels[0].(*local.Channel), make(chan channel.Inbound)}
		o.Channels = append(o.Channels, pushed)
		o.Backoff = time.Hour
	})
	alice := w.phone("alice")
	w.pair(s, alice)
	for _, id := range []string{"1", "1", "1", "1", "2", "2", "3"} {
		pushed.messages <- channel.Inbound{ID: id, Chat: "c", Contact: "stranger", Text: "x"} // a poll takes this message
	}
}

// pushes is a platform with a poll that waits for messages, like the webhook. Each message moves
// its cursor.
type pushes struct {
	*local.Channel
	messages chan channel.Inbound
}

func (c pushes) Name() string { return "pushes" }

func (c pushes) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	select {
	case m := <-c.messages:
		return []channel.Inbound{m}, cursor + "+", nil
	case <-ctx.Done():
		return nil, cursor, ctx.Err()
	}
}
