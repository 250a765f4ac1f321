package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/telegram"
	"github.com/perlica/perlica/service/telegram/telegramtest"
)

const (
	secret = "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
	token  = "4711:" + secret
)

// world is a bot and its server.
type world struct {
	*telegramtest.Server
	bot *telegram.Channel
	url string
}

// start starts a server and a bot. faults may be nil.
func start(t *testing.T, faults func(method string, n int) telegramtest.Fault,
	change ...func(*telegram.Options)) *world {
	t.Helper()
	s := telegramtest.New(token)
	s.Fault = faults
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	opt := telegram.Options{
		Token: token, BaseURL: h.URL, Files: filepath.Join(t.TempDir(), "files"), PollFor: time.Second, Timeout: time.Minute,
		Client: &http.Client{Transport: &http.Transport{}},
	}
	for _, f := range change {
		f(&opt)
	}
	bot, err := telegram.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return &world{s, bot, h.URL}
}

func (w *world) poll(t *testing.T, cursor string) ([]channel.Inbound, string) {
	t.Helper()
	list, next, err := w.bot.Poll(t.Context(), cursor)
	if err != nil {
		t.Fatal(err)
	}
	return list, next
}

// only limits faults to one method. The first calls of the method get the given faults, one after the other.
func only(method string, faults ...telegramtest.Fault) func(string, int) telegramtest.Fault {
	return func(m string, n int) telegramtest.Fault {
		if m == method && n < len(faults) {
			return faults[n]
		}
		return telegramtest.Fault{}
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
	for _, opt := range []telegram.Options{
		{}, {Token: secret}, {Token: "12:a/b"}, {Token: token + "\n"},
		{Token: token, BaseURL: "ftp://x"}, {Token: token, BaseURL: "https://x/?y"},
		{Token: token, BaseURL: "https://u:" + secret + "@x"}, {Token: token, BaseURL: ":" + secret},
	} {
		_, err := telegram.New(opt)
		if err == nil {
			t.Errorf("a bot of %q", opt.BaseURL)
		}
		holdsToken(t, err)
	}
}

func TestMessagesArrive(t *testing.T) {
	w := start(t, nil)
	w.Say(42, 7, "Ada", "hello")
	w.SayMore(-100, 7, "Ada", map[string]any{"text": "to you", "reply_to_message": map[string]any{"message_id": 9, "chat": map[string]any{"id": -100}}})
	w.SayMore(42, 4711, "bot", map[string]any{"text": "echo"})
	w.SayMore(42, 7, "Ada", map[string]any{"sticker": map[string]any{"file_id": "x"}})
	w.SayMore(-100, 1087968824, "Group", map[string]any{"text": "who am I?", "sender_chat": map[string]any{"id": -100}})
	w.Push(map[string]any{"message": "of another form"})
	w.Push(map[string]any{"channel_post": map[string]any{"text": "x"}})
	w.Say(42, 7, "Ada", "last")
	list, next := w.poll(t, "")
	if len(list) != 5 {
		t.Fatalf("%d messages: %+v", len(list), list)
	}
	if m := list[0]; m.ID != "42:1" || m.Chat != "42" || m.Contact != "7" || m.Name != "Ada" || m.Text != "hello" ||
		m.Own || m.Sent.Unix() != 1700000000 {
		t.Errorf("got %+v", m)
	}
	if m := list[1]; m.Chat != "-100" || m.ReplyTo != "-100:9" || m.ID != "-100:2" {
		t.Errorf("got %+v", m)
	}
	if !list[2].Own || list[3].Unread != "a sticker" || list[4].Text != "last" || list[0].Shared || !list[1].Shared {
		t.Errorf("got %+v", list[2:])
	}
	if w.Unconfirmed() != 8 {
		t.Errorf("%d updates are unconfirmed before the cursor has come back", w.Unconfirmed())
	}
	w.Say(42, 7, "Ada", "more")
	if list, _ := w.poll(t, next); len(list) != 1 || list[0].Text != "more" || w.Unconfirmed() != 1 {
		t.Errorf("then %+v, %d unconfirmed", list, w.Unconfirmed())
	}
}

// TestForwarded checks that forwarded messages are another person's words, in the notation of every
// version of the Bot API.
func TestForwarded(t *testing.T) {
	w := start(t, nil)
	w.SayMore(42, 7, "Ada", map[string]any{"text": "1", "forward_origin": map[string]any{"type": "user", "date": 1}})
	w.SayMore(42, 7, "Ada", map[string]any{"text": "1", "forward_date": 1})
	w.Say(42, 7, "Ada", "1")
	list, _ := w.poll(t, "")
	if len(list) != 3 || !list[0].Quoted || !list[1].Quoted || list[2].Quoted {
		t.Errorf("got %+v", list)
	}
}

// TestRedelivered checks that messages come again with the same ids until the cursor is returned,
// and after the server has forgotten an offset.
func TestRedelivered(t *testing.T) {
	w := start(t, only("getUpdates", telegramtest.Fault{}, telegramtest.Fault{}, telegramtest.Fault{},
		telegramtest.Fault{Forget: true}))
	w.Say(42, 7, "Ada", "one")
	first, _ := w.poll(t, "")
	again, next := w.poll(t, "")
	w.Say(42, 7, "Ada", "two")
	second, last := w.poll(t, next)
	forgot, end := w.poll(t, last)
	if len(first) != 1 || len(again) != 1 || first[0].ID != again[0].ID || len(second) != 1 {
		t.Fatalf("got %+v, %+v, %+v; want len(first) == 1 && len(again) == 1 && first[0].ID == %v && len(second) == 1",
			first, again, second, again[0].ID)
	}
	if len(forgot) != 2 || forgot[0].ID != first[0].ID || forgot[1].ID != second[0].ID {
		t.Errorf("after a missing offset %+v", forgot)
	}
	if list, _ := w.poll(t, end); len(list) != 0 {
		t.Errorf("nothing is new, but %+v", list)
	}
}

func TestPollEndsWithItsContext(t *testing.T) {
	w := start(t, nil, func(o *telegram.Options) { o.PollFor = 50 * time.Second })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := w.bot.Poll(ctx, "")
		done <- err
	}()
	if err := w.Wait(t.Context(), func() bool { return w.Calls("getUpdates") == 1 }); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a poll that was given up: %v", err)
	}
}

func TestPollFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault telegramtest.Fault
		check func(error) bool
	}{
		{"429", telegramtest.Fault{Status: 429, Say: "Too Many Requests", RetryAfter: 17}, func(err error) bool {
			var limit *channel.RateLimitError
			return errors.As(err, &limit) && limit.After == 17*time.Second
		}},
		{"409", telegramtest.Fault{Status: 409, Say: "Conflict"}, func(err error) bool {
			return strings.Contains(err.Error(),
				"another program polls")
		}},
		{"404", telegramtest.Fault{Status: 404, Say: "Not Found"}, func(err error) bool {
			return strings.Contains(err.Error(), "getUpdates: the platform refuses: 404 Not Found")
		}},
		{"a proxy's 404", telegramtest.Fault{Status: 404, Raw: true, Say: "<html>"},
			func(err error) bool { return strings.Contains(err.Error(), "not the Bot API's (404)") }},
		{"502", telegramtest.Fault{Status: 502, Raw: true, Say: "<html>" + token},
			func(err error) bool { return strings.Contains(err.Error(), "502") }},
		{"half", telegramtest.Fault{Half: true}, func(err error) bool { return strings.Contains(err.Error(), "breaks off") }},
		{"drop", telegramtest.Fault{Drop: true}, func(err error) bool { return true }},
		{"no JSON", telegramtest.Fault{Status: 200, Raw: true, Say: "{"}, func(err error) bool { return true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, only("getUpdates", c.fault))
			w.Say(42, 7, "Ada", "hello")
			list, next, err := w.bot.Poll(t.Context(), "")
			if err == nil || !c.check(err) || len(list) != 0 || next != "" {
				t.Errorf(`got %+v, %q, %v; want err != nil && c.check(err) && len(list) == 0 && next == ""`, list, next, err)
			}
			holdsToken(t, err)
			if list, _ := w.poll(t, next); len(list) != 1 {
				t.Errorf("afterwards %+v", list)
			}
		})
	}
	w := start(t, nil)
	if _, _, err := w.bot.Poll(t.Context(), "no cursor"); err == nil {
		t.Error("a cursor of another channel is taken")
	}
}

// listener notes when the bot has read the answer to a call of one method.
type listener struct {
	method string
	heard  chan struct{}
}

func (l listener) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, l.method) {
		resp.Body = heard{resp.Body, l.heard}
	}
	return resp, err
}

type heard struct {
	io.ReadCloser
	tell chan struct{}
}

func (h heard) Close() error {
	err := h.ReadCloser.Close()
	h.tell <- struct{}{}
	return err
}

// TestPress checks that the waiting sign ends only after the caller has received the press.
func TestPress(t *testing.T) {
	answers := make(chan struct{}, 10)
	w := start(t, only("answerCallbackQuery", telegramtest.Fault{Status: 500}), func(o *telegram.Options) {
		o.PollFor, o.Client = 50*time.Second, &http.Client{Transport: listener{"answerCallbackQuery", answers}}
	})
	id, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: "May I?",
		Buttons: []channel.Button{{Label: "Yes", Data: "q1 1"}, {Label: "No", Data: "q1 2"}}})
	if err != nil {
		t.Fatal(err)
	}
	w.Press(7, "Ada", w.Messages()[0].ID, "q1 2")
	list, next := w.poll(t, "")
	if len(list) != 1 {
		t.Fatalf("got %+v", list)
	}
	if m := list[0]; m.Button != "q1 2" || m.Text != "No" || m.ReplyTo != id || m.Contact != "7" || m.Chat != "42" ||
		m.ID == "" {
		t.Errorf("got %+v", m)
	}
	if w.Calls("answerCallbackQuery") != 0 {
		t.Error("the press was answered before it was taken")
	}
	for range 2 { // the first attempt fails
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(done)
			_, _, _ = w.bot.Poll(ctx, next)
		}()
		select {
		case <-answers:
			// The poll may end now. An earlier end would cancel the attempt to answer the press.
		case <-done:
			t.Error("the poll ended before the press was answered")
		}
		cancel()
		<-done
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // for an answer that must not come
	defer cancel()
	if _, _, err := w.bot.Poll(ctx, next); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a poll without news: %v", err)
	}
	if n := w.Calls("answerCallbackQuery"); n != 2 {
		t.Errorf("the press was answered %d times", n)
	}
}
