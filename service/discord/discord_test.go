package discord_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/discord"
	"github.com/perlica/perlica/service/discord/discordtest"
)

const secret = "hJq7Vw2mXb9cTzKfLrYpNs4d"

var token = base64.RawURLEncoding.EncodeToString([]byte(discordtest.Self)) + ".GxYz12." + secret

// These are chats and people of the platform.
const (
	dm, room, topic = "4200000000000000001", "4200000000000000002", "4200000000000000003"
	ada, bob        = "7000000000000000001", "7000000000000000002"
)

// world is a bot and its platform.
type world struct {
	*discordtest.Server
	bot *discord.Channel
	url string
	opt discord.Options
}

// start starts a platform and a bot. faults may be nil.
func start(t *testing.T, faults func(route string, n int) discordtest.Fault, change ...func(*world)) *world {
	t.Helper()
	w := &world{Server: discordtest.New(token)}
	w.Fault = faults
	w.AddChannel(room, discordtest.Text)
	w.AddChannel(topic, discordtest.Thread)
	h := httptest.NewServer(w.Server)
	t.Cleanup(h.Close)
	w.url = h.URL
	w.opt = discord.Options{
		Token: channel.Secret(token), BaseURL: h.URL + "/api/v10", Files: filepath.Join(t.TempDir(), "files"),
		Pause: time.Millisecond, Timeout: time.Minute, Client: &http.Client{Transport: &http.Transport{}},
	}
	for _, f := range change {
		f(w)
	}
	w.bot = w.another(t)
	return w
}

// another returns a bot with the same token, as a further process has.
func (w *world) another(t *testing.T) *discord.Channel {
	t.Helper()
	bot, err := discord.New(w.opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bot.Close() }) // Close returns no error
	return bot
}

// poll polls until there is a message.
func poll(t *testing.T, bot *discord.Channel, cursor string) ([]channel.Inbound, string) {
	t.Helper()
	for {
		list, next, err := bot.Poll(t.Context(), cursor)
		if err != nil {
			t.Fatal(err)
		}
		if cursor = next; len(list) > 0 {
			return list, next
		}
	}
}

// connect polls once, which connects the bot, and returns the cursor.
func connect(t *testing.T, bot *discord.Channel, cursor string) string {
	t.Helper()
	list, next, err := bot.Poll(t.Context(), cursor)
	if err != nil || len(list) > 0 {
		t.Fatalf("the first poll: %+v, %v", list, err)
	}
	return next
}

// nothing fails the test if a poll returns any message before a later message arrives.
func (w *world) nothing(t *testing.T, bot *discord.Channel, cursor string) string {
	t.Helper()
	w.Say(dm, ada, "Ada", "the end")
	list, next := poll(t, bot, cursor)
	if len(list) != 1 || list[0].Text != "the end" {
		t.Errorf("unexpected messages: %s", texts(list))
	}
	return next
}

func texts(list []channel.Inbound) string {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "%s ", m.Text)
	}
	return strings.TrimSpace(b.String())
}

// only limits faults to one route. The first calls of the route get the given faults, one after the other.
func only(route string, faults ...discordtest.Fault) func(string, int) discordtest.Fault {
	return func(r string, n int) discordtest.Fault {
		if r == route && n < len(faults) {
			return faults[n]
		}
		return discordtest.Fault{}
	}
}

// holdsToken fails if an error shows the token in any printed form.
func holdsToken(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		if text := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(text, secret) {
			t.Errorf("the token shows in %s", text)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ token, base, want string }{
		{"", "", "three parts"},
		{"Bot " + token, "", `must not begin with "Bot "`},
		{discordtest.Application, "", "this is an id"},
		{strings.Repeat("0a", 32), "", "public key"},
		{strings.Repeat("aB3d", 8), "", "client secret"},
		{"YWJj.x." + secret, "", "its first part has no id"},
		{token + "\n", "", "not one of a bot"},
		{token, "ftp://x", "base URL"}, {token, "https://x/?y", "base URL"},
		{token, "https://u:" + secret + "@x", "base URL"},
	} {
		_, err := discord.New(discord.Options{Token: channel.Secret(c.token), BaseURL: c.base})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d characters, %q: %v, want %q", len(c.token), c.base, err, c.want)
		}
		holdsToken(t, err)
	}
}

// TestMessagesArrive checks which messages are for the bot, and their content.
func TestMessagesArrive(t *testing.T) {
	w := start(t, nil)
	next := connect(t, w.bot, "")
	sent, err := w.bot.Send(t.Context(), channel.Outbound{Chat: room, Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	_, own, _ := strings.Cut(sent, ":")
	first := w.Say(dm, ada, "Ada", "hello")
	w.Say(room, ada, "Ada", "to others")
	w.SayMore(room, ada, "Ada", discordtest.Mention("to you"))
	w.SayMore(room, ada, "Ada", map[string]any{"content": "an answer", "type": 19,
		"message_reference":  map[string]any{"message_id": own, "channel_id": room},
		"referenced_message": map[string]any{"id": own, "author": map[string]any{"id": discordtest.Self}}})
	w.SayMore(dm, "42", "Bot", map[string]any{"content": "x", "author": map[string]any{"id": "42", "bot": true}})
	w.SayMore(room, "43", "Hook", map[string]any{"content": "<@" + discordtest.Self + "> x", "webhook_id": "43",
		"mentions": []any{map[string]any{"id": discordtest.Self}}})
	w.SayMore(dm, ada, "Ada", map[string]any{"content": "", "type": 6}) // a pinned message
	w.SayMore(dm, ada, "Ada", map[string]any{"content": "", "sticker_items": []any{map[string]any{"id": "1"}}})
	w.SayMore(dm, ada, "Ada", map[string]any{"content": "", "poll": map[string]any{}})
	w.SayMore(dm, ada, "Ada", map[string]any{"content": "1",
		"message_reference": map[string]any{"message_id": "55", "channel_id": room}})
	w.SayMore(dm, ada, "Ada", map[string]any{"content": "",
		"message_reference": map[string]any{"type": 1, "message_id": "55", "channel_id": room},
		"message_snapshots": []any{map[string]any{"message": map[string]any{"content": "1"}}}})
	w.Unfurl(dm, first)
	w.Change(dm, first, "changed")
	w.Say(dm, ada, "Ada", "last")
	var list []channel.Inbound
	for len(list) == 0 || list[len(list)-1].Text != "last" {
		var more []channel.Inbound
		more, next = poll(t, w.bot, next)
		list = append(list, more...)
	}
	if got := texts(list); got != "hello to you an answer   1 1  last" {
		t.Fatalf("got %q: %+v", got, list)
	}
	if m := list[0]; m.ID != dm+":"+first || m.Chat != dm || m.Contact != ada || m.Name != "Ada" || m.Shared || m.Own ||
		m.Quoted || m.ReplyTo != "" || time.Since(m.Sent) > time.Minute {
		t.Errorf("a direct message: %+v", m)
	}
	if !list[1].Shared || list[1].Chat != room || list[2].ReplyTo != sent || !list[2].Shared {
		t.Errorf("in the server: %+v", list[1:3])
	}
	if list[3].Unread != "a sticker" || list[4].Unread != "a poll" {
		t.Errorf("unreadable: %+v", list[3:5])
	}
	if list[5].ReplyTo != "elsewhere" || list[5].Quoted || !list[6].Quoted {
		t.Errorf("of another chat: %+v", list[5:7])
	}
	if m := list[7]; m.Unread != "an edited message" || m.ID == list[0].ID || m.Text != "" {
		t.Errorf("edited: %+v", m)
	}
	if !w.bot.After(list[2], sent) || w.bot.After(list[0], sent) || w.bot.After(list[2], list[2].ID) {
		t.Error("the order of messages is wrong")
	}
}

// TestThreads checks that a thread is a chat. After a mention, all messages of people there are for the bot.
func TestThreads(t *testing.T) {
	paired := map[string]bool{ada: true}
	w := start(t, nil, func(w *world) { w.opt.Paired = func(who string) bool { return paired[who] } })
	next := connect(t, w.bot, "")
	w.SayMore(topic, bob, "Bob", discordtest.Mention("a stranger"))
	_, next = poll(t, w.bot, next)
	w.Say(topic, bob, "Bob", "does not count")
	w.SayMore(topic, ada, "Ada", discordtest.Mention("open"))
	w.Say(topic, ada, "Ada", "without a mention")
	w.SayMore(room, ada, "Ada", discordtest.Mention("here"))
	w.Say(room, ada, "Ada", "not here")
	w.Say(dm, ada, "Ada", "end")
	var all []channel.Inbound
	for len(all) < 4 {
		var list []channel.Inbound
		list, next = poll(t, w.bot, next)
		all = append(all, list...)
	}
	if got := texts(all); got != "open without a mention here end" {
		t.Errorf("got %q", got)
	}
	if all[0].Chat != topic || all[1].Chat != topic || !all[1].Shared {
		t.Errorf("got %+v", all[:2])
	}
	again := w.another(t) // the thread is known after a restart
	w.Say(topic, ada, "Ada", "later")
	if list, _ := poll(t, again, next); texts(list) != "later" {
		t.Errorf("after a restart: %q", texts(list))
	}
}

// TestWithoutTheIntent checks that a bot works without the Message Content intent. The bot must name the intent if
// the content of a message is hidden.
func TestWithoutTheIntent(t *testing.T) {
	w := start(t, nil, func(w *world) { w.SetFlags(0) })
	next := connect(t, w.bot, "")
	w.SayMore(topic, ada, "Ada", discordtest.Mention("seen"))
	w.Say(topic, ada, "Ada", "hidden")
	w.Say(dm, ada, "Ada", "seen too")
	var all []channel.Inbound
	for len(all) < 3 {
		var list []channel.Inbound
		list, next = poll(t, w.bot, next)
		all = append(all, list...)
	}
	if all[0].Text != "seen" || all[1].Unread != "a message without a mention" || all[2].Text != "seen too" {
		t.Errorf("got %+v", all)
	}
	if _, _, intents := w.Sessions(); intents != 1|1<<9|1<<12 {
		t.Errorf("the bot asked for the intents %b", intents)
	}
}

func TestClosed(t *testing.T) {
	w := start(t, nil)
	next := connect(t, w.bot, "")
	done := make(chan error, 1)
	go func() {
		_, _, err := w.bot.Poll(context.Background(), next)
		done <- err
	}()
	for range 2 {
		if err := w.bot.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-done; !errors.Is(err, channel.ErrClosed) {
		t.Errorf("a poll of a closed channel: %v", err)
	}
	if err := w.Wait(t.Context(), func() bool { return w.Connected() == 0 }); err != nil {
		t.Error(err)
	}
}

func TestPollEndsWithItsContext(t *testing.T) {
	w := start(t, nil)
	next := connect(t, w.bot, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := w.bot.Poll(ctx, next); !errors.Is(err, context.Canceled) {
		t.Errorf("a poll that was given up: %v", err)
	}
	w.nothing(t, w.bot, next) // the connection is still there
	if begun, resumed, _ := w.Sessions(); begun != 1 || resumed != 0 {
		t.Errorf("%d sessions, %d resumed", begun, resumed)
	}
	if _, _, err := w.bot.Poll(t.Context(), "no cursor"); err == nil {
		t.Error("a cursor of another channel is accepted")
	}
}

// TestManyWait checks that the number of messages without a record is limited, and that the others come later.
func TestManyWait(t *testing.T) {
	w := start(t, nil)
	next := connect(t, w.bot, "")
	const limit, more = 1000, 20
	for i := range limit + more {
		w.Say(dm, ada, "Ada", fmt.Sprint(i))
	}
	for full := 0; full < more; {
		list, _, err := w.bot.Poll(t.Context(), next)
		if err != nil || len(list) > limit {
			t.Fatalf("%d messages wait; %v", len(list), err)
		}
		if len(list) == limit {
			full++
		}
	}
	for n := 0; n < limit+more; {
		var list []channel.Inbound
		list, next = poll(t, w.bot, next)
		if list[0].Text != fmt.Sprint(n) {
			t.Fatalf("got %q, want %d", list[0].Text, n)
		}
		n += len(list)
	}
}
