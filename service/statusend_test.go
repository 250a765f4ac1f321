package service_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// wait waits for the arrival of a fitting message.
func (p *person) wait(fits func(local.Arrived) bool) local.Arrived {
	p.t.Helper()
	for late := time.After(2 * time.Minute); ; {
		p.mu.Lock()
		change := p.change
		for _, a := range p.arrived {
			if fits(a) {
				p.mu.Unlock()
				return a
			}
		}
		p.mu.Unlock()
		select {
		case <-change:
		case <-late:
			p.t.Fatalf("%s never got it", p.Name)
		}
	}
}

// slowEdits is a platform with edits that wait for the test.
type slowEdits struct {
	*local.Channel
	begin chan struct{}
}

func (c slowEdits) Edit(ctx context.Context, id string, m channel.Outbound) error {
	select {
	case <-c.begin:
		return c.Channel.Edit(ctx, id, m)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestASignWhoseBridgeDied kills the bridge during a turn with a status message. The next bridge
// changes the message to its end once, and no other message waits for this.
func TestASignWhoseBridgeDied(t *testing.T) {
	w := newWorld(t)
	w.isPaired("alice")
	alice := w.phone("alice")
	bridge := w.spawn("bridge", 0, dieVar+"=never")
	defer bridge.kill()
	alice.say("@tool read Look path=x\n@sleep 4s\n@tool read Look path=y\n@sleep 1h")
	sign := alice.wait(func(a local.Arrived) bool { return strings.HasPrefix(a.Text, "⏳") })
	// The arrival of an edit shows that the sending of the status message is on record.
	alice.wait(func(a local.Arrived) bool { return a.Edits == sign.Key })
	bridge.kill()

	edits := make(chan struct{})
	s := w.serve(local.DefaultLimits(), func(o *service.Options) {
		o.Channels[0] = slowEdits{o.Channels[0].(*local.Channel), edits}
	})
	alice.expect("is unknown, and it will not be sent again")
	alice.say("hello")
	alice.expect("You said: hello")
	if n := alice.count("The bridge ended during this turn"); n != 0 {
		t.Errorf("%d edits came through", n)
	}
	close(edits)
	if end := alice.expect("⏹ The bridge ended during this turn"); end.Edits != sign.Key {
		t.Errorf("%+v is no edit of %+v", end, sign)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.serve(local.DefaultLimits())
	alice.say("hello again")
	alice.expect("You said: hello again")
	if n := alice.count("The bridge ended during this turn"); n != 1 {
		t.Errorf("%d times", n)
	}
}
