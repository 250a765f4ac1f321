package discord_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/discord"
	"github.com/perlica/perlica/service/discord/discordtest"
)

func TestSendAndEdit(t *testing.T) {
	w := start(t, nil)
	person := w.Say(dm, ada, "Ada", "hello")
	var buttons []channel.Button
	for i := range 12 {
		data := fmt.Sprint(strings.Repeat("x", 60), i)
		buttons = append(buttons, channel.Button{Label: strings.Repeat("語", 90), Data: data})
	}
	id, err := w.bot.Send(t.Context(), channel.Outbound{Chat: dm, Text: "**May I?**", ReplyTo: dm + ":" + person,
		Buttons: buttons, Key: "0193-key", Silent: true})
	if err != nil {
		t.Fatal(err)
	}
	m := w.Messages()[0]
	if id != dm+":"+m.ID || m.ReplyTo != person || len(m.Buttons) != 12 || m.Flags != 4|4096 ||
		len([]rune(m.Buttons[0].Label)) != 80 {
		t.Errorf("%q: %+v", id, m)
	}
	if again, err := w.bot.Send(t.Context(), channel.Outbound{Chat: dm, Text: "(possibly repeated)\n**May I?**",
		Key: "0193-key"}); again != id || err != nil || len(w.Messages()) != 1 {
		t.Errorf("sent again: %q, %v, %d messages", again, err, len(w.Messages()))
	}
	for range 2 {
		if err := w.bot.Edit(t.Context(), id, channel.Outbound{Chat: dm, Text: "Ada said yes"}); err != nil {
			t.Fatal(err)
		}
	}
	if m := w.Messages()[0]; m.Text != "Ada said yes" || len(m.Buttons) != 0 {
		t.Errorf("edited to %+v", m)
	}
	for range 2 { // the second time, a person has deleted the message
		if err := w.bot.Remove(t.Context(), id); err != nil || !w.Messages()[0].Removed {
			t.Errorf("it was not removed: %v", err)
		}
	}
	if err := w.bot.React(t.Context(), dm+":"+person, "🫡"); err != nil || w.Message(dm, person).Reactions[0] != "🫡" {
		t.Errorf("a reaction: %v", err)
	}
	if err := w.bot.Typing(t.Context(), dm); err != nil || w.Calls("POST /channels/{}/typing") != 1 {
		t.Errorf("typing: %v", err)
	}
	_, err = w.bot.Send(t.Context(), channel.Outbound{Chat: room, Text: "a", ReplyTo: dm + ":" + person})
	if err != nil || w.Messages()[1].ReplyTo != "" {
		t.Errorf("a reply to another chat: %v", err)
	}
}

// TestSendFaults checks the kind of each error, and that a fault makes no second message.
func TestSendFaults(t *testing.T) {
	const notSent, refused, unknown = "not sent", "refused", "unknown"
	for _, c := range []struct {
		name  string
		fault discordtest.Fault
		want  string
		sent  int
		says  string
	}{
		{"429", discordtest.Fault{Status: 429, RetryAfter: 7.25}, notSent, 0, ""},
		{"a bare 429", discordtest.Fault{Status: 429, RetryAfter: 7.25, Raw: true, Say: "<html>"}, notSent, 0, ""},
		{"deleted", discordtest.Fault{Status: 404, Code: 10003, Say: "Unknown Channel"}, refused, 0, "does not exist"},
		{"hidden", discordtest.Fault{Status: 403, Code: 50001, Say: "Missing Access"}, refused, 0, "may not see"},
		{"closed", discordtest.Fault{Status: 403, Code: 50007, Say: "Cannot send"}, refused, 0, "no direct messages"},
		{"permission", discordtest.Fault{Status: 403, Code: 50013, Say: "Missing Permissions"}, refused, 0, "service check"},
		{"form", discordtest.Fault{Status: 400, Code: 50035, Say: "Invalid Form Body"}, refused, 0, "50035"},
		{"401", discordtest.Fault{Status: 401, Say: "401: Unauthorized"}, notSent, 0, "does not accept the token"},
		{"413", discordtest.Fault{Status: 413, Raw: true, Say: "too large"}, refused, 0, ""},
		{"302", discordtest.Fault{Status: 302, Raw: true}, notSent, 0, ""},
		{"500", discordtest.Fault{Status: 500, Say: "500: " + token}, unknown, 0, ""},
		{"late 500", discordtest.Fault{Status: 500, Say: "500", Late: true}, unknown, 1, ""},
		{"a proxy's 404", discordtest.Fault{Status: 404, Raw: true, Say: "<html>"}, unknown, 0, "perhaps a proxy's"},
		{"a proxy's 401", discordtest.Fault{Status: 401, Raw: true, Say: "<html>"}, notSent, 0, ""},
		{"502", discordtest.Fault{Status: 502, Raw: true, Say: "<html>" + token}, unknown, 0, ""},
		{"400 with the token", discordtest.Fault{Status: 400, Code: 50035, Say: token}, refused, 0, ""},
		{"cut before", discordtest.Fault{Drop: true}, unknown, 0, ""},
		{"cut after", discordtest.Fault{Lose: true}, unknown, 1, ""},
		{"cut amid", discordtest.Fault{Half: true}, unknown, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, m := range []channel.Outbound{
				{Chat: dm, Text: "hi"}, {Chat: dm, Text: "hi", File: &channel.File{Name: "a.txt", Path: temp(t, "x")}},
			} {
				const route = "POST /channels/{}/messages"
				w := start(t, only(route, c.fault))
				_, err := w.bot.Send(t.Context(), m)
				var rejected *channel.RejectedError
				kind := unknown
				switch {
				case errors.As(err, &rejected):
					kind = refused
				case errors.Is(err, channel.ErrNotSent):
					kind = notSent
				}
				if err == nil || kind != c.want || len(w.Messages()) != c.sent || w.Calls(route) != 1 ||
					!strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v; %d sent in %d calls", kind, err, len(w.Messages()), w.Calls(route))
				}
				var limit *channel.RateLimitError
				if errors.As(err, &limit) != (c.fault.RetryAfter > 0) || limit != nil && limit.After != 7250*time.Millisecond {
					t.Errorf("the limit: %v", err)
				}
				holdsToken(t, err)
			}
		})
	}
}

// TestRefusedHere checks that a message that Discord would refuse is not sent.
func TestRefusedHere(t *testing.T) {
	w := start(t, nil)
	one := []channel.Button{{Label: "x", Data: "x"}}
	for name, m := range map[string]channel.Outbound{
		"chat":     {Chat: "../users", Text: "x"},
		"length":   {Chat: dm, Text: strings.Repeat("x", 2001)},
		"data":     {Chat: dm, Text: "x", Buttons: []channel.Button{{Label: "x", Data: strings.Repeat("x", 101)}}},
		"no label": {Chat: dm, Text: "x", Buttons: []channel.Button{{Data: "x"}}},
		"buttons":  {Chat: dm, Text: "x", Buttons: bytesRepeat(one, 26)},
		"no file":  {Chat: dm, Text: "x", File: &channel.File{Path: filepath.Join(t.TempDir(), "none")}},
		"folder":   {Chat: dm, Text: "x", File: &channel.File{Path: t.TempDir()}},
	} {
		var rejected *channel.RejectedError
		if _, err := w.bot.Send(t.Context(), m); !errors.As(err, &rejected) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var rejected *channel.RejectedError
	for _, err := range []error{w.bot.Edit(t.Context(), "42", channel.Outbound{Text: "x"}),
		w.bot.React(t.Context(), "a:b", "x"), w.bot.Typing(t.Context(), "a/b")} {
		if !errors.As(err, &rejected) {
			t.Errorf("no id: %v", err)
		}
	}
	if w.Calls("POST /channels/{}/messages") != 0 {
		t.Error("something left")
	}
}

func bytesRepeat(list []channel.Button, n int) (all []channel.Button) {
	for range n {
		all = append(all, list...)
	}
	return all
}

// TestLimits checks that the bot waits for an exhausted bucket, so that Discord never answers 429. Buckets of different
// channels are independent. A long pause is not waited for.
func TestLimits(t *testing.T) {
	w := start(t, nil, func(w *world) { w.SetLimit(2, 300*time.Millisecond) })
	for range 6 {
		for _, chat := range []string{dm, room} {
			if _, err := w.bot.Send(t.Context(), channel.Outbound{Chat: chat, Text: "x"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if w.Calls("429") != 0 || len(w.Messages()) != 12 {
		t.Errorf("%d answers 429, %d messages", w.Calls("429"), len(w.Messages()))
	}
	w.SetLimit(1, time.Hour)
	const other = "4200000000000000009"
	_, err := w.bot.Send(t.Context(), channel.Outbound{Chat: other, Text: "x"})
	_, err2 := w.bot.Send(t.Context(), channel.Outbound{Chat: other, Text: "x"})
	var limit *channel.RateLimitError
	if err != nil || !errors.As(err2, &limit) || limit.After < 59*time.Minute || w.Calls("429") != 0 {
		t.Errorf("got %v and %v", err, err2)
	}
	const third = "4200000000000000010"
	if _, err := w.bot.Send(t.Context(), channel.Outbound{Chat: third, Text: "x"}); err != nil {
		t.Errorf("the bucket of another channel: %v", err)
	}
}

// TestGlobalLimit checks that a global limit holds for all routes except the acknowledgement of a press.
func TestGlobalLimit(t *testing.T) {
	w := start(t, only("POST /channels/{}/typing", discordtest.Fault{Status: 429, RetryAfter: 1800, Global: true}))
	next := connect(t, w.bot, "")
	var limit *channel.RateLimitError
	if err := w.bot.Typing(t.Context(), dm); !errors.As(err, &limit) {
		t.Fatal(err)
	}
	_, err := w.bot.Send(t.Context(), channel.Outbound{Chat: room, Text: "x"})
	if !errors.As(err, &limit) || limit.After < 29*time.Minute || w.Calls("POST /channels/{}/messages") != 0 {
		t.Errorf("sending: %v", err)
	}
	press := w.Press(dm, ada, "Ada", "1", "q", time.Minute)
	_, next = poll(t, w.bot, next)
	w.nothing(t, w.bot, next)
	err = w.Wait(t.Context(), func() bool { return len(w.Acknowledged()) == 1 })
	if err != nil || w.Acknowledged()[0] != press {
		t.Errorf("the press: %v", err)
	}
}

func TestNoServer(t *testing.T) {
	w := start(t, nil, func(w *world) { w.opt.BaseURL = "http://127.0.0.1:1" }) // no other process gets this port
	if _, err := w.bot.Send(t.Context(), channel.Outbound{Chat: dm, Text: "x"}); !errors.Is(err, channel.ErrNotSent) {
		t.Errorf("a refused connection: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.bot.Send(ctx, channel.Outbound{Chat: dm, Text: "x"}); !errors.Is(err, channel.ErrNotSent) ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("given up before it began: %v", err)
	}
}

// leaky is a transport with errors that contain the token.
type leaky struct{ err error }

func (l leaky) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errors.Join(l.err, errors.New("no way with "+r.Header.Get("Authorization")))
}

func TestATransportThatTells(t *testing.T) {
	for _, kind := range []error{context.Canceled, context.DeadlineExceeded, os.ErrClosed} {
		w := start(t, nil, func(w *world) { w.opt.Client = &http.Client{Transport: leaky{kind}} })
		_, err := w.bot.Send(t.Context(), channel.Outbound{Chat: dm, Text: "x"})
		if !errors.Is(err, channel.ErrNotSent) || kind != os.ErrClosed && !errors.Is(err, kind) {
			t.Errorf("%v lost its kind: %v", kind, err)
		}
		holdsToken(t, err)
	}
}

// TestRedirectIsNotFollowed checks that a redirect's server gets no request.
func TestRedirectIsNotFollowed(t *testing.T) {
	var seen atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer other.Close()
	here := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	w := start(t, nil, func(w *world) { w.opt.BaseURL = here.URL })
	if _, err := w.bot.Send(t.Context(), channel.Outbound{Chat: dm, Text: "x"}); !errors.Is(err, channel.ErrNotSent) ||
		seen.Load() != 0 {
		t.Errorf("%v, and the other server saw %d requests", err, seen.Load())
	}
}

func TestFilesLeave(t *testing.T) {
	w := start(t, nil, func(w *world) { w.MaxFile = 2 << 20 })
	data := strings.Repeat("0123456789", 100_000)
	id, err := w.bot.Send(t.Context(), channel.Outbound{Chat: dm, Text: "**see**", Key: "k",
		File: &channel.File{Name: "../log.txt", Path: temp(t, data)}, Buttons: []channel.Button{{Label: "ok", Data: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	m := w.Messages()[0]
	if id != dm+":"+m.ID || m.File == nil || m.File.Name != "log.txt" || !bytes.Equal(m.File.Data, []byte(data)) ||
		m.Text != "**see**" || len(m.Buttons) != 1 {
		t.Errorf("sent %q %+v", id, m.Buttons)
	}
	var rejected *channel.RejectedError
	large := &channel.File{Name: "a", Path: temp(t, data+data+data)}
	_, err = w.bot.Send(t.Context(), channel.Outbound{Chat: dm, File: large})
	if !errors.As(err, &rejected) || !strings.Contains(rejected.Why, "larger than this server allows") {
		t.Errorf("a large file: %v", err)
	}
}

// TestFilesArrive checks that a poll names files without fetching them, and that a file can be fetched after its first
// address has expired.
func TestFilesArrive(t *testing.T) {
	w := start(t, only("GET /cdn/{}", discordtest.Fault{Half: true}, discordtest.Fault{Half: true}),
		func(w *world) { w.opt.MaxFile = 10 })
	next := connect(t, w.bot, "")
	doc := w.AddFile("501", discordtest.File{Name: "../../a.txt", Data: []byte("text")})
	big := w.AddFile("502", discordtest.File{Name: "big", Data: []byte("01234567890")})
	sly := w.AddFile("503", discordtest.File{Name: "sly", Data: []byte("01234567890")})
	sly["size"] = 3
	gone := map[string]any{"id": "504", "filename": "gone", "size": 1}
	forwarded := w.AddFile("505", discordtest.File{Name: "f", Data: []byte("old")})
	w.SayMore(dm, ada, "Ada", map[string]any{"content": "this", "attachments": []any{doc, big, sly, gone}})
	w.SayMore(dm, ada, "Ada", map[string]any{"content": "",
		"message_reference": map[string]any{"type": 1, "message_id": "55", "channel_id": room},
		"message_snapshots": []any{map[string]any{"message": map[string]any{"attachments": []any{forwarded}}}}})
	var list []channel.Inbound
	for len(list) < 2 {
		var more []channel.Inbound
		more, next = poll(t, w.bot, next)
		list = append(list, more...)
	}
	m := list[0]
	if len(m.Files) != 4 || m.Files[0].Name != "a.txt" || m.Files[0].MIME != "text/plain" || m.Text != "this" ||
		w.Calls("GET /cdn/{}") != 0 {
		t.Fatalf("got %+v", m)
	}
	w.SetSkew(25 * time.Hour) // the addresses of the event have expired
	var rejected *channel.RejectedError
	for range 2 { // two faults
		if _, err := w.bot.Fetch(t.Context(), m.ID, 0, m.Files[0]); err == nil || errors.As(err, &rejected) {
			t.Errorf("an interrupted download: %v", err)
		}
	}
	path, err := w.bot.Fetch(t.Context(), m.ID, 0, m.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); string(b) != "text" || err != nil {
		t.Errorf("%s has %q, %v", path, b, err)
	}
	if path, err := w.bot.Fetch(t.Context(), list[1].ID, 0, list[1].Files[0]); err != nil || !list[1].Quoted {
		t.Errorf("a forwarded file: %q, %v", path, err)
	}
	for i, want := range map[int]string{1: "it is too large", 2: "it is too large"} {
		if _, err := w.bot.Fetch(t.Context(), m.ID, i, m.Files[i]); !errors.As(err, &rejected) || rejected.Why != want {
			t.Errorf("the file %d: %v, want %q", i, err, want)
		}
	}
	if _, err := w.bot.Fetch(t.Context(), dm+":77", 0, m.Files[0]); !errors.As(err, &rejected) {
		t.Errorf("a file of a deleted message: %v", err)
	}
	if _, err := w.bot.Fetch(t.Context(), m.ID, 3, m.Files[3]); err == nil {
		t.Error("a file that does not exist was fetched")
	}
}

func temp(t *testing.T, data string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestCheck checks that each missing setting is named with the next step.
func TestCheck(t *testing.T) {
	const all = 1<<6 | 1<<10 | 1<<11 | 1<<15 | 1<<16 | 1<<38
	for name, c := range map[string]struct {
		change func(w *world)
		want   string // the name of the finding, "fails" or "warns", and words
	}{
		"right":         {func(*world) {}, ""},
		"administrator": {func(w *world) { w.SetRight(1<<3, true) }, ""},
		"token":         {func(w *world) { w.Revoke() }, "token fails: copy a new token"},
		"intent":        {func(w *world) { w.SetFlags(0) }, "intents warns: switch it on"},
		"endpoint":      {func(w *world) { w.SetEndpoint("https://x.example") }, "buttons fails: Interactions Endpoint URL"},
		"no server":     {func(w *world) { w.SetRight(0, false) }, "servers fails: client_id=" + discordtest.Application},
		"permissions":   {func(w *world) { w.SetRight(all&^(1<<11), true) }, "server Workshop warns: change the bot's role"},
		"starts":        {func(w *world) { w.SetStarts(0) }, "gateway fails: wait until tomorrow"},
	} {
		w := start(t, nil, c.change)
		got := ""
		for _, f := range w.bot.Check(t.Context()) {
			if f.Next != "" {
				got += f.Name + map[bool]string{true: " fails: ", false: " warns: "}[f.Fails] + f.Next
			}
			if name == "permissions" && f.Next != "" && !strings.Contains(f.Detail, "lacks the permissions Send Messages") {
				t.Errorf("%s: %q", name, f.Detail)
			}
			if strings.Contains(f.Detail+f.Next, secret) {
				t.Errorf("%s shows the token", name)
			}
		}
		head, words, _ := strings.Cut(c.want, ": ")
		if !strings.HasPrefix(got, head) || !strings.Contains(got, words) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	w := start(t, nil)
	if name, err := w.bot.Probe(t.Context()); err != nil || name != "perlica ("+discordtest.Self+")" {
		t.Errorf("the bot is %q, %v", name, err)
	}
	if _, err := discord.New(discord.Options{Token: channel.Secret(token)}); err != nil {
		t.Error(err)
	}
}
