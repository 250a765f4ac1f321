package ntfy_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/ntfy"
	"github.com/perlica/perlica/service/ntfy/ntfytest"
)

const topic = "6f1c0b9d2e8a4475b3e0"

var key = []byte("a key of this test, 32 bytes long")

// world is a server with a channel.
type world struct {
	*ntfytest.Server
	*ntfy.Channel
	t      *testing.T
	url    string
	cursor string
	chat   string
}

func newWorld(t *testing.T, change func(*ntfy.Options)) *world {
	w := &world{Server: ntfytest.New(), t: t}
	h := httptest.NewServer(w.Server)
	t.Cleanup(h.Close)
	t.Cleanup(h.CloseClientConnections)
	w.url = h.URL
	opt := ntfy.Options{Server: h.URL, Topic: topic, Key: key, PollFor: 5 * time.Second,
		Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	if change != nil {
		change(&opt)
	}
	c, err := ntfy.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	w.Channel = c
	w.post(topic+"-answers", "123 456")
	w.chat = w.poll()[0].Chat
	return w
}

// post publishes a text as a phone does.
func (w *world) post(topic, text string) {
	w.t.Helper()
	resp, err := http.Post(w.url+"/"+topic, "text/plain", strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close() // only the status matters
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("publishing: %s", resp.Status)
	}
}

// poll returns the messages of one poll.
func (w *world) poll() []channel.Inbound {
	w.t.Helper()
	list, next, err := w.Poll(w.t.Context(), w.cursor)
	if err != nil {
		w.t.Fatal(err)
	}
	w.cursor = next
	return list
}

// until returns the messages up to a pairing code.
func (w *world) until() (list []channel.Inbound) {
	w.post(topic+"-answers", "999999")
	for {
		for _, m := range w.poll() {
			if m.Text == "999999" {
				return list
			}
			list = append(list, m)
		}
	}
}

var options = []channel.Button{{Label: "Yes, once", Data: "q:1:1"}, {Label: "No", Data: "q:1:2"}}

// card sends a card and returns it as the phone has it.
func (w *world) card() ntfytest.Message {
	w.t.Helper()
	id, err := w.Send(w.t.Context(), channel.Outbound{Chat: w.chat, Text: "May I <b>?", Buttons: options, Key: "k"})
	if err != nil {
		w.t.Fatal(err)
	}
	list := w.Messages(topic)
	m := list[len(list)-1]
	if m.ID != id || m.Message != "May I <b>?" || m.Priority != ntfy.Urgent || len(m.Actions) != 2 {
		w.t.Fatalf("the card is %+v", m)
	}
	return m
}

// TestButton checks that the action of a card becomes the press of its option, with one id for all copies.
func TestButton(t *testing.T) {
	w := newWorld(t, nil)
	a := w.card().Actions[0]
	if a.Label != "Yes, once" || a.Action != "http" || a.Method != http.MethodPost ||
		a.URL != w.url+"/"+topic+"-answers" {
		t.Fatalf("the action is %+v", a)
	}
	w.post(topic+"-answers", a.Body)
	w.post(topic+"-answers", a.Body)
	list := w.until()
	if len(list) != 2 || list[0].ID != list[1].ID || list[0].Button != "q:1:1" || list[0].Text != "Yes, once" ||
		list[0].Contact != w.chat || strings.Contains(list[0].Contact, topic) {
		t.Errorf("got %+v", list)
	}
}

// TestForgeries checks that no text counts except a signed option and a code.
func TestForgeries(t *testing.T) {
	w := newWorld(t, nil)
	body := w.card().Actions[1].Body // "No"
	words := strings.SplitN(body, " ", 4)
	other := newWorld(t, func(o *ntfy.Options) { o.Key = []byte("another key of another machine..") })
	for _, text := range []string{
		"yes", "1", "#12345678 1", "/allow", "hello agent", "q:1:1", "perlica", "12345", "1234567", body + " more", " ",
		strings.Join([]string{words[0], words[1], "q:1:1", words[3]}, " "), // another option
		strings.Join([]string{words[0], words[1], "q:2:2", words[3]}, " "), // another question
		strings.Join([]string{words[0], words[1], words[2], "Yes"}, " "),   // another label
		strings.Join([]string{words[0], "", words[2], words[3]}, " "),
		other.card().Actions[1].Body,
	} {
		w.post(topic+"-answers", text)
	}
	w.post(topic, body) // the topic of the notices is not read
	if list := w.until(); len(list) > 0 {
		t.Errorf("got %+v", list)
	}
}

// TestPairingLink checks that opening the link sends the code.
func TestPairingLink(t *testing.T) {
	w := newWorld(t, nil)
	link, err := w.PairingLink(t.Context(), "123456")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // the status is not needed
	if list := w.poll(); len(list) != 1 || list[0].Text != "123456" {
		t.Errorf("got %+v", list)
	}
}

// TestCursor checks that a new process reads the messages after the cursor. If the server has lost the cursor, the
// process reads all messages.
func TestCursor(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 3 {
		w.post(topic+"-answers", fmt.Sprint(100001+i))
	}
	first := w.cursor
	var got []string
	for len(got) < 3 {
		for _, m := range w.poll() {
			got = append(got, m.Text)
		}
	}
	if !slices.Equal(got, []string{"100001", "100002", "100003"}) {
		t.Errorf("got %q", got)
	}
	w.cursor = first
	if list := w.poll(); len(list) == 0 || list[0].Text != "100001" {
		t.Errorf("after the old cursor: %+v", list)
	}
	w.cursor = "gone"
	if list := w.poll(); len(list) == 0 || list[0].Text != "123456" {
		t.Errorf("after an unknown cursor: %+v", list)
	}
}

// TestFaults checks the kinds of errors, and that no fault loses an answer.
func TestFaults(t *testing.T) {
	w := newWorld(t, nil)
	action := w.card().Actions[0]
	out := channel.Outbound{Chat: w.chat, Text: "hi", Key: "k"}
	for _, c := range []struct {
		status int
		half   bool
		kind   func(error) bool
	}{
		{429, false, func(err error) bool { var r *channel.RateLimitError; return errors.As(err, &r) && r.After > 0 }},
		{500, false, func(err error) bool { return !errors.Is(err, channel.ErrNotSent) }},
		{401, false, func(err error) bool { return errors.Is(err, channel.ErrNotSent) }},
		{400, false, func(err error) bool { var r *channel.RejectedError; return errors.As(err, &r) }},
		{0, true, func(err error) bool { return !errors.Is(err, channel.ErrNotSent) }},
	} {
		w.Fault = func(string) ntfytest.Fault { return ntfytest.Fault{Status: c.status, Half: c.half} }
		_, err := w.Send(t.Context(), out)
		if err == nil || !c.kind(err) || strings.Contains(err.Error(), topic) {
			t.Errorf("status %d: %v", c.status, err)
		}
		if list, next, err := w.Poll(t.Context(), ""); err == nil || next != "" || len(list) > 0 ||
			strings.Contains(err.Error(), topic) {
			t.Errorf("polling with status %d: %+v, %q, %v", c.status, list, next, err)
		}
	}
	w.Fault = nil
	w.post(topic+"-answers", action.Body)
	if list := w.until(); len(list) != 1 || list[0].Button != "q:1:1" {
		t.Errorf("afterwards %+v", list)
	}
	for _, m := range []channel.Outbound{{Chat: "x", Text: "hi"}, {Chat: w.chat, File: &channel.File{}},
		{Chat: w.chat, Text: strings.Repeat("x", w.Limits().Text+1)}} {
		var rejected *channel.RejectedError
		if _, err := w.Send(t.Context(), m); !errors.As(err, &rejected) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if _, err := w.Send(t.Context(), channel.Outbound{Chat: w.chat, Text: strings.Repeat("语", w.Limits().Text),
		Buttons: options}); err != nil {
		t.Errorf("the longest text: %v", err)
	}
}

// TestGuessable checks that a topic which others can find is refused.
func TestGuessable(t *testing.T) {
	for _, name := range []channel.Secret{"perlica", "my-project-notices", "aaaaaaaaaaaaaaaaaaaaaaaa", "perlica-perlica"} {
		if _, err := ntfy.New(ntfy.Options{Topic: name, Key: key}); !errors.Is(err, ntfy.ErrGuessable) {
			t.Errorf("%s: %v", string(name), err)
		}
	}
	for _, name := range []channel.Secret{"", "a/b", "ä", channel.Secret(strings.Repeat("x", 60))} {
		if _, err := ntfy.New(ntfy.Options{Topic: name, Key: key, Token: "t"}); err == nil ||
			errors.Is(err, ntfy.ErrGuessable) {
			t.Errorf("%s: %v", string(name), err)
		}
	}
	s := ntfytest.New()
	s.Token = "tk_1"
	h := httptest.NewServer(s)
	defer h.Close()
	c, err := ntfy.New(ntfy.Options{Server: h.URL, Topic: "perlica", Token: "tk_1", Key: key, PollFor: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s.Public = []string{"perlica"}
	if _, _, err := c.Poll(t.Context(), ""); !errors.Is(err, ntfy.ErrGuessable) {
		t.Errorf("a topic that everyone can read: %v", err)
	}
	s.Public = nil
	if _, _, err := c.Poll(t.Context(), ""); err != nil {
		t.Errorf("a protected topic: %v", err)
	}
}

// TestCheck checks the findings about a topic.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name             string
		token            channel.Secret
		everyone, public []string
		want             string // the names of the findings with a next step; a capital letter means a failure
	}{
		{"open server", "", nil, nil, "topic"},
		{"own server", "tk_1", []string{topic + "-answers"}, nil, ""},
		{"phone cannot answer", "tk_1", nil, nil, "ANSWERS"},
		{"wrong token", "tk_2", nil, nil, "TOKEN"},
		{"missing token", "", nil, nil, "TOKEN"},
		{"readable topic", "tk_1", []string{topic + "-answers"}, []string{topic}, "topic"},
	} {
		s := ntfytest.New()
		if c.name != "open server" {
			s.Token, s.Everyone, s.Public = "tk_1", c.everyone, c.public
		}
		h := httptest.NewServer(s)
		ch, err := ntfy.New(ntfy.Options{Server: h.URL, Topic: topic, Token: c.token, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range ch.Check(t.Context()) {
			switch {
			case f.Fails:
				got = append(got, strings.ToUpper(f.Name))
			case f.Next != "":
				got = append(got, f.Name)
			}
			if strings.Contains(f.Detail+f.Next, topic) {
				t.Errorf("%s: the finding shows the topic: %+v", c.name, f)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		h.Close()
	}
}
