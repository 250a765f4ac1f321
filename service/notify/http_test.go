package notify

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/webhook"
)

// addresses has an address of each kind of HTTP target.
var addresses = map[string]string{
	"ntfy":     "https://ntfy.sh/my-topic",
	"own ntfy": "ntfy+https://push.example.org/perlica/my-topic",
	"slack":    "https://hooks.slack.com/services/T0/B0/secret",
	"discord":  "https://discord.com/api/webhooks/1/secret",
	"webhook":  "https://example.org/hook",
}

func table(to, rest string) string {
	return fmt.Sprintf("[[notify]]\nwhen = [\"question\", \"finished\", \"failed\", \"unknown\", \"budget\", \"schedule\"]\n"+
		"to = %q\n%s\n", to, rest)
}

// TestReplies checks the attempts after each reply of a receiver, over two hours. An unknown result is repeated only
// for a target with keys. No redirect is followed. The pause of Retry-After is kept, and the attempts end.
func TestReplies(t *testing.T) {
	elsewhere := newReceiver(t, func(int, http.ResponseWriter, *http.Request) {})
	status := func(code int, header ...string) func(int, http.ResponseWriter, *http.Request) {
		return func(n int, w http.ResponseWriter, _ *http.Request) {
			if n > 1 {
				return // 200
			}
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
		}
	}
	broken := func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			panic(http.ErrAbortHandler) // the connection ends without a reply
		}
	}
	for name, c := range map[string]struct {
		reply    func(int, http.ResponseWriter, *http.Request)
		want     string // the events for a target without keys
		requests int
		keyed    string // the events for a target with keys; empty means the same
		pause    time.Duration
	}{
		"200":      {status(200), "started, sent", 1, "", 0},
		"204":      {status(204), "started, sent", 1, "", 0},
		"429":      {status(429, "Retry-After", "600"), "started, failed, started, sent", 2, "", 600 * time.Second},
		"503":      {status(503, "Retry-After", "60"), "started, failed, started, sent", 2, "", time.Minute},
		"404":      {status(404), "started, failed final", 1, "", 0},
		"500":      {status(500), "started, failed unknown final", 1, "started, failed unknown, started, sent", firstPause},
		"broken":   {broken, "started, failed unknown final", 1, "started, failed unknown, started, sent", firstPause},
		"redirect": {status(303, "Location", elsewhere.server.URL), "started, failed, started, sent", 2, "", firstPause},
		"longest":  {status(429, "Retry-After", "7200"), "started, failed, failed final", 1, "", maxAge - time.Second},
	} {
		for kind, to := range addresses {
			t.Run(name+"/"+kind, func(t *testing.T) {
				rc := newReceiver(t, c.reply)
				w := newWorld(t, table(to, `secret_env = "SIGNING"`))
				clock := time.Now().Add(time.Second)
				d := w.delivery(Options{Client: rc.client}, &clock)
				w.finish("hello", 0)
				want, requests := c.want, c.requests
				if kind == "webhook" && c.keyed != "" {
					want, requests = c.keyed, 2
				}
				first := w.deliver(t.Context(), d)
				if strings.Contains(want, "failed") && !strings.HasSuffix(want, "failed unknown final") && c.pause > 0 {
					clock = clock.Add(c.pause - time.Second/2)
					if got := w.deliver(t.Context(), d); got != first {
						t.Errorf("before the pause is over: %s, want %s", got, first)
					}
				}
				for range 24 {
					clock = clock.Add(5 * time.Minute)
					w.deliver(t.Context(), d)
				}
				if got := w.history(); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				got := rc.requests()
				if len(got) != requests {
					t.Fatalf("%d requests, want %d", len(got), requests)
				}
				if key := got[0].header.Get(webhook.KeyHeader); (key != "") != (kind == "webhook") ||
					key != got[len(got)-1].header.Get(webhook.KeyHeader) {
					t.Errorf("keys %q and %q", key, got[len(got)-1].header.Get(webhook.KeyHeader))
				}
			})
		}
	}
	if n := len(elsewhere.requests()); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// TestDeadReceiver checks that attempts at a receiver that accepts no connection have an end on record.
func TestDeadReceiver(t *testing.T) {
	rc := newReceiver(t, nil)
	rc.server.Close()
	w := newWorld(t, table(addresses["slack"], ""))
	clock := time.Now().Add(time.Second)
	d := w.delivery(Options{Client: rc.client}, &clock)
	w.finish("hello", 0)
	for range 240 {
		w.deliver(t.Context(), d)
		clock = clock.Add(30 * time.Second)
	}
	got := w.history()
	if n := strings.Count(got, "started"); n < 8 || n > 12 || !strings.HasSuffix(got, "failed, failed final") {
		t.Errorf("%d attempts: %s", n, got)
	}
}

// TestHangingReceiver checks that the end of the process interrupts an attempt, and that the unknown result is
// recorded.
func TestHangingReceiver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rc := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	w := newWorld(t, table(addresses["slack"], ""))
	clock := time.Now().Add(time.Second)
	d := w.delivery(Options{Client: rc.client}, &clock)
	w.finish("hello", 0)
	if got := w.deliver(ctx, d); got != "started, failed unknown final" {
		t.Errorf("got %s", got)
	}
}

// hostile are words that the formats of targets could read as something else.
const hostile = "@everyone <!channel> <@U1> [x](https://evil.example) **b** `c` \x1b]0;t\x07 \u202e\r\n" +
	"Subject: x\r\n\r\n password=hunter2hunter2 end"

// TestContent checks that the words of a question or an answer leave only with content = true. They are redacted and
// bounded, and Discord mentions nobody.
func TestContent(t *testing.T) {
	for kind, to := range addresses {
		for _, content := range []string{"false", "true"} {
			t.Run(kind+"/"+content, func(t *testing.T) {
				rc := newReceiver(t, func(int, http.ResponseWriter, *http.Request) {})
				w := newWorld(t, table(to, "secret_env = \"SIGNING\"\ncontent = "+content)+
					"[web]\npublic_url = \"https://me.example.org/p\"\n")
				clock := time.Now().Add(time.Second)
				d := w.delivery(Options{Client: rc.client}, &clock)
				w.add("session.created", refsOf(cause{}), fact.SessionCreated{})
				w.finish("ANSWER "+hostile+strings.Repeat(" long", 2000), 0)
				w.ask("TITLE "+hostile, "COMMAND "+hostile)
				w.deliver(t.Context(), d)
				got := rc.requests()
				if len(got) != 2 {
					t.Fatalf("%d requests, want 2", len(got))
				}
				for i, words := range [][]string{{"ANSWER"}, {"TITLE", "COMMAND"}} {
					body := got[i].body
					for _, word := range words {
						if strings.Contains(body, word) != (content == "true") {
							t.Errorf("%s in %s", word, body)
						}
					}
					for _, never := range []string{"hunter2", "\x1b", "\u001b", "\\u001b", "\u202e", "\\u202e", "\\r",
						"<!channel>", `"Subject`, "/services/", "secret"} {
						if strings.Contains(body, never) {
							t.Errorf("%q in %s", never, body)
						}
					}
					if !strings.Contains(body, "shop") || !strings.Contains(body, "https://me.example.org/p/#/") {
						t.Errorf("no project or page in %s", body)
					}
					if len(body) > 4000 {
						t.Errorf("%d bytes", len(body))
					}
				}
				checkFormat(t, kind, got[0])
			})
		}
	}
}

// checkFormat checks the members that the receivers' documentation names.
func checkFormat(t *testing.T, kind string, r request) {
	t.Helper()
	m := r.decode(t)
	switch kind {
	case "ntfy", "own ntfy":
		want := map[string]string{"ntfy": "ntfy.sh/", "own ntfy": "push.example.org/perlica/"}[kind]
		if r.host+r.path != want || m["topic"] != "my-topic" || m["priority"] != 3.0 || fmt.Sprint(m["tags"]) !=
			"[white_check_mark]" || m["title"] == "" || m["message"] == "" || m["click"] == "" ||
			r.header.Get("Authorization") != "Bearer "+signingKey {
			t.Errorf("%s%s %v %v", r.host, r.path, r.header, m)
		}
	case "slack":
		block := m["blocks"].([]any)[0].(map[string]any)["text"].(map[string]any)
		if block["type"] != "plain_text" || strings.ContainsAny(m["text"].(string), "<>") {
			t.Errorf("%v", m)
		}
	case "discord":
		text := m["content"].(string)
		if fmt.Sprint(m["allowed_mentions"]) != "map[parse:[]]" || len([]rune(text)) > maxDiscord ||
			strings.Contains(text, "](") || strings.Contains(text, " @everyone") {
			t.Errorf("%v", m)
		}
	case "webhook":
		stamp := r.header.Get(webhook.TimestampHeader)
		if r.header.Get(webhook.SignatureHeader) != webhook.Sign(signingKey, stamp, []byte(r.body)) ||
			m["key"] != r.header.Get(webhook.KeyHeader) || m["type"] != "notification" || m["kind"] != "finished" {
			t.Errorf("%v %v", r.header, m)
		}
	}
}

// TestAddresses checks the target of each address. The package config refuses the other addresses.
func TestAddresses(t *testing.T) {
	for to, want := range map[string]string{
		"desktop": "desktop", "contact:alice": "contact alice",
		"https://ntfy.sh/t": "ntfy ntfy.sh", "ntfy+http://127.0.0.1:1/t": "ntfy 127.0.0.1",
		"https://hooks.slack.com/x": "slack", "https://ptb.discord.com/api/webhooks/1/x": "discord",
		"https://hooks.slack.com.evil.example/x": "webhook hooks.slack.com.evil.example",
		"https://evildiscord.com/api/webhooks/x": "webhook evildiscord.com",
		"http://localhost:8080/x":                "webhook localhost:8080",
	} {
		w := newWorld(t, table("desktop", `secret_env = "SIGNING"`))
		w.project.Config.Notify[0].To = to
		targets, errs := Targets(t.Context(), w.project, Options{})
		if len(errs) > 0 || len(targets) != 1 || targets[0].Name != want {
			t.Errorf("%s: got %v and %v, want %q", to, targets, errs, want)
		}
	}
}

// TestPauses checks the pauses between the attempts: 5 seconds, then three times longer, up to 10 minutes.
func TestPauses(t *testing.T) {
	want := []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, 135 * time.Second, 405 * time.Second,
		10 * time.Minute, 10 * time.Minute}
	for i, pause := range want {
		if got := pauseAfter(i+1, nil); got != pause {
			t.Errorf("attempt %d: %s, want %s", i+1, got, pause)
		}
	}
}

// TestShortSecret checks that the secret of a signed webhook needs 16 bytes.
func TestShortSecret(t *testing.T) {
	for n, wrong := range map[int]int{15: 1, 16: 0} {
		w := newWorld(t, table("https://example.org/hook", `secret_env = "SIGNING"`))
		w.project.Environ = append(w.project.Environ, "SIGNING="+strings.Repeat("x", n))
		if _, errs := Targets(t.Context(), w.project, Options{}); len(errs) != wrong {
			t.Errorf("%d bytes: %v", n, errs)
		}
	}
}

// TestLongContent checks that the content of a notification has at most 1,000 characters.
func TestLongContent(t *testing.T) {
	w := newWorld(t, "")
	teller, err := tellerOf(w.project, "")
	if err != nil {
		t.Fatal(err)
	}
	if n := len([]rune(teller.visible(strings.Repeat("é", 1500)))); n > 1000 || n < 990 {
		t.Errorf("%d characters", n)
	}
}
