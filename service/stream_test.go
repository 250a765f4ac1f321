package service_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// removing is a platform that can edit and delete messages.
type removing struct {
	*local.Channel
	removed chan string // the ids of the deleted messages
	edits   *atomic.Int32
	fail    error // the error that each edit returns; may be nil
}

func (removing) Pace(string) time.Duration { return 5 * time.Millisecond }

func (c removing) Edit(ctx context.Context, id string, m channel.Outbound) error {
	c.edits.Add(1)
	if c.fail != nil {
		return c.fail
	}
	return c.Channel.Edit(ctx, id, m)
}

func (c removing) Remove(_ context.Context, id string) error {
	c.removed <- id
	return nil
}

// streaming returns a person on a channel that shows answers while they arrive.
func (w *world) streaming(fail error, change ...func(*service.Options)) (*person, removing) {
	r := removing{removed: make(chan string, 1), edits: &atomic.Int32{}, fail: fail}
	s := w.serve(local.DefaultLimits(), append(change, func(o *service.Options) {
		r.Channel = o.Channels[0].(*local.Channel)
		o.Channels[0], o.Settings.Stream, o.Settings.Grace = r, !strings.Contains(o.Settings.Ack, "off"), time.Millisecond
	})...)
	alice := w.phone("alice")
	w.pair(s, alice)
	return alice, r
}

const slowly = "@say one and\n@sleep 300ms\n@say  two\n@sleep 1h"

// TestAnAnswerIsShownAsItComes checks that one message shows the answer so far. The whole answer
// then replaces it. If tools ran, the message keeps their results.
func TestAnAnswerIsShownAsItComes(t *testing.T) {
	w := newWorld(t)
	alice, r := w.streaming(nil)
	alice.say(slowly)
	first := alice.expect("one and\n\n⏳")
	if edit := alice.expect("one and two\n\n⏳"); edit.Edits != first.Key {
		t.Errorf("%+v is no edit of %+v", edit, first)
	}
	alice.say("/stop")
	if whole := alice.expect("one and two\n\n⏹"); whole.Edits != "" || strings.Contains(whole.Text, "⏳") {
		t.Errorf("the answer is %+v", whole)
	}
	if id := <-r.removed; id != first.Key {
		t.Errorf("%s was taken back", id)
	}
	alice.say("@say let me see\n@ask execute \"May I\" command=\"make\"\n@say done")
	alice.mu.Lock()
	before := alice.read
	alice.mu.Unlock()
	card := alice.expect("Answer with an option's number")
	alice.mu.Lock()
	alice.read = before // search again, because the card and the partial answer may arrive in any order
	alice.mu.Unlock()
	shown := alice.expect("let me see\n\n⏳")
	alice.allow(card)
	alice.expect("done")
	for {
		alice.mu.Lock()
		change, end := alice.change, local.Arrived{}
		for _, a := range alice.arrived {
			if a.Edits == shown.Key {
				end = a
			}
		}
		alice.mu.Unlock()
		if strings.HasPrefix(end.Text, "✓ 1 tool call: ") {
			break
		}
		<-change
	}
}

// TestAnAnswerIsShownAtThePlatformsPace checks that a platform that demands a pause gets no edits
// for this time. No message waits for the edits.
func TestAnAnswerIsShownAtThePlatformsPace(t *testing.T) {
	for name, fail := range map[string]error{"429": &channel.RateLimitError{After: time.Hour},
		"refused": &channel.RejectedError{Why: "400"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			alice, r := w.streaming(fail)
			alice.say("@say begun\n@delay 40ms\n@stream 50 12")
			alice.expect("⏳")
			alice.expect("000000049")
			<-r.removed
			if n := r.edits.Load(); n > 1 {
				t.Errorf("%d edits were tried", n)
			}
		})
	}
}

// TestAnAnswerIsNotShownBefore checks that a switched-off stream shows no partial answer.
func TestAnAnswerIsNotShownBefore(t *testing.T) {
	w := newWorld(t)
	alice, _ := w.streaming(nil, func(o *service.Options) { o.Settings.Ack = "off" })
	alice.say("@say one\n@sleep 300ms\n@say  two")
	alice.expect("one two")
	if n := alice.count("⏳"); n > 0 {
		t.Errorf("%d messages come before the answer", n)
	}
}

// unshown is a platform that does not accept status messages.
type unshown struct{ removing }

func (c unshown) Send(ctx context.Context, m channel.Outbound) (string, error) {
	if strings.Contains(m.Text, "⏳") {
		return "", channel.ErrNotSent
	}
	return c.Channel.Send(ctx, m)
}

// TestASignOfATurnThatIsOver checks that the status message of a finished turn is not sent any
// longer, delays no answer, and does not count as given up.
func TestASignOfATurnThatIsOver(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) {
		r := removing{o.Channels[0].(*local.Channel), make(chan string, 1), &atomic.Int32{}, nil}
		o.Channels[0], o.Settings.Stream, o.Backoff = unshown{r}, true, time.Millisecond
	})
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("@say one\n@sleep 300ms\n@say  two")
	alice.expect("one two")
	if st, err := s.Records().Status(t.Context()); err != nil || st.Failed != 0 || st.LastWhy != "" {
		t.Errorf("%+v, %v", st, err)
	}
}
