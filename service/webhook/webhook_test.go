package webhook_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/webhook"
)

const secret = "0123456789abcdef-not-secret"

// open opens a channel on a free port.
func open(t *testing.T, change ...func(*webhook.Options)) *webhook.Channel {
	t.Helper()
	opt := webhook.Options{
		Listen: "127.0.0.1:0", ReplyURL: "http://127.0.0.1:1/replies", Secret: secret,
		Files: filepath.Join(t.TempDir(), "files"), MaxBody: 10_000,
	}
	for _, f := range change {
		f(&opt)
	}
	c, err := webhook.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// answer is the response to a sender.
type answer struct {
	status int
	body   string
	header http.Header
}

// send sends a body, signed now, and returns a channel of its answer.
func send(t *testing.T, c *webhook.Channel, body string, change ...func(*http.Request)) <-chan answer {
	t.Helper()
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.Addr().String()+"/messages",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(webhook.TimestampHeader, stamp)
	req.Header.Set(webhook.SignatureHeader, webhook.Sign(secret, stamp, []byte(body)))
	for _, f := range change {
		f(req)
	}
	done := make(chan answer, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			done <- answer{body: err.Error()}
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		done <- answer{resp.StatusCode, string(b), resp.Header}
	}()
	return done
}

func hello(id string) string {
	return fmt.Sprintf(`{"id":%q,"chat":"desk","contact":"ada","name":"Ada","text":"hello"}`, id)
}

// taken calls Poll, which must return messages.
func taken(t *testing.T, c *webhook.Channel, cursor string) ([]channel.Inbound, string) {
	t.Helper()
	list, next, err := c.Poll(t.Context(), cursor)
	if err != nil || len(list) == 0 {
		t.Fatalf("got %+v, %v; want err == nil && len(list) != 0", list, err)
	}
	return list, next
}

// accept calls Poll with a cursor that accepts messages, and then cancels the call.
func accept(t *testing.T, c *webhook.Channel, cursor string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, next, err := c.Poll(ctx, cursor); !errors.Is(err, context.Canceled) || len(list) != 0 || next != cursor {
		t.Errorf("got %+v, %q, %v; want errors.Is(err, context.Canceled) && len(list) == 0 && next == %v",
			list, next, err, cursor)
	}
}

// TestAcceptedWhenTaken checks that the answer waits for the Poll that proves that the message was
// stored.
func TestAcceptedWhenTaken(t *testing.T) {
	c := open(t)
	done := send(t, c,
		`{"id":"m1","chat":"desk","contact":"ada","name":"Ada","text":"hi","sent":"2024-01-02T03:04:05Z","reply_to":"r1","button":"q1 2"}`)
	list, next := taken(t, c, "")
	want := channel.Inbound{
		ID: "m1", Chat: "desk", Contact: "ada", Name: "Ada", Text: "hi", Sent: time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC),
		ReplyTo: "r1", Button: "q1 2",
	}
	if got := fmt.Sprintf("%+v", list); got != fmt.Sprintf("%+v", []channel.Inbound{want}) {
		t.Errorf("got %s", got)
	}
	// A caller that could not store it asks again with the earlier cursor.
	again, _ := taken(t, c, "")
	if len(again) != 1 || again[0].ID != "m1" {
		t.Errorf("again %+v", again)
	}
	// A cursor of another process does not count.
	if other, _ := taken(t, c, "ABC:99"); len(other) != 1 {
		t.Errorf("with another's cursor %+v", other)
	}
	select {
	case a := <-done:
		t.Fatalf("answered %+v before it was taken", a)
	default:
	}
	accept(t, c, next)
	if a := <-done; a.status != http.StatusAccepted || a.body != `{"id":"m1"}`+"\n" {
		t.Errorf("answered %+v", a)
	}
}

// TestRefuse checks that a refused message is answered with both digests. Its file does not replace
// the file of the earlier message with this id.
func TestRefuse(t *testing.T) {
	c := open(t)
	with := func(content string) string {
		return fmt.Sprintf(`{"id":"m1","chat":"a","contact":"b","files":[{"name":"x","data":%q}]}`,
			base64.StdEncoding.EncodeToString([]byte(content)))
	}
	first := send(t, c, with("one"))
	list, next := taken(t, c, "")
	kept := list[0].Files[0].Path
	accept(t, c, next)
	<-first
	second := send(t, c, with("two"))
	list, next = taken(t, c, next)
	c.Refuse(list[0], &channel.ConflictError{ID: "m1", Recorded: "aa", Given: "bb"})
	a := <-second
	var said map[string]string
	if err := json.Unmarshal([]byte(a.body), &said); err != nil || a.status != http.StatusConflict ||
		said["recorded"] != "aa" || said["given"] != "bb" {
		t.Errorf("answered %+v, %v", a, err)
	}
	accept(t, c, next)
	if b, err := os.ReadFile(kept); string(b) != "one" || err != nil {
		t.Errorf("the first file is %q, %v", b, err)
	}
}

// TestNotCompared checks that a sender learns that its message was not compared, because the
// earlier digest is not on record.
func TestNotCompared(t *testing.T) {
	c := open(t)
	sent := send(t, c, hello("m1"))
	list, _ := taken(t, c, "")
	c.Refuse(list[0], &channel.ConflictError{ID: "m1", Given: "bb"})
	a := <-sent
	var said map[string]string
	if err := json.Unmarshal([]byte(a.body), &said); err != nil || a.status != http.StatusAccepted ||
		!strings.Contains(said["warning"], "is not on record any more") {
		t.Errorf("answered %+v, %v", a, err)
	}
}

// TestOnlyWhatWasTaken checks that the cursor after the first of two waiting messages accepts only
// the first.
func TestOnlyWhatWasTaken(t *testing.T) {
	c := open(t)
	first := send(t, c, hello("m1"))
	_, next := taken(t, c, "")
	second := send(t, c, hello("m2"))
	for list, end := taken(t, c, ""); ; list, end = taken(t, c, "") {
		if len(list) == 2 && end != next {
			break
		}
	}
	list, last := taken(t, c, next)
	if a := <-first; a.status != http.StatusAccepted || len(list) != 1 || list[0].ID != "m2" {
		t.Errorf("%+v, then %+v", a, list)
	}
	accept(t, c, last)
	if a := <-second; a.status != http.StatusAccepted {
		t.Errorf("answered %+v", a)
	}
}

func TestNotTakenInTime(t *testing.T) {
	c := open(t, func(o *webhook.Options) { o.Handover = 50 * time.Millisecond })
	for range 2 {
		a := <-send(t, c, hello("m1"))
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Errorf("answered %+v", a)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, _, err := c.Poll(ctx, ""); len(list) != 0 || err == nil {
		t.Errorf("a message whose sender was sent away is given out: %+v", list)
	}
}

func TestCloseSendsWaitersAway(t *testing.T) {
	c := open(t)
	done := send(t, c, hello("m1"))
	_, next := taken(t, c, "")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.status != http.StatusServiceUnavailable {
		t.Errorf("answered %+v", a)
	}
	if _, _, err := c.Poll(t.Context(), next); !errors.Is(err, channel.ErrClosed) {
		t.Errorf("a poll of a closed channel: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	c := open(t)
	sign := func(stamp, body string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set(webhook.TimestampHeader, stamp)
			r.Header.Set(webhook.SignatureHeader, webhook.Sign(secret, stamp, []byte(body)))
		}
	}
	at := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).Unix(), 10) }
	ok := hello("m1")
	for _, x := range []struct {
		name   string
		body   string
		change func(*http.Request)
		status int
	}{
		{"no signature", ok, func(r *http.Request) { r.Header.Del(webhook.SignatureHeader) }, 401},
		{"another secret", ok, func(r *http.Request) {
			r.Header.Set(webhook.SignatureHeader, webhook.Sign("another secret, long", r.Header.Get(webhook.TimestampHeader),
				[]byte(ok)))
		}, 401},
		{"another body", ok, sign(at(0), hello("m2")), 401},
		{"another time", ok, func(r *http.Request) { r.Header.Set(webhook.TimestampHeader, at(-time.Minute)) }, 401},
		{"too old", ok, sign(at(-6*time.Minute), ok), 401},
		{"too new", ok, sign(at(6*time.Minute), ok), 401},
		{"no time", ok, sign("", ok), 401},
		{"no number", ok, sign("now", ok), 401},
		{"method", ok, func(r *http.Request) { r.Method = http.MethodPut }, 405},
		{"path", ok, func(r *http.Request) { r.URL.Path = "/" }, 404},
		{"size", `"` + strings.Repeat("x", 10_000) + `"`, nil, 413},
		{"no JSON", "x", nil, 400},
		{"a list", "[]", nil, 400},
		{"no id", `{"chat":"a","contact":"b","text":"x"}`, nil, 400},
		{"no chat", `{"id":"1","contact":"b","text":"x"}`, nil, 400},
		{"no contact", `{"id":"1","chat":"b","text":"x"}`, nil, 400},
		{"nothing in it", `{"id":"1","chat":"b","contact":"c"}`, nil, 400},
		{"a long id", `{"id":"` + strings.Repeat("x", 257) + `","chat":"b","contact":"c","text":"x"}`, nil, 400},
		{"one of our replies", `{"type":"message","chat":"desk","text":"hi","format":"markdown","key":"k"}`, nil, 400},
		{"a member twice", `{"id":"1","chat":"b","contact":"c","text":"x","text":"y"}`, nil, 400},
		{"another case", `{"id":"1","chat":"b","contact":"c","text":"x","Text":"y"}`, nil, 400},
		{"only another case", `{"ID":"1","chat":"b","contact":"c","text":"x"}`, nil, 400},
		{"half a surrogate pair", `{"id":"1","chat":"b","contact":"c","text":"a\ud800b"}`, nil, 400},
		{"bytes that are not UTF-8", "{\"id\":\"1\",\"chat\":\"b\",\"contact\":\"c\",\"text\":\"a\xff\"}", nil, 400},
		{"a second object", ok + `{"id":"2"}`, nil, 400},
		{"a member twice in a file", `{"id":"1","chat":"b","contact":"c","text":"x","files":[{"name":"a","name":"b"}]}`, nil,
			400},
		{"an unknown field", `{"id":"1","chat":"b","contact":"c","text":"x","admin":true}`, nil, 400},
	} {
		t.Run(x.name, func(t *testing.T) {
			var change []func(*http.Request)
			if x.change != nil {
				change = append(change, x.change)
			}
			if a := <-send(t, c, x.body, change...); a.status != x.status || strings.Contains(a.body, secret) {
				t.Errorf("answered %+v, want %d", a, x.status)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, _, _ := c.Poll(ctx, ""); len(list) != 0 {
		t.Errorf("given out: %+v", list)
	}
}

func TestFiles(t *testing.T) {
	body := fmt.Sprintf(`{"id":"m1","chat":"a","contact":"b","files":[{"name":"../x.txt","mime":"text/plain","data":%q}]}`,
		base64.StdEncoding.EncodeToString([]byte("hello")))
	c := open(t)
	done := send(t, c, body)
	list, next := taken(t, c, "")
	if f := list[0].Files; len(f) != 1 || f[0].Name != "x.txt" || f[0].MIME != "text/plain" {
		t.Fatalf("got %+v", list)
	} else if b, err := os.ReadFile(f[0].Path); string(b) != "hello" || err != nil {
		t.Errorf(`got %q, %v; want string(b) == "hello" && err == nil`, b, err)
	}
	accept(t, c, next)
	<-done
	dir := t.TempDir()
	c = open(t, func(o *webhook.Options) { o.Files, o.Accept = dir, func(who string) bool { return who != "b" } })
	done = send(t, c, body)
	list, next = taken(t, c, "")
	if kept, err := os.ReadDir(dir); len(list[0].Files)+len(kept) > 0 || err != nil {
		t.Errorf("a stranger's file: %+v, %v, %v", list, kept, err)
	}
	accept(t, c, next)
	<-done
	c = open(t, func(o *webhook.Options) { o.Files = "" })
	if a := <-send(t, c, body); a.status != http.StatusBadRequest {
		t.Errorf("answered %+v", a)
	}
}

func TestOpenRefuses(t *testing.T) {
	good := webhook.Options{Listen: "127.0.0.1:0", ReplyURL: "https://example.com/x", Secret: secret}
	for name, change := range map[string]func(*webhook.Options){
		"a short secret":   func(o *webhook.Options) { o.Secret = "0123456789abcde" },
		"all addresses":    func(o *webhook.Options) { o.Listen = ":0" },
		"0.0.0.0":          func(o *webhook.Options) { o.Listen = "0.0.0.0:0" },
		"a name":           func(o *webhook.Options) { o.Listen = "example.com:0" },
		"no port":          func(o *webhook.Options) { o.Listen = "127.0.0.1" },
		"no reply URL":     func(o *webhook.Options) { o.ReplyURL = "" },
		"a file":           func(o *webhook.Options) { o.ReplyURL = "file:///tmp/x" },
		"replies in clear": func(o *webhook.Options) { o.ReplyURL = "http://example.com/" + secret },
	} {
		opt := good
		change(&opt)
		if c, err := webhook.Open(opt); err == nil {
			t.Errorf("%s: opened at %s", name, c.Addr())
			_ = c.Close()
		} else if strings.Contains(fmt.Sprintf("%v %+v %#v", err, opt.Secret, opt.Secret), secret) {
			t.Errorf("%s: the secret shows in %v", name, err)
		}
	}
	good.Listen, good.ReplyURL, good.AllowRemote = "0.0.0.0:0", "http://example.com", true
	c, err := webhook.Open(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestTheCommandInTheDocs runs the command in docs/channel-webhook.md.
func TestTheCommandInTheDocs(t *testing.T) {
	for _, tool := range []string{"sh", "curl", "openssl", "cut", "date"} {
		if _, err := exec.LookPath(tool); err != nil || runtime.GOOS == "windows" {
			t.Skipf("there is no %s", tool)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "channel-webhook.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)<!-- curl: begin -->\n```sh\n(.*?)```\n<!-- curl: end -->").FindSubmatch(page)
	if m == nil || !strings.Contains(string(m[1]), webhook.DefaultListen) {
		t.Fatal("the page has no command")
	}
	c := open(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(string(m[1]), webhook.DefaultListen,
		c.Addr().String()))
	cmd.Env = append(os.Environ(), "SECRET="+secret, "no_proxy=127.0.0.1")
	done := make(chan string, 1)
	go func() {
		out, err := cmd.CombinedOutput()
		done <- fmt.Sprint(string(out), err)
	}()
	polled := make(chan []channel.Inbound, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		list, next, _ := c.Poll(ctx, "")
		polled <- list
		_, _, _ = c.Poll(ctx, next)
	}()
	select {
	case out := <-done:
		t.Fatalf("the command was not taken: %s", out)
	case list := <-polled:
		if len(list) != 1 || list[0].Text != "hello" || list[0].Contact != "ada" {
			t.Errorf("got %+v", list)
		}
	}
	if out := <-done; out != `{"id":"note-1"}`+"\n<nil>" {
		t.Errorf("the command says %s", out)
	}
}
