package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/webhook"
)

// receiver receives replies.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	posts  []map[string]any
	bodies []string
	heads  []http.Header
}

func receive(t *testing.T, answer func(w http.ResponseWriter, n int)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		var p map[string]any
		if err := json.Unmarshal(b, &p); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.posts, r.bodies, r.heads = append(r.posts, p), append(r.bodies, string(b)), append(r.heads, req.Header)
		n := len(r.posts)
		r.mu.Unlock()
		answer(w, n)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.posts)
}

func to(url string) func(*webhook.Options) { return func(o *webhook.Options) { o.ReplyURL = url } }

func TestPosts(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, n int) {
		if n == 1 {
			_, _ = io.WriteString(w, `{"id":"r1"}`)
		}
	})
	c := open(t, to(r.URL))
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := channel.Outbound{
		Chat: "desk", Text: "**hi**", ReplyTo: "m1", Key: "k1",
		Buttons: []channel.Button{{Label: "Yes", Data: "q 1"}}, File: &channel.File{Name: "/x/f.txt", Path: name,
			MIME: "text/plain"},
	}
	id, err := c.Send(t.Context(), m)
	if err != nil || id != "r1" {
		t.Fatalf(`got %q, %v; want err == nil && id == "r1"`, id, err)
	}
	if id, err := c.Send(t.Context(), channel.Outbound{Chat: "desk", Text: "x", Key: "k2"}); err != nil || id != "k2" {
		t.Errorf("without a name of its own: %q, %v", id, err)
	}
	if err := c.Edit(t.Context(), "r1", channel.Outbound{Chat: "desk", Text: "done", Key: "k3"}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"map[buttons:[map[data:q 1 label:Yes]] chat:desk file:map[data:ZGF0YQ== mime:text/plain name:f.txt] " +
			"format:markdown key:k1 reply_to:m1 text:**hi** type:message]",
		"map[chat:desk format:markdown key:k2 text:x type:message]",
		"map[chat:desk format:markdown id:r1 key:k3 text:done type:edit]",
	}
	for i, p := range r.posts {
		if got := fmt.Sprint(p); got != want[i] {
			t.Errorf("posted %s\nwant   %s", got, want[i])
		}
		h := r.heads[i]
		if h.Get(webhook.SignatureHeader) != webhook.Sign(secret, h.Get(webhook.TimestampHeader), []byte(r.bodies[i])) ||
			h.Get(webhook.KeyHeader) != p["key"] {
			t.Errorf("the headers are %v", h)
		}
	}
	// A posted reply that is sent back unchanged is not a message.
	back := send(t, c, r.bodies[0], func(req *http.Request) {
		req.Header.Set(webhook.TimestampHeader, r.heads[0].Get(webhook.TimestampHeader))
		req.Header.Set(webhook.SignatureHeader, r.heads[0].Get(webhook.SignatureHeader))
	})
	if a := <-back; a.status != http.StatusBadRequest {
		t.Errorf("our own reply is answered %+v", a)
	}
}

func TestJudgement(t *testing.T) {
	const notSent, refused, unknown, sent = "not sent", "refused", "unknown", "sent"
	for _, x := range []struct {
		status int
		after  string
		want   string
		wait   time.Duration
	}{
		{200, "", sent, 0}, {204, "", sent, 0},
		{429, "7", notSent, 7 * time.Second}, {429, "", notSent, 5 * time.Second}, {429, "0", notSent, time.Second},
		{503, "3", notSent, 3 * time.Second}, {503, "", unknown, 0},
		{401, "", notSent, 0}, {302, "", notSent, 0},
		{400, "", refused, 0}, {404, "", refused, 0}, {413, "", refused, 0}, {501, "", refused, 0},
		{408, "", unknown, 0}, {409, "", unknown, 0}, {500, "", unknown, 0}, {502, "", unknown, 0},
	} {
		r := receive(t, func(w http.ResponseWriter, _ int) {
			if x.after != "" {
				w.Header().Set("Retry-After", x.after)
			}
			if x.status == 302 {
				w.Header().Set("Location", "/elsewhere")
			}
			w.WriteHeader(x.status)
		})
		_, err := open(t, to(r.URL)).Send(t.Context(), channel.Outbound{Chat: "a", Text: "x", Key: "k"})
		var limit *channel.RateLimitError
		var rejected *channel.RejectedError
		got := unknown
		switch {
		case err == nil:
			got = sent
		case errors.As(err, &rejected):
			got = refused
		case errors.Is(err, channel.ErrNotSent):
			got = notSent
		}
		if got != x.want || r.count() != 1 || errors.As(err, &limit) != (x.wait > 0) || limit != nil &&
			limit.After != x.wait {
			t.Errorf("%d %q: %s, %v, posted %d times", x.status, x.after, got, err, r.count())
		}
	}
}

// TestPostedOnce checks that a request is posted once. net/http would repeat a request with an
// idempotency key after a reused connection breaks.
func TestPostedOnce(t *testing.T) {
	r := receive(t, func(_ http.ResponseWriter, n int) {
		if n == 2 {
			panic(http.ErrAbortHandler)
		}
	})
	c := open(t, to(r.URL))
	if _, err := c.Send(t.Context(), channel.Outbound{Chat: "a", Text: "x", Key: "k1"}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Send(t.Context(), channel.Outbound{Chat: "a", Text: "x", Key: "k2"})
	if err == nil || errors.Is(err, channel.ErrNotSent) || r.count() != 2 {
		t.Errorf("%v; posted %d times", err, r.count())
	}
}

func TestReplyIsNotTaken(t *testing.T) {
	c := open(t, to("http://127.0.0.1:1/hook-secret")) // a port that no other process can get in the meantime
	_, err := c.Send(t.Context(), channel.Outbound{Chat: "a", Text: "x"})
	if !errors.Is(err, channel.ErrNotSent) || strings.Contains(err.Error(), "hook-secret") {
		t.Errorf("a refused connection: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Edit(ctx, "1", channel.Outbound{Chat: "a", Text: "x"}); !errors.Is(err, channel.ErrNotSent) ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("given up before it began: %v", err)
	}
}

func TestRefusedHere(t *testing.T) {
	c := open(t, func(o *webhook.Options) { o.Text = 3 })
	var rejected *channel.RejectedError
	for _, m := range []channel.Outbound{{Text: "1234"}, {Text: "😀😀"},
		{File: &channel.File{Path: filepath.Join(t.TempDir(), "none")}}} {
		if _, err := c.Send(t.Context(), m); !errors.As(err, &rejected) {
			t.Errorf("%+v: got %v; want errors.As(err, &rejected)", m, err)
		}
	}
	if got := c.Limits(); got.Text != 3 || got.Format != channel.Markdown || got.Dedupes || got.Buttons {
		t.Errorf("limits %+v", got)
	}
}

// TestPlain checks that a text without formatting is marked as plain.
func TestPlain(t *testing.T) {
	r := receive(t, func(http.ResponseWriter, int) {})
	ch := open(t, to(r.URL), func(o *webhook.Options) { o.Format = channel.HTML })
	for _, plain := range []bool{false, true} {
		if _, err := ch.Send(t.Context(), channel.Outbound{Chat: "c", Text: "a < b", Plain: plain}); err != nil {
			t.Fatal(err)
		}
	}
	if r.posts[0]["format"] != "html" || r.posts[1]["format"] != "plain" {
		t.Errorf("posted %v", r.posts)
	}
}
