package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// again is a channel that delivers a message again.
type again struct {
	full
	more    chan channel.Inbound
	cursors chan string
}

func (a *again) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	select {
	case a.cursors <- cursor:
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type polled struct {
		list []channel.Inbound
		next string
		err  error
	}
	done := make(chan polled, 1)
	go func() { // ends with ctx
		list, next, err := a.full.Poll(ctx, cursor)
		done <- polled{list, next, err}
	}()
	select {
	case p := <-done:
		return p.list, p.next, p.err
	case m := <-a.more:
		cancel()
		<-done
		return []channel.Inbound{m}, cursor, nil
	}
}

// TestProjectsUpgrade checks a bot that gets a second project. It continues at the cursor of its
// first project's log and recognises repeated messages. It also continues after it has lost the
// second project.
func TestProjectsUpgrade(t *testing.T) {
	u := newUser(t)
	one := u.projects[0]
	for _, w := range u.projects {
		w.isPaired("alice")
	}
	s := one.serve(local.DefaultLimits())
	before := one.phone("alice")
	before.Say(local.Message{ID: "m", Text: "from earlier"})
	before.outcome("m")
	if err := before.Flush(t.Context()); err != nil { // after this, the cursor is on record
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	first := func() string {
		for line := range strings.Lines(one.rows("channels")) {
			return line
		}
		return ""
	}()
	old := channel.Inbound{ID: before.Contact + "/m", Chat: before.Contact, Contact: before.Contact, Text: "from earlier",
		Sent: time.Now()}
	alice := u.own.phone("alice")
	for i := range 2 {
		platform := &again{more: make(chan channel.Inbound), cursors: make(chan string, 1)}
		_, stop := u.serve(func(ch channel.Channel) channel.Channel { platform.full = ch.(full); return platform }, nil)
		if cursor := <-platform.cursors; i == 0 && !strings.Contains(first, cursor) || cursor == "" || i == 1 &&
			strings.Contains(first, cursor) {
			t.Errorf("%d: polled from %q, the log of the first has %q", i, cursor, first)
		}
		alice.say("/project shop")
		alice.expect("You are in shop now")
		platform.more <- old
		alice.say(fmt.Sprintf("later %d", i))
		alice.expect(fmt.Sprintf("You said: later %d", i))
		if err := alice.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop()
	}
	if n := u.calls("from earlier"); n != [2]int{1, 0} {
		t.Errorf("called %v times", n)
	}
	if types := u.own.types(t, event.ChannelRead); types == 0 {
		t.Error("the cursor is not in the user's own log")
	}
}

// types counts the events of a type.
func (w *world) types(t *testing.T, of event.Type) (n int) {
	t.Helper()
	r, err := w.openRunner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	count, err := r.Log().Count(t.Context(), event.Query{Types: []event.Type{of}})
	if err != nil {
		t.Fatal(err)
	}
	return int(count)
}
