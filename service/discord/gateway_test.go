package discord_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/discord/discordtest"
)

// TestRedelivered checks that messages come again with the same ids until the cursor after them is returned.
func TestRedelivered(t *testing.T) {
	w := start(t, nil)
	begin := connect(t, w.bot, "")
	w.Say(dm, ada, "Ada", "one")
	first, _ := poll(t, w.bot, begin)
	again, next := poll(t, w.bot, begin)
	if len(first) != 1 || len(again) != 1 || first[0].ID != again[0].ID {
		t.Fatalf("got %+v, then %+v", first, again)
	}
	w.nothing(t, w.bot, next)
}

// TestDuplicates checks that a message that Discord delivers twice arrives once.
func TestDuplicates(t *testing.T) {
	w := start(t, nil)
	next := connect(t, w.bot, "")
	id := w.Say(dm, ada, "Ada", "one")
	_, next = poll(t, w.bot, next)
	w.Again(dm, id)
	w.nothing(t, w.bot, next)
}

// TestContinues checks that no end of the connection loses a message or delivers a message twice. Messages come
// before the end, during the pause, and afterwards. The same holds for another process that gets the cursor.
func TestContinues(t *testing.T) {
	for _, c := range []struct {
		name         string
		end          func(w *world)
		begun, taken int // sessions that were begun and resumed
	}{
		{"dropped", func(w *world) { w.Drop() }, 1, 1},
		{"reconnect", func(w *world) { w.Tell(7, nil) }, 1, 1},
		{"resumable", func(w *world) { w.Tell(9, true) }, 1, 1},
		{"invalid", func(w *world) { w.Tell(9, false) }, 2, 0},
		{"forgotten", func(w *world) { w.Forget() }, 2, 0},
		{"4000", func(w *world) { w.CloseAll(4000) }, 1, 1},
		{"4007", func(w *world) { w.CloseAll(4007) }, 2, 0},
		{"4009", func(w *world) { w.CloseAll(4009) }, 2, 0},
		{"1001", func(w *world) { w.CloseAll(1001) }, 1, 1},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", c.name, restart), func(t *testing.T) {
				w := start(t, nil)
				bot := w.bot
				next := connect(t, bot, "")
				w.SayMore(room, ada, "Ada", discordtest.Mention("a"))
				_, next = poll(t, bot, next)
				w.Say(dm, ada, "Ada", "b")
				_, next = poll(t, bot, next)
				w.Say(dm, ada, "Ada", "c") // the bot may have it before the end, but the caller has not recorded it
				if restart {
					if err := bot.Close(); err != nil {
						t.Fatal(err)
					}
					bot = w.another(t)
				}
				c.end(w)
				w.Say(dm, ada, "Ada", "d")
				w.SayMore(room, ada, "Ada", discordtest.Mention("e"))
				var all []channel.Inbound
				for len(all) < 3 {
					var list []channel.Inbound
					list, next = poll(t, bot, next)
					all = append(all, list...)
				}
				got := map[string]int{}
				for _, m := range all {
					got[m.Text]++
				}
				// After a restart without a session, the messages of the last moment come again with their ids.
				if got["c"] != 1 || got["d"] != 1 || got["e"] != 1 || len(got) > 3 && !restart {
					t.Errorf("got %v", got)
				}
				w.nothing(t, bot, next)
				begun, resumed, _ := w.Sessions()
				if restart && c.begun == 1 {
					c.taken = 1
				}
				if begun != c.begun && !restart || resumed != c.taken && !restart {
					t.Errorf("%d sessions were begun and %d resumed, want %d and %d", begun, resumed, c.begun, c.taken)
				}
			})
		}
	}
}

// TestHistoryFails checks that nothing is lost if the history cannot be read at once.
func TestHistoryFails(t *testing.T) {
	w := start(t, only("GET /channels/{}/messages", discordtest.Fault{Status: 500}, discordtest.Fault{Half: true},
		discordtest.Fault{Status: 429, RetryAfter: 0.01}))
	next := connect(t, w.bot, "")
	w.Say(dm, ada, "Ada", "a")
	_, next = poll(t, w.bot, next)
	w.SayMore(room, ada, "Ada", discordtest.Mention("b"))
	_, next = poll(t, w.bot, next)
	w.Deny(room, 10003) // a deleted chat does not delay the others
	w.Forget()
	for i := range 250 { // more than one answer has
		w.Say(dm, ada, "Ada", fmt.Sprint(i))
	}
	var all []channel.Inbound
	for failed := 0; len(all) < 250; {
		list, cursor, err := w.bot.Poll(t.Context(), next)
		if err != nil {
			if failed++; failed > 10 {
				t.Fatal(err)
			}
			if cursor != next {
				t.Error("the cursor moved with an error")
			}
			continue
		}
		all, next = append(all, list...), cursor
	}
	for i, m := range all {
		if m.Text != fmt.Sprint(i) {
			t.Fatalf("the message %d is %q", i, m.Text)
		}
	}
	w.nothing(t, w.bot, next)
}

// TestPairedLater checks a contact that is paired by a message. After a lost session, the bot reads the contact's
// chat. The contact's messages from before the pairing remain the messages of a stranger.
func TestPairedLater(t *testing.T) {
	var paired atomic.Bool
	w := start(t, nil, func(w *world) { w.opt.Paired = func(who string) bool { return who == ada && paired.Load() } })
	next := connect(t, w.bot, "")
	w.Say(dm, ada, "Ada", "of a stranger")
	w.Say(dm, ada, "Ada", "123456")
	for code := ""; code != "123456"; {
		var list []channel.Inbound
		list, next = poll(t, w.bot, next)
		code = list[len(list)-1].Text
		paired.Store(code == "123456")
	}
	list, next, err := w.bot.Poll(t.Context(), next) // returns at once with a cursor that has the chat
	if err != nil || len(list) != 0 || !strings.Contains(next, dm) {
		t.Fatalf("got %+v, %q, %v", list, next, err)
	}
	w.Forget()
	w.Say(dm, ada, "Ada", "in the pause")
	if list, _ := poll(t, w.another(t), next); texts(list) != "123456 in the pause" {
		t.Errorf("got %q", texts(list))
	}
}

// TestFinalCodes checks that Discord's final close codes are explained and not tried again.
func TestFinalCodes(t *testing.T) {
	for code, want := range map[int]string{4004: "token", 4010: "shard", 4011: "too many servers", 4012: "version",
		4013: "intents", 4014: "Message Content Intent"} {
		w := start(t, nil, func(w *world) { w.RefuseSessions(code) })
		for range 3 {
			_, _, err := w.bot.Poll(t.Context(), "")
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprint(code)) {
				t.Errorf("%d: %v, want %q", code, err, want)
			}
			holdsToken(t, err)
		}
		if begun, _, _ := w.Sessions(); begun != 1 {
			t.Errorf("%d: %d attempts", code, begun)
		}
	}
	w := start(t, nil, func(w *world) { w.RefuseSessions(4000) })
	if _, _, err := w.bot.Poll(t.Context(), ""); err == nil {
		t.Error("a refused session is no error")
	}
	w.RefuseSessions(0)
	connect(t, w.bot, "")
}

// TestHeartbeats checks that heartbeats are sent in time and on request, and that a connection without acknowledgements
// is given up and resumed.
func TestHeartbeats(t *testing.T) {
	w := start(t, nil, func(w *world) { w.Interval = 30 * time.Millisecond })
	next := connect(t, w.bot, "")
	if err := w.Wait(t.Context(), func() bool { return w.Heartbeats() >= 3 }); err != nil {
		t.Fatal(err)
	}
	next = w.nothing(t, w.bot, next)
	w.SetDeaf(true)
	if err := w.Wait(t.Context(), func() bool { return w.Connected() == 0 }); err != nil {
		t.Fatal(err)
	}
	w.SetDeaf(false)
	w.nothing(t, w.bot, next)

	w = start(t, nil)
	next = connect(t, w.bot, "")
	w.Tell(1, nil)
	if err := w.Wait(t.Context(), func() bool { return w.Heartbeats() >= 1 }); err != nil {
		t.Fatal(err)
	}
	w.nothing(t, w.bot, next)
}

// TestStarts checks a bot that may not begin another session yet. The bot waits as long as Discord demands.
func TestStarts(t *testing.T) {
	w := start(t, nil, func(w *world) { w.SetStarts(0) })
	_, _, err := w.bot.Poll(t.Context(), "")
	var limit *channel.RateLimitError
	if begun, _, _ := w.Sessions(); !errors.As(err, &limit) || limit.After != time.Hour || begun != 0 {
		t.Errorf("got %v after %d attempts", err, begun)
	}
}

// TestRevoked checks that a wrong token is not sent to the gateway.
func TestRevoked(t *testing.T) {
	w := start(t, nil, func(w *world) { w.Revoke() })
	_, _, err := w.bot.Poll(t.Context(), "")
	begun, _, _ := w.Sessions()
	if err == nil || !strings.Contains(err.Error(), "does not accept the token") || begun != 0 {
		t.Errorf("got %v after %d attempts", err, begun)
	}
	holdsToken(t, err)
}

// TestForeignAddress checks that the token does not go to an address from the cursor of a foreign log.
func TestForeignAddress(t *testing.T) {
	var seen atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer other.Close()
	w := start(t, nil)
	next := connect(t, w.bot, "")
	var at map[string]any
	if err := json.Unmarshal([]byte(next), &at); err != nil || at["resume"] == nil {
		t.Fatalf("the cursor %q: %v", next, err)
	}
	at["resume"], at["epoch"] = "ws"+strings.TrimPrefix(other.URL, "http")+"/", "another"
	b, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	w.nothing(t, w.another(t), string(b))
	if seen.Load() != 0 {
		t.Error("the bot connected to the address")
	}
}

// TestPress checks that a press is acknowledged after the caller has recorded it, and only once.
func TestPress(t *testing.T) {
	w := start(t, nil)
	next := connect(t, w.bot, "")
	id, err := w.bot.Send(t.Context(), channel.Outbound{Chat: dm, Text: "May I?",
		Buttons: []channel.Button{{Label: "Yes", Data: "q1 1"}, {Label: "No", Data: "q1 2"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, message, _ := strings.Cut(id, ":")
	press := w.Press(dm, ada, "Ada", message, "q1 2", time.Minute)
	list, after := poll(t, w.bot, next)
	if len(list) != 1 {
		t.Fatalf("got %+v", list)
	}
	if m := list[0]; m.Button != "q1 2" || m.Text != "No" || m.ReplyTo != id || m.Contact != ada || m.Chat != dm ||
		m.ID != "press:"+press || m.Shared {
		t.Errorf("got %+v", m)
	}
	poll(t, w.bot, next) // the caller has not recorded the message
	if got := w.Acknowledged(); len(got) != 0 {
		t.Error("the press was acknowledged before it was recorded")
	}
	w.Say(dm, ada, "Ada", "next")
	_, after = poll(t, w.bot, after)
	if err := w.Wait(t.Context(), func() bool { return len(w.Acknowledged()) == 1 }); err != nil {
		t.Fatal(err)
	}
	// An expired press counts, and Discord's refusal of its acknowledgement does no harm.
	w.Press(dm, ada, "Ada", message, "q1 1", -time.Second)
	list, after = poll(t, w.bot, after)
	if len(list) != 1 || list[0].Button != "q1 1" {
		t.Errorf("an expired press: %+v", list)
	}
	w.nothing(t, w.bot, after)
	if err := w.Wait(t.Context(), func() bool { return w.Calls("POST /interactions/{}/{}/callback") == 2 }); err != nil {
		t.Fatal(err)
	}
}

// TestPressInAPause checks that a press during a restart is not lost while Discord keeps the session.
func TestPressInAPause(t *testing.T) {
	w := start(t, nil)
	next := connect(t, w.bot, "")
	id, err := w.bot.Send(t.Context(), channel.Outbound{Chat: room, Text: "May I?",
		Buttons: []channel.Button{{Label: "Yes", Data: "q1 1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.bot.Close(); err != nil {
		t.Fatal(err)
	}
	_, message, _ := strings.Cut(id, ":")
	w.Press(room, ada, "Ada", message, "q1 1", time.Minute)
	list, _ := poll(t, w.another(t), next)
	if len(list) != 1 || list[0].Button != "q1 1" || !list[0].Shared || list[0].Contact != ada {
		t.Errorf("got %+v", list)
	}
}

// TestPollFaults checks that a fault of the REST API ends a poll with an error of the right kind, and loses nothing.
func TestPollFaults(t *testing.T) {
	var limit *channel.RateLimitError
	for name, c := range map[string]struct {
		route string
		fault discordtest.Fault
		check func(error) bool
	}{
		"429": {"GET /gateway/bot", discordtest.Fault{Status: 429, RetryAfter: 17.5},
			func(err error) bool { return errors.As(err, &limit) && limit.After == 17500*time.Millisecond }},
		"502": {"GET /gateway/bot", discordtest.Fault{Status: 502, Raw: true, Say: "<html>"},
			func(err error) bool { return strings.Contains(err.Error(), "perhaps a proxy's") }},
		"half": {"GET /applications/@me", discordtest.Fault{Half: true},
			func(err error) bool { return strings.Contains(err.Error(), "breaks off") }},
		"drop": {"GET /gateway/bot", discordtest.Fault{Drop: true}, func(err error) bool { return true }},
	} {
		w := start(t, only(c.route, c.fault))
		_, next, err := w.bot.Poll(t.Context(), "")
		if err == nil || !c.check(err) || next != "" {
			t.Errorf("%s: %q, %v", name, next, err)
		}
		holdsToken(t, err)
		if name != "429" { // the pause of this one is not over
			w.nothing(t, w.bot, connect(t, w.bot, ""))
		}
	}
	w := start(t, nil, func(w *world) { w.opt.BaseURL = "http://127.0.0.1:1/api" }) // no other process gets this port
	if _, _, err := w.bot.Poll(t.Context(), ""); !errors.Is(err, channel.ErrNotSent) {
		t.Errorf("without a server: %v", err)
	}
}
