package telegram_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/telegram"
	"github.com/perlica/perlica/service/telegram/telegramtest"
)

func TestSendAndEdit(t *testing.T) {
	w := start(t, nil)
	n := w.Say(42, 7, "Ada", "hello")
	id, err := w.bot.Send(t.Context(), channel.Outbound{
		Chat: "42", Text: "<b>May I?</b>\n<pre>rm &lt;x&gt;</pre>", ReplyTo: "42:1",
		Buttons: []channel.Button{{Label: "Yes", Data: strings.Repeat("x", 64)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := w.Messages()[0]
	if id != "42:2" || m.ReplyTo != n || m.ParseMode != "HTML" || len(m.Buttons) != 1 || m.Buttons[0].Text != "Yes" {
		t.Errorf("%q: %+v", id, m)
	}
	for range 2 { // the second edit changes nothing, which counts as success
		if err := w.bot.Edit(t.Context(), id, channel.Outbound{Chat: "42", Text: "<b>Ada</b> said yes"}); err != nil {
			t.Fatal(err)
		}
	}
	if m := w.Messages()[0]; m.Text != "<b>Ada</b> said yes" || len(m.Edits) != 1 || len(m.Buttons) != 0 {
		t.Errorf("edited to %+v", m)
	}
	if err := w.bot.Remove(t.Context(), id); err != nil || !w.Messages()[0].Removed {
		t.Errorf("it was not removed: %v", err)
	}
	if private, group := w.bot.Pace("42"), w.bot.Pace("-100/3"); private < time.Second || group < 3*time.Second {
		t.Errorf("edits come every %s, in a group every %s", private, group)
	}
	if err := w.bot.Typing(t.Context(), "42"); err != nil || w.Calls("sendChatAction") != 1 {
		t.Errorf("typing: %v", err)
	}
}

func TestFormattingFallsBack(t *testing.T) {
	w := start(t, nil)
	for _, m := range []channel.Outbound{
		{Chat: "42", Text: "<b>a < b</b> &amp; <x>"},
		{Chat: "42", Text: "<b>a < b</b> &amp; <x>", File: &channel.File{Name: "a.txt", Path: temp(t, "x")}},
	} {
		if _, err := w.bot.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.bot.Edit(t.Context(), "42:1", channel.Outbound{Text: "<i>open"}); err != nil {
		t.Fatal(err)
	}
	sent := w.Messages()
	if len(sent) != 2 || sent[0].Text != "open" || sent[0].Edits[0] != "a < b & <x>" || sent[0].ParseMode != "" ||
		sent[1].Text != "a < b & <x>" {
		t.Errorf("sent %+v", sent)
	}
}

func TestSendFaults(t *testing.T) {
	var limit *channel.RateLimitError
	var rejected *channel.RejectedError
	const notSent, refused, unknown = "not sent", "refused", "unknown"
	for _, c := range []struct {
		name  string
		fault telegramtest.Fault
		want  string
		sent  int
	}{
		{"429", telegramtest.Fault{Status: 429, Say: "Too Many Requests: retry after 5", RetryAfter: 5}, notSent, 0},
		{"400", telegramtest.Fault{Status: 400, Say: "Bad Request: chat not found"}, refused, 0},
		{"403", telegramtest.Fault{Status: 403, Say: "Forbidden: bot was blocked by the user"}, refused, 0},
		{"404", telegramtest.Fault{Status: 404, Say: "Not Found"}, refused, 0},
		{"401", telegramtest.Fault{Status: 401, Say: "Unauthorized"}, notSent, 0},
		{"413", telegramtest.Fault{Status: 413, Raw: true, Say: "too large"}, refused, 0},
		{"302", telegramtest.Fault{Status: 302, Raw: true}, notSent, 0},
		{"500", telegramtest.Fault{Status: 500, Say: "Internal Server Error: " + token}, unknown, 0},
		{"a proxy's 404", telegramtest.Fault{Status: 404, Raw: true, Say: "<html>not found</html>"}, unknown, 0},
		{"a proxy's 400", telegramtest.Fault{Status: 400, Raw: true,
			Say: "<html>plain HTTP was sent to an HTTPS port</html>"}, unknown, 0},
		{"a proxy's 401", telegramtest.Fault{Status: 401, Raw: true, Say: "<html>"}, notSent, 0},
		{"502", telegramtest.Fault{Status: 502, Raw: true, Say: "<html>" + token}, unknown, 0},
		{"403 with the token", telegramtest.Fault{Status: 403, Say: token}, refused, 0},
		{"400 with the token", telegramtest.Fault{Status: 400, Say: token}, refused, 0},
		{"cut before", telegramtest.Fault{Drop: true}, unknown, 0},
		{"cut after", telegramtest.Fault{Lose: true}, unknown, 1},
		{"cut amid", telegramtest.Fault{Half: true}, unknown, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for method, m := range map[string]channel.Outbound{
				"sendMessage":  {Chat: "42", Text: "hi"},
				"sendDocument": {Chat: "42", Text: "hi", File: &channel.File{Name: "a.txt", Path: temp(t, "x")}},
			} {
				w := start(t, only(method, c.fault))
				_, err := w.bot.Send(t.Context(), m)
				kind := unknown
				switch {
				case errors.As(err, &rejected):
					kind = refused
				case errors.Is(err, channel.ErrNotSent):
					kind = notSent
				}
				if err == nil || kind != c.want || len(w.Messages()) != c.sent || w.Calls(method) != 1 {
					t.Errorf("%s: %s: %v; %d sent in %d calls", method, kind, err, len(w.Messages()), w.Calls(method))
				}
				if c.fault.RetryAfter > 0 && (!errors.As(err, &limit) || limit.After != 5*time.Second) {
					t.Errorf("%s: %v", method, err)
				}
				holdsToken(t, err)
			}
		})
	}
}

// TestAGroupThatMoved checks that a message for a migrated group goes to its new chat.
func TestAGroupThatMoved(t *testing.T) {
	server := telegramtest.New(token)
	old := 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(body, []byte("-4242")) {
			old++
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w,
				`{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-10077}}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		server.ServeHTTP(w, r)
	}))
	defer h.Close()
	w := start(t, nil, func(o *telegram.Options) { o.BaseURL = h.URL })
	for _, m := range []channel.Outbound{
		{Chat: "-4242", Text: "hi", ReplyTo: "-4242:3"},
		{Chat: "-4242", Text: "hi", File: &channel.File{Name: "a.txt", Path: temp(t, "x")}},
	} {
		if id, err := w.bot.Send(t.Context(), m); err != nil || !strings.HasPrefix(id, "-10077:") {
			t.Errorf(`got %q, %v; want err == nil && strings.HasPrefix(id, "-10077:")`, id, err)
		}
	}
	if n := len(server.Messages()); n != 2 || old != 2 {
		t.Errorf("%d arrived, %d were for the old group", n, old)
	}
}

// TestRefusedHere checks that a message that Telegram would refuse is not sent.
func TestRefusedHere(t *testing.T) {
	w := start(t, nil)
	for name, m := range map[string]channel.Outbound{
		"chat":     {Chat: "@ada", Text: "x"},
		"length":   {Chat: "42", Text: strings.Repeat("😀", 2049)},
		"data":     {Chat: "42", Text: "x", Buttons: []channel.Button{{Label: "x", Data: strings.Repeat("x", 65)}}},
		"no label": {Chat: "42", Text: "x", Buttons: []channel.Button{{Data: "x"}}},
		"no file":  {Chat: "42", Text: "x", File: &channel.File{Path: filepath.Join(t.TempDir(), "none")}},
		"folder":   {Chat: "42", Text: "x", File: &channel.File{Path: t.TempDir()}},
	} {
		var rejected *channel.RejectedError
		if _, err := w.bot.Send(t.Context(), m); !errors.As(err, &rejected) {
			t.Errorf("%s: got %v; want errors.As(err, &rejected)", name, err)
		}
	}
	var rejected *channel.RejectedError
	if err := w.bot.Edit(t.Context(), "42", channel.Outbound{Text: "x"}); !errors.As(err, &rejected) {
		t.Errorf("editing what is no message: %v", err)
	}
	if w.Calls("sendMessage")+w.Calls("sendDocument")+w.Calls("editMessageText") != 0 {
		t.Error("something left")
	}
}

func TestNoServer(t *testing.T) {
	// a port that no other process can get in the meantime
	w := start(t, nil, func(o *telegram.Options) { o.BaseURL = "http://127.0.0.1:1" })
	_, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: "x"})
	if !errors.Is(err, channel.ErrNotSent) {
		t.Errorf("a refused connection: %v", err)
	}
	holdsToken(t, err)
	_, _, err = w.bot.Poll(t.Context(), "")
	if err == nil {
		t.Error("polled nobody")
	}
	holdsToken(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = w.bot.Send(ctx, channel.Outbound{Chat: "42", Text: "x"}); !errors.Is(err, channel.ErrNotSent) ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("given up before it began: %v", err)
	}
	holdsToken(t, err)
}

// leaky is a transport with errors that contain the address.
type leaky struct{ err error }

func (l leaky) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errors.Join(l.err, errors.New("no way to "+r.URL.String()))
}

func TestATransportThatTells(t *testing.T) {
	for _, kind := range []error{context.Canceled, context.DeadlineExceeded, os.ErrClosed} {
		w := start(t, nil, func(o *telegram.Options) { o.Client = &http.Client{Transport: leaky{kind}} })
		_, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: "x"})
		if !errors.Is(err, channel.ErrNotSent) || kind != os.ErrClosed && !errors.Is(err, kind) {
			t.Errorf("%v lost its kind: %v", kind, err)
		}
		holdsToken(t, err)
	}
}

// TestRedirectIsNotFollowed checks that a redirect's server does not get the address with the
// token.
func TestRedirectIsNotFollowed(t *testing.T) {
	var seen atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer other.Close()
	here := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	w := start(t, nil, func(o *telegram.Options) { o.BaseURL = here.URL })
	if _, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: "x"}); !errors.Is(err, channel.ErrNotSent) ||
		seen.Load() != 0 {
		t.Errorf("%v, and the other server saw %d requests", err, seen.Load())
	}
}

func TestFilesLeave(t *testing.T) {
	w := start(t, nil)
	data := strings.Repeat("0123456789", 100_000)
	id, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: "<b>see</b>",
		File: &channel.File{Name: "../log.txt", Path: temp(t, data)}, ReplyTo: "42:9",
		Buttons: []channel.Button{{Label: "ok", Data: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	m := w.Messages()[0]
	if id != "42:1" || m.File == nil || m.File.Name != "log.txt" || !bytes.Equal(m.File.Data, []byte(data)) ||
		m.Text != "<b>see</b>" || m.ReplyTo != 9 || len(m.Buttons) != 1 {
		t.Errorf("sent %q %+v", id, m.Buttons)
	}
	long := strings.Repeat("x", 1025) // longer than a caption
	id, err = w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: long,
		File: &channel.File{Name: "a", Path: temp(t, "x")}})
	if sent := w.Messages(); err != nil || id != "42:2" || len(sent) != 3 || sent[1].Text != long || sent[2].File == nil ||
		sent[2].Text != "" {
		t.Errorf("a long text with a file: %q, %v", id, err)
	}
}

// TestTextWithoutItsFile checks that no error claims that nothing was sent after half was sent.
func TestTextWithoutItsFile(t *testing.T) {
	w := start(t, only("sendDocument", telegramtest.Fault{Status: 429, RetryAfter: 3}))
	_, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: strings.Repeat("x", 1025),
		File: &channel.File{Name: "a", Path: temp(t, "x")}})
	if err == nil || errors.Is(err, channel.ErrNotSent) || len(w.Messages()) != 1 {
		t.Errorf("got %v; want err != nil && !errors.Is(err, channel.ErrNotSent) && len(w.Messages()) == 1", err)
	}
}

// TestFilesArrive checks that a poll names files without fetching them.
func TestFilesArrive(t *testing.T) {
	w := start(t, nil, func(o *telegram.Options) { o.MaxFile = 10 })
	w.AddFile("pic", telegramtest.File{Data: []byte("jpeg")})
	w.AddFile("doc", telegramtest.File{Data: []byte("text")})
	w.AddFile("big", telegramtest.File{Data: []byte("01234567890")})
	w.SayMore(42, 7, "Ada", map[string]any{"caption": "this", "photo": []any{map[string]any{"file_id": "small"}, map[string]any{"file_id": "pic"}}})
	w.SayMore(42, 7, "Ada", map[string]any{"document": map[string]any{"file_id": "doc", "file_name": "../../a.txt",
		"mime_type": "text/plain"}})
	w.SayMore(42, 7, "Ada", map[string]any{"document": map[string]any{"file_id": "big", "file_name": "big.bin",
		"file_size": 11}})
	w.SayMore(42, 7, "Ada", map[string]any{"document": map[string]any{"file_id": "big", "file_name": "big.bin"}})
	w.SayMore(42, 7, "Ada", map[string]any{"document": map[string]any{"file_id": "gone", "file_name": "gone.bin"}})
	list, _ := w.poll(t, "")
	if len(list) != 5 || w.Calls("getFile")+w.Calls("file") > 0 {
		t.Fatalf("got %+v", list)
	}
	for i, want := range []string{"jpeg", "text"} {
		m := list[i]
		if len(m.Files) != 1 || m.Files[0].Path != "" {
			t.Fatalf("got %+v", m)
		}
		path, err := w.bot.Fetch(t.Context(), m.ID, 0, m.Files[0])
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); string(b) != want || err != nil {
			t.Errorf("%s holds %q, %v", path, b, err)
		}
		if again, err := w.bot.Fetch(t.Context(), m.ID, 0, m.Files[0]); again != path || err != nil {
			t.Errorf("fetched again it is %s, %v", again, err)
		}
	}
	if f := list[0].Files[0]; list[0].Text != "this" || f.MIME != "image/jpeg" || f.Name != "photo.jpg" {
		t.Errorf("got %+v", list[0])
	}
	if f := list[1].Files[0]; f.MIME != "text/plain" || f.Name != "a.txt" {
		t.Errorf("got %+v", f)
	}
	for i, want := range map[int]string{2: "it is too large", 3: "it is too large", 4: "400"} {
		_, err := w.bot.Fetch(t.Context(), list[i].ID, 0, list[i].Files[0])
		var refused *channel.RejectedError
		if !errors.As(err, &refused) || !strings.HasPrefix(refused.Why, want) {
			t.Errorf("%d: got %v; want errors.As(err, &refused) && strings.HasPrefix(refused.Why, %v)", i, err, want)
		}
	}
}

// TestAFileThatNeverComes checks that an interrupted download is not a refusal and that its error
// does not contain the token.
func TestAFileThatNeverComes(t *testing.T) {
	w := start(t, func(method string, _ int) telegramtest.Fault { return telegramtest.Fault{Drop: method == "file"} })
	w.AddFile("doc", telegramtest.File{Data: []byte("text")})
	_, err := w.bot.Fetch(t.Context(), "42:1", 0, channel.File{Name: "a", Remote: "doc"})
	var refused *channel.RejectedError
	if err == nil || errors.As(err, &refused) {
		t.Errorf("got %v; want err != nil && !errors.As(err, &refused)", err)
	}
	holdsToken(t, err)
}

func temp(t *testing.T, data string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
