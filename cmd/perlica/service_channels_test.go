//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/webhook"
)

// gateway is the other end of the channel webhook. It receives replies and sends messages over real HTTP.
type gateway struct {
	w      *world
	secret channel.Secret
	to     string // address to which it sends messages

	mu    sync.Mutex // guards posts
	posts []posted
}

// posted is a reply as the gateway receives it.
type posted struct {
	Type, ID, Chat, Text, Key string
	Buttons                   []struct{ Label, Data string }
}

func (g *gateway) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var p posted
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	if err != nil || r.Header.Get(webhook.SignatureHeader) != webhook.Sign(g.secret, r.Header.Get(webhook.TimestampHeader),
		body) {
		http.Error(rw, "not signed", http.StatusUnauthorized)
		return
	}
	g.mu.Lock()
	g.posts = append(g.posts, p)
	n := len(g.posts)
	g.mu.Unlock()
	// The client may have closed the connection.
	_ = json.NewEncoder(rw).Encode(map[string]string{"id": fmt.Sprint("reply-", n)})
}

// got waits for a reply with a text that matches the pattern. It returns the reply and the reply's id.
func (g *gateway) got(pattern string) (p posted, id string) {
	g.w.t.Helper()
	re := regexp.MustCompile(pattern)
	g.w.eventually("a reply with "+pattern, func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		i := slices.IndexFunc(g.posts, func(p posted) bool { return re.MatchString(p.Text) })
		if i < 0 {
			return fmt.Errorf("there are %+v", g.posts)
		}
		p, id = g.posts[i], fmt.Sprint("reply-", i+1)
		return nil
	})
	return p, id
}

// send sends a message as a gateway does. It sends the message again while the bridge asks for this.
func (g *gateway) send(secret channel.Secret, message map[string]string) (status int) {
	g.w.t.Helper()
	body, err := json.Marshal(message)
	if err != nil {
		g.w.t.Fatal(err)
	}
	g.w.eventually("the message is taken", func() error {
		stamp := strconv.FormatInt(time.Now().Unix(), 10)
		req, err := http.NewRequestWithContext(g.w.t.Context(), http.MethodPost, g.to, strings.NewReader(string(body)))
		if err != nil {
			return err
		}
		req.Header.Set(webhook.TimestampHeader, stamp)
		req.Header.Set(webhook.SignatureHeader, webhook.Sign(secret, stamp, body))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if status = resp.StatusCode; status == http.StatusServiceUnavailable {
			return fmt.Errorf("status %d", status)
		}
		return nil
	})
	return status
}

// TestWebhook sends signed requests over real HTTP and checks the signed replies.
func TestWebhook(t *testing.T) {
	w := newWorld(t)
	g := &gateway{w: w, secret: "0123456789abcdef-of-nobody"}
	receiver := httptest.NewServer(g)
	t.Cleanup(receiver.Close)
	// No other process uses this address. On a common address another process could get the port before the bridge listens
	// there.
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)))
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	g.to = "http://" + address + "/messages"

	w.config("")
	j := w.run("service", "channel", "enable", "webhook")
	j.exits(0)
	j.says("the secret of the webhook: it is missing")
	j.says("openssl rand -hex 32")
	path := w.secretly("webhook.secret", string(g.secret))
	w.run("service", "channel", "test", "webhook").says("service.webhook.reply_url")
	w.config(fmt.Sprintf("[service.webhook]\nlisten = %q\nreply_url = %q\nbuttons = true\n", address,
		receiver.URL+"/s3cret-place"))
	w.run("service", "channel", "test", "webhook").exits(0)

	bridge := w.bridge()
	n := 0
	say := func(more ...string) map[string]string {
		n++
		m := map[string]string{"id": fmt.Sprint("m", n), "chat": "desk", "contact": "ada"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	if status := g.send("not the secret of anybody", say("text", "hello")); status != http.StatusUnauthorized {
		t.Errorf("signed with another secret: %d", status)
	}
	accepted := func(m map[string]string) {
		t.Helper()
		if status := g.send(g.secret, m); status != http.StatusAccepted {
			t.Errorf("%v: %d", m, status)
		}
	}
	accepted(say("text", bridge.code()))
	g.got("You are paired")
	hello := say("text", "hello")
	accepted(hello)
	accepted(hello) // sends the same message again
	other := maps.Clone(hello)
	other["text"] = "something else"
	if status := g.send(g.secret, other); status != http.StatusConflict {
		t.Errorf("another text under its id: %d", status)
	}
	g.got("^Received 🫡$")
	g.got("^You said: hello$")
	accepted(say("text", `@ask execute "Look around" command="ls -la"`))
	card, id := g.got("ls -la")
	i := slices.IndexFunc(card.Buttons, func(b struct{ Label, Data string }) bool {
		return strings.Contains(b.Label,
			"“Allow once”")
	})
	if i < 0 {
		t.Fatalf("the card is %+v", card)
	}
	accepted(say("button", card.Buttons[i].Data, "text", "Allow once", "reply_to", id))
	g.got("permission: allow-once")
	if edit, _ := g.got("answered at .* from webhook: Allow once"); edit.Type != "edit" || edit.ID != id ||
		len(edit.Buttons) > 0 {
		t.Errorf("the card became %+v", edit)
	}
	bridge.signal(syscall.SIGTERM)
	bridge.exits(0)
	if n := w.prompts(); n != 2 {
		t.Errorf("%d calls", n)
	}
	if strings.Contains(bridge.stderr.String(), string(g.secret)) ||
		strings.Contains(w.run("config", "show").stdout.String(), "s3cret-place") {
		t.Error("a secret is shown")
	}
	w.nowhere(string(g.secret), path)
	w.audit()
}

// TestIMessage uses a replacement for imsg on a Mac. On other systems it checks the note that iMessage does not
// exist there.
func TestIMessage(t *testing.T) {
	w := newWorld(t)
	j := w.run("service", "channel", "enable", "imessage")
	j.exits(0)
	j.says("Messages exists on macOS only; this is linux")
	w.run("service", "channel", "test", "imessage").exits(2)
	without := w.bridge()
	code := without.code()
	if got := without.stderr.String(); !strings.Contains(got,
		`warning: a channel is not served channel="imessage" error="left out: it exists on macOS only"`) {
		t.Errorf("the bridge says %s", got)
	}
	if n := w.count("service.channel_failed"); n != 1 {
		t.Errorf("%d are on record", n)
	}
	status := w.run("service", "status").stdout.String()
	if !strings.Contains(status, "channel imessage: left out: it exists on macOS only") ||
		!strings.Contains(status, "channel local: well") {
		t.Errorf("the status is %s", status)
	}
	if j := w.run("doctor"); !regexp.MustCompile(`channel-imessage +left out`).MatchString(j.stdout.String()) {
		t.Errorf("doctor says %s", j.stdout.String())
	}
	without.signal(syscall.SIGTERM)
	without.exits(0)
	w.run("service", "channel", "disable", "local").exits(0)
	w.run("service").exits(2)
	w.run("service", "channel", "enable", "local").exits(0)
	w.env = append(w.env, "TEST_SYSTEM=darwin")

	dir := filepath.Join(w.home, "imsg")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, row := "", 0
	said := func(text string) {
		t.Helper()
		row++
		b, err := json.Marshal(map[string]any{
			"id": row, "chat_id": 1, "guid": fmt.Sprint("G", row), "sender": "ada@example.com", "text": text,
			"created_at": time.Now().Add(time.Duration(row) * time.Second),
		})
		if err != nil {
			t.Fatal(err)
		}
		store += string(b) + "\n"
		if err := os.WriteFile(filepath.Join(dir, "new"), []byte(store), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "db")); err != nil {
			t.Fatal(err)
		}
	}
	sent := func(pattern string) {
		t.Helper()
		re := regexp.MustCompile(pattern)
		w.eventually("imsg is given "+pattern, func() error {
			if b, err := os.ReadFile(filepath.Join(dir, "sent")); err != nil || !re.Match(b) {
				return fmt.Errorf("it got %s, %v", b, err)
			}
			return nil
		})
	}
	said("from long ago")
	if j := w.run("service", "channel", "test", "imessage"); !strings.Contains(j.stdout.String(), "there it is Messages") {
		t.Errorf("the test says %q, %q", j.stdout.String(), j.stderr.String())
	}
	bridge := w.bridge()
	w.until(1, "service.cursor_moved") // From here on, the bridge listens.
	said(code)
	sent("You are paired")
	said("a s3cret question")
	sent("Received 🫡")
	sent("You said: a s3cret question")
	bridge.signal(syscall.SIGTERM)
	bridge.exits(0)
	if b, err := os.ReadFile(filepath.Join(dir, "args")); err != nil || strings.Contains(string(b), "s3cret") {
		t.Errorf("a message is on a command line: %s, %v", b, err)
	}
	if n := w.prompts(); n != 1 {
		t.Errorf("%d calls", n)
	}
	w.audit()
}

// TestNoCodeInTheJournal checks that the journal contains no pairing code, because other users may read the journal.
func TestNoCodeInTheJournal(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "JOURNAL_STREAM=8:1234")
	bridge := w.bridge()
	bridge.expect("'perlica service pair' shows a code")
	bridge.signal(syscall.SIGTERM)
	bridge.exits(0)
	if s := bridge.stderr.String(); strings.Contains(s, "code=") {
		t.Errorf("it says %s", s)
	}
	w.logged(0, "service.pairing_opened")
	w.audit()
}
