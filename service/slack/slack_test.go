package slack_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/slack"
	"github.com/perlica/perlica/service/slack/slacktest"
)

// world is an app and its workspace.
type world struct {
	*slacktest.Server
	app    *slack.Channel
	t      *testing.T
	cursor string
}

// start starts a workspace and an app.
func start(t *testing.T, change ...func(*slack.Options)) *world {
	t.Helper()
	s := slacktest.New(t)
	s.Join("U0ADA", "Ada")
	opt := slack.Options{AppToken: slacktest.AppToken, BotToken: slacktest.BotToken, BaseURL: s.URL,
		Files: filepath.Join(t.TempDir(), "files"), PollFor: time.Second, Timeout: time.Minute,
		Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	for _, f := range change {
		f(&opt)
	}
	app, err := slack.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{Server: s, app: app, t: t}
}

// patient returns a context that ends long after the expected event.
func (w *world) patient() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

// receives polls until n messages have come. With "record" they count as stored.
func (w *world) receives(n int, record bool) (list []channel.Inbound) {
	w.t.Helper()
	for len(list) < n {
		got, next, err := w.app.Poll(w.patient(), w.cursor)
		if err != nil {
			w.t.Fatal(err)
		}
		if list = append(list, got...); record {
			w.cursor = next
		} else if len(got) < n {
			list = nil // all messages come again
		}
	}
	if len(list) > n {
		w.t.Fatalf("%d messages: %+v", len(list), list)
	}
	return list
}

// waits waits for a condition of the workspace.
func (w *world) waits(ok func() bool) {
	w.t.Helper()
	if err := w.Wait(w.patient(), ok); err != nil {
		w.t.Fatal(err)
	}
}

// acknowledged counts the acknowledged envelopes.
func (w *world) acknowledged() (n int) {
	for _, e := range w.Envelopes() {
		if e.Acknowledged {
			n++
		}
	}
	return n
}

// pollAside polls until the returned function is called.
func (w *world) pollAside() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, next, err := w.app.Poll(ctx, w.cursor); err == nil {
				w.cursor = next
			}
		}
	}()
	return func() { cancel(); <-done }
}

func TestNewRefuses(t *testing.T) {
	good := slack.Options{AppToken: slacktest.AppToken, BotToken: slacktest.BotToken}
	for want, change := range map[string]func(*slack.Options){
		"the app-level token must begin with xapp-": func(o *slack.Options) { o.AppToken = "" },
		"the app-level token is a bot token":        func(o *slack.Options) { o.AppToken = slacktest.BotToken },
		"the bot token is an app-level token":       func(o *slack.Options) { o.BotToken = slacktest.AppToken },
		"the bot token is a user token":             func(o *slack.Options) { o.BotToken = "xoxp-1-2" },
		"the bot token must begin with xoxb-":       func(o *slack.Options) { o.BotToken = slacktest.BotToken + "\n" },
		"the base URL is no address":                func(o *slack.Options) { o.BaseURL = "https://u:xoxb-secret@x/" },
	} {
		opt := good
		change(&opt)
		if _, err := slack.New(opt); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), slacktest.BotToken) || strings.Contains(err.Error(), "xoxb-secret") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestAcknowledgedWhenRecorded checks that an envelope with a message is acknowledged only after the next Poll,
// which proves that the message was stored. Any other envelope is acknowledged at once.
func TestAcknowledgedWhenRecorded(t *testing.T) {
	w := start(t)
	w.Say("D0ADA", "U0ADA", "hello", nil)
	w.Deliver(slacktest.Event(map[string]any{"type": "team_join"}))
	first := w.receives(1, false)
	w.waits(func() bool { return w.acknowledged() == 1 })
	if e := w.Envelopes(); e[0].Acknowledged {
		t.Error("the message was acknowledged before it was recorded")
	}
	again := w.receives(1, true)
	if first[0].ID != again[0].ID {
		t.Errorf("it came again as %+v", again)
	}
	defer w.pollAside()()
	w.waits(func() bool { return w.acknowledged() == 2 })
}

// TestDisconnect checks that a new socket follows Slack's announcement, and that both sockets carry messages in the
// meantime.
func TestDisconnect(t *testing.T) {
	for _, reason := range []string{"warning", "refresh_requested"} {
		t.Run(reason, func(t *testing.T) {
			w := start(t)
			w.Say("D0ADA", "U0ADA", "on the first", nil)
			w.receives(1, false) // the message waits for its acknowledgement on the first socket
			w.Disconnect(reason)
			w.Say("D0ADA", "U0ADA", "on the second", nil)
			list := w.receives(2, true)
			if open, all := w.Sockets(); open != 2 || all != 2 || list[1].Text != "on the second" {
				t.Errorf("%d of %d sockets are open; got %+v", open, all, list)
			}
			defer w.pollAside()()
			w.waits(func() bool { return w.acknowledged() == 2 })
		})
	}
}

// TestRefusedConnection checks that Poll names the reason for which Slack ends a connection.
func TestRefusedConnection(t *testing.T) {
	for reason, want := range map[string]string{"link_disabled": "Socket Mode", "too_many_websockets": "too many"} {
		w := start(t)
		w.Say("D0ADA", "U0ADA", "hello", nil)
		w.receives(1, true)
		w.Disconnect(reason)
		var err error
		for err == nil {
			_, _, err = w.app.Poll(w.patient(), w.cursor)
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", reason, err, want)
		}
	}
}

// TestDeadConnection checks that a socket that no longer answers is replaced. The first server accepts and then never
// reads.
func TestDeadConnection(t *testing.T) {
	var deaf atomic.Bool
	deaf.Store(true)
	w := start(t, func(o *slack.Options) { o.Ping = 50 * time.Millisecond })
	w.Deaf = deaf.Load
	defer w.pollAside()()
	w.waits(func() bool { _, all := w.Sockets(); return all >= 2 })
	deaf.Store(false)
	w.Say("D0ADA", "U0ADA", "hello", nil)
	w.waits(func() bool { return w.acknowledged() == 1 })
}

// TestThreads checks the chats of messages. In a channel the answer begins a thread. In a direct message it does not.
func TestThreads(t *testing.T) {
	w := start(t)
	root := w.Say("D0ADA", "U0ADA", "in the chat", nil)
	w.Say("D0ADA", "U0ADA", "in a thread", map[string]any{"thread_ts": root, "parent_user_id": "U0ADA"})
	card := map[string]any{"thread_ts": "1.5", "parent_user_id": slacktest.BotUser}
	w.Say("D0ADA", "U0ADA", "to the bot's message", card)
	at := w.Now()
	mention := map[string]any{"type": "app_mention", "channel_type": nil}
	w.Deliver(slacktest.Said("C0ALL", "U0ADA", "<@"+slacktest.BotUser+"> /status &amp; <@U0BOB|bob>", at, mention))
	w.Say("C0ALL", "U0ADA", "to others", map[string]any{"channel_type": "channel"})
	mention["thread_ts"] = at
	w.Deliver(slacktest.Said("C0ALL", "U0ADA", "and <@"+slacktest.BotUser+">", w.Now(), mention))
	list := w.receives(5, true)
	var got []string
	for _, m := range list {
		got = append(got, fmt.Sprintf("%s %t %s %s", m.Chat, m.Shared, m.ReplyTo, m.Text))
	}
	want := []string{"D0ADA false  in the chat", "D0ADA/" + root + " false  in a thread",
		"D0ADA false D0ADA:1.5 to the bot's message", "C0ALL/" + at + " true  /status & @bob", "C0ALL/" + at + " true  and"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if list[3].ID != "C0ALL:"+at || list[3].Name != "Ada" {
		t.Errorf("got %+v", list[3])
	}
	if _, err := w.app.Send(t.Context(), channel.Outbound{Chat: list[3].Chat, Text: "an answer"}); err != nil {
		t.Fatal(err)
	}
	if m := w.Messages()[0]; m.Channel != "C0ALL" || m.Thread != at {
		t.Errorf("the answer is %+v", m)
	}
}

// TestWordsOfOthers checks the messages that no person has just written, such as edited messages and messages of
// bots.
func TestWordsOfOthers(t *testing.T) {
	w := start(t)
	w.Say("D0ADA", "U0BOT", "of another bot", map[string]any{"bot_id": "B0OTHER"})
	w.Say("D0ADA", "", "of a webhook", map[string]any{"subtype": "bot_message", "bot_id": "B0HOOK"})
	w.Say("D0ADA", "U0ADA", "joined", map[string]any{"subtype": "channel_join"})
	shared := []any{map[string]any{"is_share": true, "text": "1"}}
	w.Say("D0ADA", "U0ADA", "forwarded", map[string]any{"attachments": shared})
	old := map[string]any{"type": "message", "user": "U0ADA", "text": "1", "ts": "1700000000.000100"}
	edited := map[string]any{"type": "message", "user": "U0ADA", "text": "2", "ts": "1700000000.000100",
		"edited": map[string]any{"user": "U0ADA", "ts": "1700000009.000000"}}
	w.Say("D0ADA", "", "", map[string]any{"subtype": "message_changed", "message": edited, "previous_message": old})
	unfurled := map[string]any{"type": "message", "user": "U0ADA", "text": "1", "ts": "1700000000.000100"}
	w.Say("D0ADA", "", "", map[string]any{"subtype": "message_changed", "message": unfurled, "previous_message": old})
	w.Say("D0ADA", slacktest.BotUser, "the bot's own", map[string]any{"bot_id": slacktest.BotID})
	list := w.receives(3, true)
	if !list[0].Quoted || list[1].Unread != "an edited message" || list[1].Text != "" ||
		list[1].ID != "D0ADA:1700000000.000100:1700000009.000000" || !list[2].Own {
		t.Errorf("got %+v", list)
	}
}

func TestSlashCommand(t *testing.T) {
	w := start(t)
	for i, text := range []string{"status", "", "/choose 1"} {
		w.Deliver(&slacktest.Envelope{Type: "slash_commands", Payload: map[string]any{"command": "/perlica", "text": text,
			"channel_id": "D0ADA", "user_id": "U0ADA", "trigger_id": fmt.Sprint("1.", i)}})
	}
	list := w.receives(3, true)
	if list[0].Text != "/status" || list[1].Text != "/help" || list[2].Text != "/choose 1" || list[0].Chat != "D0ADA" ||
		list[0].Contact != "U0ADA" || list[0].ID == list[1].ID || list[0].Shared {
		t.Errorf("got %+v", list)
	}
}

func TestPlainText(t *testing.T) {
	w := start(t)
	const text = "&lt;b&gt; <https://x.example/?a&amp;b> <https://y.example|here> <http://z.example|z.example> " +
		"<mailto:a@b.example|a@b.example> <#C0ALL|all> <!here> <@U0BOB>"
	w.Say("D0ADA", "U0ADA", text, nil)
	want := "<b> https://x.example/?a&b here (https://y.example) z.example a@b.example #all @here @U0BOB"
	if m := w.receives(1, true)[0]; m.Text != want {
		t.Errorf("got %q, want %q", m.Text, want)
	}
}

// TestTokenStaysOnSlack checks that no other server gets the token with a request for a file.
func TestTokenStaysOnSlack(t *testing.T) {
	var seen atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer other.Close()
	w := start(t)
	w.AddFile(&slacktest.File{ID: "F0DRIVE", Name: "a", URL: other.URL + "/a"})
	w.AddFile(&slacktest.File{ID: "F0BAD", Name: "a", URL: w.URL[:len(w.URL)-len("/api")] + "@evil.example/a"})
	var refused *channel.RejectedError
	for _, id := range []string{"F0DRIVE", "F0BAD", "F0NONE"} {
		_, err := w.app.Fetch(t.Context(), "D0ADA:1.5", 0, channel.File{Name: "a", Remote: id})
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if n := seen.Load(); n != 0 {
		t.Errorf("the other server saw %d requests", n)
	}
}

// TestErrorCodes checks the kinds of Slack's error codes.
func TestErrorCodes(t *testing.T) {
	var code atomic.Value
	w := start(t)
	w.Fault = func(string) slacktest.Fault { return slacktest.Fault{Code: code.Load().(string)} }
	var refused *channel.RejectedError
	for c, want := range map[string]string{"channel_not_found": "refused", "not_in_channel": "refused",
		"restricted_action": "refused", "account_inactive": "not sent", "missing_scope": "not sent",
		"fatal_error": "unknown", "internal_error": "unknown", "ratelimited": "not sent"} {
		code.Store(c)
		_, err := w.app.Send(t.Context(), channel.Outbound{Chat: "D0ADA", Text: "hi"})
		kind := "unknown"
		switch {
		case errors.As(err, &refused):
			kind = "refused"
		case errors.Is(err, channel.ErrNotSent):
			kind = "not sent"
		}
		if err == nil || kind != want {
			t.Errorf("%s: %s, want %s: %v", c, kind, want, err)
		}
	}
}

func TestReactions(t *testing.T) {
	w := start(t)
	for range 2 { // the second reaction is there already
		if err := w.app.React(t.Context(), "D0ADA:1700000000.000100", "🫡"); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.Reactions(); !slices.Equal(got, []string{"D0ADA 1700000000.000100 saluting_face"}) {
		t.Errorf("got %q", got)
	}
	var refused *channel.RejectedError
	if err := w.app.React(t.Context(), "D0ADA:1700000000.000100", "🦤"); !errors.As(err, &refused) {
		t.Errorf("an unknown emoji: %v", err)
	}
}

// TestCheck checks that each missing setting has a finding.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   string // the name of the finding
		fails  bool
	}{
		"all there":      {func(*world) {}, "scopes", false},
		"files":          {func(w *world) { w.Scopes = slices.DeleteFunc(slices.Clone(w.Scopes), isFiles) }, "scope", false},
		"chat:write":     {func(w *world) { w.Scopes = []string{"im:history"} }, "scope", true},
		"two apps":       {func(w *world) { w.App = "A0OTHER" }, "apps", true},
		"no Socket Mode": {func(w *world) { w.Disconnect("link_disabled") }, "app token", true},
		"revoked":        {func(w *world) { w.Revoke() }, "bot token", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			c.change(w)
			list := w.app.Check(t.Context())
			i := slices.IndexFunc(list, func(f channel.Finding) bool { return f.Name == c.want })
			if i < 0 || list[i].Fails != c.fails || c.fails && list[i].Next == "" {
				t.Errorf("got %+v, want %q that fails: %t", list, c.want, c.fails)
			}
			if failed := slices.ContainsFunc(list, func(f channel.Finding) bool { return f.Fails }); failed != c.fails {
				t.Errorf("failed is %t: %+v", failed, list)
			}
		})
	}
}

func isFiles(scope string) bool { return strings.HasPrefix(scope, "files:") }

// delivers delivers envelopes and waits until the app has read them. The app acknowledges the last envelope at once,
// because it is no message.
func (w *world) delivers(say func()) {
	w.t.Helper()
	if list, _, err := w.app.Poll(w.patient(), w.cursor); err != nil || len(list) > 0 {
		w.t.Fatalf("the first Poll: %+v, %v", list, err)
	}
	before := w.acknowledged()
	say()
	w.Deliver(slacktest.Event(map[string]any{"type": "reaction_added"}))
	w.waits(func() bool { return w.acknowledged() > before })
}

// TestSlowNames checks that the names of all senders together have one time limit.
func TestSlowNames(t *testing.T) {
	w := start(t, func(o *slack.Options) { o.Timeout, o.PollFor = 10*time.Second, 10*time.Millisecond })
	asked := make(chan struct{})
	t.Cleanup(func() { close(asked) })
	w.Fault = func(method string) (f slacktest.Fault) {
		if method == "users.info" {
			<-asked
		}
		return f
	}
	w.delivers(func() {
		for i := range 5 {
			w.Say(fmt.Sprint("D0P", i), fmt.Sprint("U0P", i), "hello", nil)
		}
	})
	if list := w.receives(5, true); list[0].Name != "U0P0" || w.Calls("users.info") != 1 {
		t.Errorf("%d names were asked for, and the first is %q", w.Calls("users.info"), list[0].Name)
	}
}

// TestManyWait checks that the number of waiting messages is limited, and that the others come later.
func TestManyWait(t *testing.T) {
	w := start(t)
	const limit, more = 1000, 20
	for i := range limit + more {
		w.Say("D0ADA", "U0ADA", fmt.Sprint(i), nil)
	}
	for full := 0; full < more; {
		list, _, err := w.app.Poll(w.patient(), "")
		if err != nil || len(list) > limit {
			t.Fatalf("%d messages wait; %v", len(list), err)
		}
		if len(list) == limit {
			full++
		}
	}
	for n := 0; n < limit+more; {
		list, next, err := w.app.Poll(w.patient(), w.cursor)
		if err != nil || len(list) > 0 && list[0].Text != fmt.Sprint(n) {
			t.Fatalf("got %+v, %v; want %d", list, err, n)
		}
		n, w.cursor = n+len(list), next
	}
}
