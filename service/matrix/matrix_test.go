package matrix_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/matrix"
	"github.com/perlica/perlica/service/matrix/matrixtest"
)

const (
	ann     = "@ann:example.org"
	eve     = "@eve:example.org"
	refusal = "I cannot read encrypted rooms"
)

type object = matrixtest.Object

// world is a homeserver with a channel.
type world struct {
	*matrixtest.Server
	*matrix.Channel
	t      *testing.T
	cursor string
}

func newWorld(t *testing.T) *world {
	s := matrixtest.New("secret-token")
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	c, err := matrix.New(matrix.Options{Server: h.URL, Token: "secret-token", Allow: []string{ann}, Refusal: refusal,
		Paired: func(contact string) bool { return contact == "@bob:example.org" }, PollFor: 50 * time.Millisecond,
		Files: t.TempDir(), Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return &world{s, c, t, ""}
}

// room makes a room with Ann and the bot.
func (w *world) room() string {
	const room = "!room:example.org"
	w.Enter(room, ann, "Ann")
	w.Enter(room, matrixtest.Bot, "Perlica")
	w.SetState(room, ann, "m.room.join_rules", "", object{"join_rule": "invite"})
	return room
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

func texts(list []channel.Inbound) (texts []string) {
	for _, m := range list {
		texts = append(texts, m.Text)
	}
	return texts
}

// TestInvitations checks that an invitation is followed only if an allowed or a paired person sends it. The messages
// from before the entrance arrive. An encrypted room is declined with the sentence.
func TestInvitations(t *testing.T) {
	w := newWorld(t)
	w.poll()
	w.Limit = 1
	var got []string
	encryption := object{"type": "m.room.encryption", "state_key": "", "content": object{"algorithm": "x"}}
	for _, c := range []struct {
		room, from string
		state      []object
		want       string
	}{
		{"!a:example.org", ann, nil, "join"}, {"!b:example.org", "@bob:example.org", nil, "join"},
		{"!e:example.org", eve, nil, "invite"}, {"!s:example.org", ann, []object{encryption}, "leave"},
		{"!h:example.org", ann, nil, "leave"},
	} {
		w.Enter(c.room, c.from, "Name")
		w.Add(c.room, c.from, "m.room.message", object{"msgtype": "m.text", "body": "not for the bot"})
		if c.room == "!h:example.org" { // the invitation does not show the encryption
			w.SetState(c.room, c.from, "m.room.encryption", "", object{"algorithm": "x"})
		}
		w.Invite(c.room, c.from, c.state...)
		w.Add(c.room, c.from, "m.room.message", object{"msgtype": "m.text", "body": "123456 in " + c.room})
		got = append(got, texts(w.poll())...)
		if got := w.Membership(c.room); got != c.want {
			t.Errorf("the invitation of %s to %s: %s, want %s", c.from, c.room, got, c.want)
		}
		if got := w.Declined[c.room]; (got == refusal) != (c.want == "leave") {
			t.Errorf("%s was declined with %q", c.room, got)
		}
	}
	got = append(got, texts(w.poll())...)
	if want := []string{"123456 in !a:example.org", "123456 in !b:example.org"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, e := range w.Events() {
		if e.Body["sender"] == matrixtest.Bot && e.Body["type"] == "m.room.message" {
			t.Errorf("the bot wrote to %s", e.Room)
		}
	}
}

// TestEncryptedLater checks that the bot neither reads nor writes a room after its encryption.
func TestEncryptedLater(t *testing.T) {
	w := newWorld(t)
	room := w.room()
	w.Add(room, ann, "m.room.message", object{"msgtype": "m.text", "body": "one"})
	if got := texts(w.poll()); !slices.Equal(got, []string{"one"}) {
		t.Fatalf("got %q", got)
	}
	w.SetState(room, ann, "m.room.encryption", "", object{"algorithm": "x"})
	w.Add(room, ann, "m.room.encrypted", object{"ciphertext": "x"})
	w.Add(room, ann, "m.room.message", object{"msgtype": "m.text", "body": "two"})
	if got := texts(w.poll()); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	var rejected *channel.RejectedError
	if _, err := w.Send(t.Context(), channel.Outbound{Chat: room, Text: "x", Key: "k"}); !errors.As(err, &rejected) {
		t.Errorf("Send: %v", err)
	}
	if err := w.React(t.Context(), room+"/$x", "👍"); !errors.As(err, &rejected) {
		t.Errorf("React: %v", err)
	}
}

// TestKinds checks the treatment of each kind of event.
func TestKinds(t *testing.T) {
	w := newWorld(t)
	room := w.room()
	card, err := w.Send(t.Context(), channel.Outbound{Chat: room, Text: "a card", Key: "card"})
	if err != nil {
		t.Fatal(err)
	}
	_, cardEvent, _ := strings.Cut(card, "/")
	foreign := w.Add(room, eve, "m.room.message", object{"msgtype": "m.text", "body": "a poll of another bot"})
	w.poll()
	react := func(event, key string) object {
		return object{"m.relates_to": object{"rel_type": "m.annotation", "event_id": event, "key": key}}
	}
	text := func(more object) object {
		all := object{"msgtype": "m.text", "body": "words"}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	thread := object{"rel_type": "m.thread", "event_id": "$root", "is_falling_back": true,
		"m.in_reply_to": object{"event_id": "$last"}}
	for _, c := range []struct {
		name, kind, sender string
		content            object
		want               *channel.Inbound // the compared members; nil means that nothing arrives
	}{
		{"a text", "m.room.message", ann, text(nil), &channel.Inbound{Text: "words"}},
		{"a notice", "m.room.message", ann, text(object{"msgtype": "m.notice"}), nil},
		{"an own message", "m.room.message", matrixtest.Bot, text(nil), nil},
		{"a deleted message", "m.room.message", ann, object{}, nil},
		{"an edit", "m.room.message", ann, text(object{"m.relates_to": object{"rel_type": "m.replace", "event_id": "$x"}}),
			&channel.Inbound{Unread: "an edited message"}},
		{"a reply", "m.room.message", ann, object{"msgtype": "m.text", "body": "> <@x> 1\n\nwords",
			"m.relates_to": object{"m.in_reply_to": object{"event_id": cardEvent}}}, &channel.Inbound{Text: "words",
			ReplyTo: card}},
		{"a message in a thread", "m.room.message", ann, text(object{"m.relates_to": thread}),
			&channel.Inbound{Text: "words"}},
		{"a sticker", "m.sticker", ann, object{"body": "x", "url": "mxc://a/b"}, &channel.Inbound{Unread: "a sticker"}},
		{"a poll", "m.poll.start", ann, object{}, &channel.Inbound{Unread: "a poll"}},
		{"a location", "m.room.message", ann, text(object{"msgtype": "m.location"}),
			&channel.Inbound{Unread: "a location"}},
		{"an encrypted file", "m.room.message", ann, text(object{"msgtype": "m.file", "file": object{}}),
			&channel.Inbound{Unread: "an encrypted file"}},
		{"a number on a card", "m.reaction", ann, react(cardEvent, "2️⃣"),
			&channel.Inbound{Text: "2️⃣", Button: "2", ReplyTo: card}},
		{"a bare number on a card", "m.reaction", ann, react(cardEvent, "1"),
			&channel.Inbound{Text: "1", Button: "1", ReplyTo: card}},
		{"a thumb on a card", "m.reaction", ann, react(cardEvent, "👍"), nil},
		{"a tick on a card", "m.reaction", ann, react(cardEvent, "✅"), nil},
		{"a number on the message of another", "m.reaction", ann, react(foreign, "1️⃣"), nil},
		{"a number on an unknown message", "m.reaction", ann, react("$unknown", "1️⃣"), nil},
		{"content that is no object", "m.room.message", ann, object{"msgtype": 7}, nil},
	} {
		id := room + "/" + w.Add(room, c.sender, c.kind, c.content)
		var got []channel.Inbound
		for _, m := range w.poll() {
			if m.ID == id {
				got = append(got, channel.Inbound{Text: m.Text, Unread: m.Unread, Button: m.Button, ReplyTo: m.ReplyTo})
			}
		}
		switch {
		case c.want == nil && len(got) > 0:
			t.Errorf("%s: got %+v, want nothing", c.name, got)
		case c.want != nil && (len(got) != 1 || got[0].Text != c.want.Text || got[0].Unread != c.want.Unread ||
			got[0].Button != c.want.Button || got[0].ReplyTo != c.want.ReplyTo):
			t.Errorf("%s: got %+v, want %+v", c.name, got, *c.want)
		}
	}
}

// TestReactionAfterARestart checks that a new process recognises the messages of an earlier process.
func TestReactionAfterARestart(t *testing.T) {
	w := newWorld(t)
	room := w.room()
	event := w.Add(room, matrixtest.Bot, "m.room.message", object{"msgtype": "m.text", "body": "a card"})
	w.poll()
	h := httptest.NewServer(w.Server)
	defer h.Close()
	c, err := matrix.New(matrix.Options{Server: h.URL, Token: "secret-token", PollFor: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w.Add(room, ann, "m.reaction", object{"m.relates_to": object{"rel_type": "m.annotation", "event_id": event,
		"key": "3"}})
	list, _, err := c.Poll(t.Context(), w.cursor)
	if err != nil || len(list) != 1 || list[0].Button != "3" {
		t.Errorf("got %+v, %v", list, err)
	}
}

// TestGap checks that a limited timeline loses no message.
func TestGap(t *testing.T) {
	w := newWorld(t)
	room := w.room()
	w.poll()
	w.Limit = 3
	var want []string
	for i := range 20 {
		want = append(want, strings.Repeat("x", i+1))
		w.Add(room, ann, "m.room.message", object{"msgtype": "m.text", "body": want[i]})
	}
	if got := texts(w.poll()); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestShared checks that a third member or a public room makes a chat shared.
func TestShared(t *testing.T) {
	w := newWorld(t)
	room := w.room()
	shared := func() bool {
		t.Helper()
		w.Add(room, ann, "m.room.message", object{"msgtype": "m.text", "body": "x"})
		list := w.poll()
		return len(list) > 0 && list[len(list)-1].Shared
	}
	if shared() {
		t.Error("a room of two is shared")
	}
	w.SetState(room, ann, "m.room.join_rules", "", object{"join_rule": "public"})
	if !shared() {
		t.Error("a public room is private")
	}
	w.SetState(room, ann, "m.room.join_rules", "", object{"join_rule": "invite"})
	w.Enter(room, eve, "Eve")
	if !shared() {
		t.Error("a room of three is private")
	}
}

// TestRepetition checks that the key of a message makes one message, also for a new process.
func TestRepetition(t *testing.T) {
	w := newWorld(t)
	room := w.room()
	m := channel.Outbound{Chat: room, Text: "hello", Key: "k"}
	a, err := w.Send(t.Context(), m)
	b, err2 := w.Send(t.Context(), m)
	if a != b || err != nil || err2 != nil {
		t.Errorf("got %q, %v and %q, %v", a, err, b, err2)
	}
	if !w.Limits().Dedupes {
		t.Error("Dedupes is false")
	}
}

// TestOldMedia checks the path of servers before version 1.11.
func TestOldMedia(t *testing.T) {
	w := newWorld(t)
	w.OldMedia = true
	address := w.AddMedia("text/plain", []byte("text"))
	path, err := w.Fetch(t.Context(), "m", 0, channel.File{Name: "a.txt", Remote: address})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "text" {
		t.Errorf("got %q, %v", b, err)
	}
	for _, bad := range []string{"", "https://evil.example/x", "mxc://a", "mxc://a/b/../c"} {
		if _, err := w.Fetch(t.Context(), "m", 0, channel.File{Remote: bad}); err == nil {
			t.Errorf("%q was fetched", bad)
		}
	}
}

// TestPicture checks that a picture arrives as a picture.
func TestPicture(t *testing.T) {
	w := newWorld(t)
	room := w.room()
	path := t.TempDir() + "/x"
	if err := os.WriteFile(path, []byte("\x89PNG\r\n\x1a\n0000"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Send(t.Context(), channel.Outbound{Chat: room, File: &channel.File{Name: "plot.png", Path: path},
		Key: "k"}); err != nil {
		t.Fatal(err)
	}
	all := w.Events()
	content := all[len(all)-1].Body["content"].(object)
	if content["msgtype"] != "m.image" || content["body"] != "plot.png" {
		t.Errorf("got %v", content)
	}
}

// TestLogout checks the errors of a token that no longer counts.
func TestLogout(t *testing.T) {
	for body, want := range map[string]string{
		`{"errcode":"M_UNKNOWN_TOKEN","soft_logout":true}`: "ended the login for now",
		`{"errcode":"M_UNKNOWN_TOKEN","error":"gone"}`:     "does not accept the token (401 M_UNKNOWN_TOKEN gone)",
	} {
		w := newWorld(t)
		w.Fault = func(string) matrixtest.Fault { return matrixtest.Fault{Status: http.StatusUnauthorized, Say: body} }
		_, _, err := w.Poll(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, channel.ErrNotSent) {
			t.Errorf("got %v", err)
		}
		if f := w.Check(context.Background()); !f[len(f)-1].Fails {
			t.Errorf("Check: %+v", f)
		}
	}
}

// TestCheck checks the findings about an account.
func TestCheck(t *testing.T) {
	w := newWorld(t)
	if f := w.Check(t.Context()); f[len(f)-1].Next == "" {
		t.Errorf("without a room: %+v", f)
	}
	room := w.room()
	for _, f := range w.Check(t.Context()) {
		if f.Next != "" {
			t.Errorf("with a room: %+v", f)
		}
	}
	w.SetState(room, ann, "m.room.encryption", "", object{"algorithm": "x"})
	w.poll()
	if f := w.Check(t.Context()); !slices.ContainsFunc(f, func(f channel.Finding) bool {
		return strings.Contains(f.Detail, "encrypted") && f.Next != ""
	}) {
		t.Errorf("with an encrypted room: %+v", f)
	}
}
