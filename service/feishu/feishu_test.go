package feishu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/feishu"
	"github.com/perlica/perlica/service/feishu/feishutest"
)

const (
	ada   = "ou_ada"
	group = "oc_all"
)

// world is an app and its tenant.
type world struct {
	*feishutest.Server
	app    *feishu.Channel
	t      *testing.T
	cursor string
}

// start starts a tenant and an app.
func start(t *testing.T, change ...func(*feishu.Options)) *world {
	t.Helper()
	s := feishutest.New(t)
	s.Join(ada, "Ada")
	opt := feishu.Options{AppID: feishutest.AppID, Secret: feishutest.Secret, BaseURL: s.URL,
		Files: filepath.Join(t.TempDir(), "files"), PollFor: time.Second, Timeout: time.Minute,
		Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	for _, f := range change {
		f(&opt)
	}
	app, err := feishu.New(opt)
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

// waits waits for a condition of the tenant.
func (w *world) waits(ok func() bool) {
	w.t.Helper()
	if err := w.Wait(w.patient(), ok); err != nil {
		w.t.Fatal(err)
	}
}

// acknowledged counts the acknowledged events.
func (w *world) acknowledged() (n int) {
	for _, e := range w.Deliveries() {
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

// sends sends a message and returns its id.
func (w *world) sends(m channel.Outbound) string {
	w.t.Helper()
	id, err := w.app.Send(w.patient(), m)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func TestNewRefuses(t *testing.T) {
	for want, change := range map[string]func(*feishu.Options){
		"the app id must begin with cli_": func(o *feishu.Options) { o.AppID = "app/../x" },
		"the app secret must not be":      func(o *feishu.Options) { o.Secret += "\n" },
		"the base URL is no address":      func(o *feishu.Options) { o.BaseURL = "https://u:" + feishutest.Secret + "@x/" },
	} {
		opt := feishu.Options{AppID: feishutest.AppID, Secret: feishutest.Secret}
		change(&opt)
		if _, err := feishu.New(opt); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), feishutest.Secret) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestAcknowledgedWhenRecorded checks that an event with a message is acknowledged only after the next Poll, which
// proves that the message was stored. Any other event is acknowledged at once.
func TestAcknowledgedWhenRecorded(t *testing.T) {
	w := start(t)
	w.Say(ada, ada, "hello", nil)
	w.Deliver(&feishutest.Event{Type: "im.chat.updated_v1", Body: map[string]any{}})
	first := w.receives(1, false)
	w.waits(func() bool { return w.acknowledged() == 1 })
	if w.Deliveries()[0].Acknowledged {
		t.Error("the message was acknowledged before it was recorded")
	}
	again := w.receives(1, true)
	if first[0].ID != again[0].ID {
		t.Errorf("it came again as %+v", again)
	}
	defer w.pollAside()()
	w.waits(func() bool { return w.acknowledged() == 2 })
	if got := w.Deliveries()[0].Answer; got != `{"code":200}` {
		t.Errorf("the acknowledgement is %q", got)
	}
}

// TestEditAfterPress checks that an edit waits for the acknowledgement of the press. The server undoes an earlier edit.
func TestEditAfterPress(t *testing.T) {
	w := start(t, func(o *feishu.Options) { o.Timeout = 20 * time.Minute })
	id := w.sends(channel.Outbound{Chat: ada, Text: "May I?", Buttons: []channel.Button{{Label: "Yes", Data: "1"}}})
	w.Press(ada, ada, id, "1")
	w.receives(1, true)
	edited := make(chan error)
	go func() { edited <- w.app.Edit(w.patient(), id, channel.Outbound{Chat: ada, Text: "Ada said yes"}) }()
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if w.Wait(soon, func() bool { return w.Calls("edit") > 0 }) == nil {
		t.Error("the card was edited before the acknowledgement")
	}
	defer w.pollAside()()
	if err := <-edited; err != nil {
		t.Fatal(err)
	}
	if m := w.Messages()[0]; m.Text != "Ada said yes" || len(m.Buttons) > 0 {
		t.Errorf("the card is %+v", m)
	}
	w.waits(func() bool { return w.acknowledged() == 1 })
	if got := w.Deliveries()[0].Answer; got != `{"code":200,"data":"e30="}` {
		t.Errorf("the answer to the press is %q", got)
	}
}

// TestForeignPress checks that only a person in the card's chat can press its buttons.
func TestForeignPress(t *testing.T) {
	w := start(t)
	b := []channel.Button{{Label: "Yes", Data: "1"}}
	private := w.sends(channel.Outbound{Chat: ada, Text: "May I?", Buttons: b})
	shared := w.sends(channel.Outbound{Chat: group, Text: "May I?", Buttons: b})
	w.Press("ou_eve", "ou_eve", private, "1")
	w.Press("ou_eve", "oc_other", shared, "1")
	w.Press(ada, group, shared, "1")
	m := w.receives(1, true)[0]
	if m.Contact != ada || m.Chat != group || !m.Shared || m.ReplyTo != shared || m.Button != "1" || m.Text != "Yes" {
		t.Errorf("got %+v", m)
	}
}

// TestDeadConnection checks that a connection that no longer answers is replaced.
func TestDeadConnection(t *testing.T) {
	var deaf atomic.Bool
	deaf.Store(true)
	w := start(t, func(o *feishu.Options) { o.Ping = 50 * time.Millisecond })
	w.Deaf = deaf.Load
	defer w.pollAside()()
	w.waits(func() bool { _, all := w.Sockets(); return all >= 2 })
	deaf.Store(false)
	w.Say(ada, ada, "hello", nil)
	w.waits(func() bool { return w.acknowledged() == 1 })
}

// TestToken checks that several calls use one token. The channel fetches a new token before the end of the old one.
// It does not use a refused token again.
func TestToken(t *testing.T) {
	w := start(t)
	for range 3 {
		w.sends(channel.Outbound{Chat: ada, Text: "hi"})
	}
	if n := w.Calls("token"); n != 1 {
		t.Errorf("%d tokens for three messages", n)
	}
	w.EndTokens()
	if _, err := w.app.Send(t.Context(), channel.Outbound{Chat: ada, Text: "hi"}); !errors.Is(err, channel.ErrNotSent) {
		t.Errorf("with a token that Feishu refuses: %v", err)
	}
	w.sends(channel.Outbound{Chat: ada, Text: "hi"})
	if n := w.Calls("token"); n != 2 {
		t.Errorf("%d tokens after a refused one", n)
	}
	short := start(t)
	short.Expire = time.Nanosecond // "expire" is then 0
	for range 2 {
		_, err := short.app.Send(t.Context(), channel.Outbound{Chat: ada, Text: "hi"})
		if !errors.Is(err, channel.ErrNotSent) {
			t.Errorf("with a token without time: %v", err)
		}
	}
	if n := short.Calls("token"); n != 2 {
		t.Errorf("%d tokens without time for two calls", n)
	}
}

// TestKeys checks that the same key makes no second message.
func TestKeys(t *testing.T) {
	w := start(t)
	first := w.sends(channel.Outbound{Chat: ada, Text: "hi", Key: "k"})
	if again := w.sends(channel.Outbound{Chat: ada, Text: "hi", Key: "k"}); again != first {
		t.Errorf("the ids are %q and %q", first, again)
	}
	w.sends(channel.Outbound{Chat: ada, Text: "hi", Key: "l"})
	if n := len(w.Messages()); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// TestGroups checks which messages of groups and topics are for the bot, and the places of the answers.
func TestGroups(t *testing.T) {
	w := start(t)
	mentions := []any{
		map[string]any{"key": "@_user_1", "name": "Perlica", "id": map[string]any{"open_id": feishutest.Bot}},
		map[string]any{"key": "@_user_10", "name": "Bob", "id": map[string]any{"open_id": "ou_bob"}}}
	w.Say(group, ada, "to others", nil)
	w.Say(group, ada, "@_user_10 to Bob", map[string]any{"mentions": mentions[1:]})
	id := w.Say(group, ada, "@_user_1 /status @_user_10 @_all", map[string]any{"mentions": mentions})
	topic := w.Say(group, ada, "@_user_1 in a topic", map[string]any{"mentions": mentions, "thread_id": "omt_1"})
	w.Say(group, ada, "@_user_1 again", map[string]any{"mentions": mentions, "thread_id": "omt_1", "root_id": topic,
		"parent_id": topic})
	var got []string
	for _, m := range w.receives(3, true) {
		got = append(got, fmt.Sprintf("%s %t %s %s", m.Chat, m.Shared, m.ReplyTo, m.Text))
	}
	want := []string{group + " true  /status @Bob @all", group + "/" + topic + " true  in a topic",
		group + "/" + topic + " true " + topic + " again"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.sends(channel.Outbound{Chat: group, Text: "answer", ReplyTo: id})
	w.sends(channel.Outbound{Chat: group + "/" + topic, Text: "answer"})
	w.Withdraw(id)
	w.sends(channel.Outbound{Chat: group, Text: "answer", ReplyTo: id})
	inTopic := w.Say(group, ada, "@_user_1 withdrawn", map[string]any{"mentions": mentions, "thread_id": "omt_1",
		"root_id": topic})
	w.Withdraw(inTopic)
	w.sends(channel.Outbound{Chat: group + "/" + topic, Text: "answer", ReplyTo: inTopic})
	w.Withdraw(topic)
	var refused *channel.RejectedError
	_, err := w.app.Send(t.Context(), channel.Outbound{Chat: group + "/" + topic, Text: "answer"})
	if !errors.As(err, &refused) {
		t.Errorf("an answer to a deleted topic: %v", err)
	}
	got = nil
	for _, m := range w.Messages() {
		got = append(got, m.Chat+" "+m.ReplyTo+" "+m.Thread)
	}
	want = []string{group + " " + id + " ", group + " " + topic + " " + topic, group + "  ",
		group + " " + topic + " " + topic}
	if !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// TestContents checks the types of messages.
func TestContents(t *testing.T) {
	w := start(t)
	post := map[string]any{"title": "Title", "content": []any{
		[]any{map[string]any{"tag": "text", "text": "see "},
			map[string]any{"tag": "a", "text": "here", "href": "https://x.example"},
			map[string]any{"tag": "at", "user_id": "@_all"}, map[string]any{"tag": "emotion", "emoji_type": "OK"}},
		[]any{map[string]any{"tag": "img", "image_key": "img_v3_1"}},
		[]any{map[string]any{"tag": "code_block", "language": "GO", "text": "a := 1\n"}},
		[]any{map[string]any{"tag": "media", "file_key": "file_v3_1"}},
	}}
	for _, c := range []struct {
		kind    string
		content any
		want    string
	}{
		{"text", map[string]any{"text": " a &lt; b @_user_9 "}, "a &lt; b @user_9 []"},
		{"post", post, "Title\nsee here (https://x.example)@all:OK:\n\n```go\na := 1\n```" +
			" [image.jpg image/img_v3_1 video.mp4 file/file_v3_1]"},
		{"image", map[string]any{"image_key": "img_v3_2"}, " [image.jpg image/img_v3_2]"},
		{"audio", map[string]any{"file_key": "file_v3_2", "duration": 2000}, " [voice.opus file/file_v3_2]"},
		{"media", map[string]any{"file_key": "file_v3_3", "file_name": "a.mp4", "image_key": "img_1"},
			" [a.mp4 file/file_v3_3]"},
		{"sticker", map[string]any{"file_key": "1"}, "a sticker []"},
		{"merge_forward", "Merged and Forwarded Message", "this content []"},
		{"merge_forward", map[string]any{}, "forwarded messages []"},
		{"hongbao", map[string]any{"text": "1"}, "this content []"},
	} {
		e, _ := w.Said(ada, ada, c.kind, c.content, nil)
		w.Deliver(e)
		m := w.receives(1, true)[0]
		var files []string
		for _, f := range m.Files {
			files = append(files, f.Name+" "+f.Remote)
		}
		if got := fmt.Sprint(m.Text, m.Unread, " ", files); got != c.want {
			t.Errorf("%s: got %q, want %q", c.kind, got, c.want)
		}
	}
}

// TestErrorCodes checks the kinds of Feishu's error codes.
func TestErrorCodes(t *testing.T) {
	var code atomic.Int64
	w := start(t)
	w.Fault = func(call string) feishutest.Fault {
		if call != "send" {
			return feishutest.Fault{}
		}
		return feishutest.Fault{Code: int(code.Load())}
	}
	for c, want := range map[int]string{230002: "refused", 230001: "refused", 230025: "refused", 99991672: "not sent",
		99991663: "not sent", 230006: "not sent", 99991401: "not sent", 230049: "unknown", 2200: "unknown",
		99991400: "limited", 230020: "limited", 11232: "limited"} {
		code.Store(int64(c))
		_, err := w.app.Send(t.Context(), channel.Outbound{Chat: ada, Text: "hi"})
		kind := "unknown"
		switch {
		case errors.As(err, new(*channel.RateLimitError)):
			kind = "limited"
		case errors.As(err, new(*channel.RejectedError)):
			kind = "refused"
		case errors.Is(err, channel.ErrNotSent):
			kind = "not sent"
		}
		if err == nil || kind != want {
			t.Errorf("%d: %s, want %s: %v", c, kind, want, err)
		}
	}
}

// TestHostileIDs checks that a text which is not an id of Feishu does not become part of an address.
func TestHostileIDs(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	const id = "om_1/../../x?y"
	_, chat := w.app.Send(ctx, channel.Outbound{Chat: "ou_1/" + id, Text: "hi"})
	_, file := w.app.Fetch(ctx, "om_1", 0, channel.File{Name: "a", Remote: "file/../../x"})
	_, from := w.app.Fetch(ctx, id, 0, channel.File{Name: "a", Remote: "file/file_v3_1"})
	for i, err := range []error{chat, file, from, w.app.Edit(ctx, id, channel.Outbound{Chat: ada, Text: "x"}),
		w.app.Remove(ctx, id), w.app.React(ctx, id, "👍")} {
		if !errors.As(err, new(*channel.RejectedError)) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if n := w.Calls("token"); n != 0 {
		t.Errorf("%d tokens were fetched", n)
	}
}

func TestReactions(t *testing.T) {
	w := start(t)
	if err := w.app.React(t.Context(), "om_1", "🫡"); err != nil {
		t.Fatal(err)
	}
	if got := w.Reactions(); !slices.Equal(got, []string{"om_1 SALUTE"}) {
		t.Errorf("got %q", got)
	}
	if err := w.app.React(t.Context(), "om_1", "🦤"); !errors.As(err, new(*channel.RejectedError)) {
		t.Errorf("an unknown emoji: %v", err)
	}
}

// TestCheck checks that each missing setting has a finding.
func TestCheck(t *testing.T) {
	lacks := func(names ...string) func(*world) {
		return func(w *world) {
			w.Scopes = slices.DeleteFunc(slices.Clone(w.Scopes), func(s string) bool { return slices.Contains(names, s) })
		}
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   string // the name of the finding
		fails  bool
	}{
		"all there":        {func(*world) {}, "scopes", false},
		"files":            {lacks("im:resource"), "scope", false},
		"sending":          {lacks("im:message"), "scope", true},
		"receiving":        {lacks("im:message.p2p_msg:readonly"), "scope", true},
		"hidden":           {lacks("application:application:self_manage"), "events", false},
		"webhook":          {func(w *world) { w.Mode = "webhook" }, "events", true},
		"no event":         {func(w *world) { w.Events = nil }, "events", true},
		"no callback":      {func(w *world) { w.Callbacks = nil }, "callbacks", true},
		"not enabled":      {func(w *world) { w.Status = 3 }, "bot", true},
		"not published":    {func(w *world) { w.Published = false }, "connection", true},
		"wrong app secret": {func(w *world) { w.Revoke() }, "app secret", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			c.change(w)
			list := w.app.Check(t.Context())
			if !slices.ContainsFunc(list, func(f channel.Finding) bool {
				return f.Name == c.want && f.Fails == c.fails && (f.Next != "" || !c.fails)
			}) {
				t.Errorf("got %+v, want %q that fails: %t", list, c.want, c.fails)
			}
			if failed := slices.ContainsFunc(list, func(f channel.Finding) bool { return f.Fails }); failed != c.fails {
				t.Errorf("failed is %t: %+v", failed, list)
			}
		})
	}
}

// TestHalfPair checks that an event with half a surrogate pair outside of the message's content is not lost.
func TestHalfPair(t *testing.T) {
	w := start(t)
	e, id := w.Said(ada, ada, "text", map[string]string{"text": "a-b"}, nil)
	b, err := json.Marshal(e.Body)
	if err != nil {
		t.Fatal(err)
	}
	e.Body = json.RawMessage(strings.ReplaceAll(string(b), "a-b", `a\ud83db`))
	w.Deliver(e)
	w.Say(ada, ada, "last", nil)
	list, err := []channel.Inbound(nil), error(nil)
	for len(list) == 0 && err == nil {
		list, _, err = w.app.Poll(w.patient(), "")
	}
	if err != nil || list[0].ID != id || list[0].Text != "a\uFFFDb" {
		t.Errorf("got %+v, %v", list, err)
	}
}

// delivers delivers events and waits until the app has read them. The app acknowledges the last event at once, because
// it is no message.
func (w *world) delivers(say func()) {
	w.t.Helper()
	if list, _, err := w.app.Poll(w.patient(), w.cursor); err != nil || len(list) > 0 {
		w.t.Fatalf("the first Poll: %+v, %v", list, err)
	}
	before := w.acknowledged()
	say()
	w.Deliver(&feishutest.Event{Type: "im.message.message_read_v1", Body: map[string]any{}})
	w.waits(func() bool { return w.acknowledged() > before })
}

// TestSlowNames checks that the names of all senders together have one time limit.
func TestSlowNames(t *testing.T) {
	w := start(t, func(o *feishu.Options) { o.Timeout, o.PollFor = 10*time.Second, 10*time.Millisecond })
	asked := make(chan struct{})
	t.Cleanup(func() { close(asked) })
	w.Fault = func(call string) (f feishutest.Fault) {
		if call == "user" {
			<-asked
		}
		return f
	}
	w.delivers(func() {
		for i := range 5 {
			w.Say(fmt.Sprint("ou_", i), fmt.Sprint("ou_", i), "hello", nil)
		}
	})
	if list := w.receives(5, true); list[0].Name != "ou_0" || w.Calls("user") != 1 {
		t.Errorf("%d names were asked for, and the first is %q", w.Calls("user"), list[0].Name)
	}
}

// TestManyWait checks that the number of waiting messages is limited, and that the others come later.
func TestManyWait(t *testing.T) {
	w := start(t)
	const limit, more = 1000, 20
	for i := range limit + more {
		w.Say(ada, ada, fmt.Sprint(i), nil)
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
