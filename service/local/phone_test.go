package local

import (
	"context"
	"sync"
	"testing"

	"github.com/perlica/perlica/service/channel"
)

// run keeps a phone connected until the test ends or the function "leave" is called.
func run(t *testing.T, p *Phone) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	leave = func() { cancel(); wg.Wait() }
	t.Cleanup(leave)
	return leave
}

// TestPhoneKeepsWhatItSays checks that a phone repeats a message under the same id until it is
// accepted, also after a restart of the bridge. A refused message is not repeated.
func TestPhoneKeepsWhatItSays(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	refused := make(chan Refusal, 1)
	p := &Phone{Path: path, Name: "alice", Token: aliceToken, Refused: func(r Refusal) { refused <- r }}
	id := p.Say(Message{Text: "hi"}) // before there is a connection
	run(t, p)
	list, _ := polled(t, c, "")
	if len(list) != 1 || list[0].ID != ContactID("alice", aliceToken)+"/"+id || list[0].Sent.IsZero() {
		t.Fatalf("got %+v", list)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := Listen(path, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	again, next := polled(t, c, "")
	if len(again) != 1 || again[0].ID != list[0].ID || !again[0].Sent.Equal(list[0].Sent) {
		t.Fatalf("then %+v", again)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p.Flush(ctx) == nil {
		t.Error("it has been accepted already")
	}
	c.confirmUpTo(next)
	if err := p.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	p.Say(Message{ID: id, Text: "other words"})
	again, _ = polled(t, c, next)
	c.Refuse(again[0], &channel.ConflictError{ID: id})
	if r := <-refused; r.ID != id || p.Flush(t.Context()) != nil {
		t.Errorf("refused was %+v", r)
	}
}

// TestPhoneShowsOnce checks that an unconfirmed message that is sent again is shown once and
// confirmed each time.
func TestPhoneShowsOnce(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	var shown []string
	p := &Phone{Path: path, Name: "alice", Token: aliceToken, Show: func(a Arrived) { shown = append(shown, a.Key) }}
	leave := run(t, p)
	for _, key := range []string{"k", "k", "l"} {
		if _, err := c.Send(t.Context(), channel.Outbound{Chat: ContactID("alice", aliceToken), Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	if len(shown) != 2 || shown[0] != "k" || shown[1] != "l" {
		t.Errorf("it showed %q", shown)
	}
}

// TestPhoneIsGivenAToken checks that a phone keeps its first token, sends nothing before it has
// one, and is the same contact after a reconnection.
func TestPhoneIsGivenAToken(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	kept := make(chan string, 9)
	online := make(chan bool, 9)
	p := &Phone{Path: path, Name: "alice", Keep: func(token string) { kept <- token },
		Online: func(on bool) { online <- on }}
	p.Say(Message{Text: "hi"})
	leave := run(t, p)
	list, next := polled(t, c, "")
	token := <-kept
	if len(list) != 1 || list[0].Contact != ContactID("alice", token) || !<-online {
		t.Fatalf("got %+v with the token %s", list, token)
	}
	c.confirmUpTo(next)
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	leave()
	if <-online {
		t.Error("it is there still")
	}
	run(t, p)
	p.Say(Message{Text: "again"})
	if list, _ := polled(t, c, next); len(list) != 1 || list[0].Contact != ContactID("alice", token) || len(kept) > 0 {
		t.Errorf("then %+v", list)
	}
}
