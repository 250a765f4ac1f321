package telegram_test

import (
	"bytes"
	"context"
	"errors"
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
		Chat: "42", Text: "<b>May I?</b>\n<pre>rm &lt;x&gt;</pre>", ReplyTo: "42:1", Buttons: []channel.Button{{Label: "Yes", Data: strings.Repeat("x", 64)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := w.Messages()[0]
	if id != "42:2" || m.ReplyTo != n || m.ParseMode != "HTML" || len(m.Buttons) != 1 || m.Buttons[0].Text != "Yes" {
		t.Errorf("%q: %+v", id, m)
	}
	for range 2 { // the second time it is not modified, which is what was wanted
		if err := w.bot.Edit(t.Context(), id, channel.Outbound{Chat: "42", Text: "<b>Ada</b> said yes"}); err != nil {
			t.Fatal(err)
		}
	}
	if m := w.Messages()[0]; m.Text != "<b>Ada</b> said yes" || len(m.Edits) != 1 || len(m.Buttons) != 0 {
		t.Errorf("edited to %+v", m)
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
	if len(sent) != 2 || sent[0].Text != "open" || sent[0].Edits[0] != "a < b & <x>" || sent[0].ParseMode != "" || sent[1].Text != "a < b & <x>" {
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
		{"401", telegramtest.Fault{Status: 401, Say: "Unauthorized"}, notSent, 0},
		{"413", telegramtest.Fault{Status: 413, Raw: true, Say: "too large"}, refused, 0},
		{"302", telegramtest.Fault{Status: 302, Raw: true}, notSent, 0},
		{"500", telegramtest.Fault{Status: 500, Say: "Internal Server Error: " + token}, unknown, 0},
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

// TestRefusedHere: what Telegram would refuse does not leave.
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
			t.Errorf("%s: %v", name, err)
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
	w := start(t, nil, func(o *telegram.Options) { o.BaseURL = "http://127.0.0.1:1" }) // a port that no one else can get in the meantime
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
	if _, err = w.bot.Send(ctx, channel.Outbound{Chat: "42", Text: "x"}); !errors.Is(err, channel.ErrNotSent) || !errors.Is(err, context.Canceled) {
		t.Errorf("given up before it began: %v", err)
	}
	holdsToken(t, err)
}

// leaky is a transport whose errors hold the address.
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

// TestRedirectIsNotFollowed: the server that is redirected to would get the address, and with it the
// token.
func TestRedirectIsNotFollowed(t *testing.T) {
	var seen atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer other.Close()
	here := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	w := start(t, nil, func(o *telegram.Options) { o.BaseURL = here.URL })
	if _, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: "x"}); !errors.Is(err, channel.ErrNotSent) || seen.Load() != 0 {
		t.Errorf("%v, and the other server saw %d requests", err, seen.Load())
	}
}

func TestFilesLeave(t *testing.T) {
	w := start(t, nil)
	data := strings.Repeat("0123456789", 100_000)
	id, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: "<b>see</b>", File: &channel.File{Name: "../log.txt", Path: temp(t, data)}, ReplyTo: "42:9", Buttons: []channel.Button{{Label: "ok", Data: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	m := w.Messages()[0]
	if id != "42:1" || m.File == nil || m.File.Name != "log.txt" || !bytes.Equal(m.File.Data, []byte(data)) || m.Text != "<b>see</b>" || m.ReplyTo != 9 || len(m.Buttons) != 1 {
		t.Errorf("sent %q %+v", id, m.Buttons)
	}
	long := strings.Repeat("x", 1025) // longer than a caption
	id, err = w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: long, File: &channel.File{Name: "a", Path: temp(t, "x")}})
	if sent := w.Messages(); err != nil || id != "42:2" || len(sent) != 3 || sent[1].Text != long || sent[2].File == nil || sent[2].Text != "" {
		t.Errorf("a long text with a file: %q, %v", id, err)
	}
}

// TestTextWithoutItsFile: where half was sent, no error says that nothing was.
func TestTextWithoutItsFile(t *testing.T) {
	w := start(t, only("sendDocument", telegramtest.Fault{Status: 429, RetryAfter: 3}))
	_, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: strings.Repeat("x", 1025), File: &channel.File{Name: "a", Path: temp(t, "x")}})
	if err == nil || errors.Is(err, channel.ErrNotSent) || len(w.Messages()) != 1 {
		t.Errorf("%v", err)
	}
}

func TestFilesArrive(t *testing.T) {
	w := start(t, only("file", telegramtest.Fault{Status: 500}), func(o *telegram.Options) {
		o.MaxFile = 10
		o.Accept = func(contact string) bool { return contact == "7" }
	})
	w.AddFile("pic", telegramtest.File{Data: []byte("jpeg")})
	w.AddFile("doc", telegramtest.File{Data: []byte("text")})
	w.AddFile("big", telegramtest.File{Data: []byte("01234567890")})
	w.Say(42, 7, "Ada", "look")
	w.SayMore(42, 7, "Ada", map[string]any{"caption": "this", "photo": []any{map[string]any{"file_id": "small"}, map[string]any{"file_id": "pic"}}})
	w.SayMore(42, 7, "Ada", map[string]any{"document": map[string]any{"file_id": "doc", "file_name": "../../a.txt", "mime_type": "text/plain"}})
	w.SayMore(42, 7, "Ada", map[string]any{"document": map[string]any{"file_id": "big", "file_name": "big.bin"}})
	w.SayMore(42, 7, "Ada", map[string]any{"document": map[string]any{"file_id": "gone", "file_name": "gone.bin"}})
	w.SayMore(42, 8, "Eve", map[string]any{"document": map[string]any{"file_id": "doc", "file_name": "x"}})
	list, next := w.poll(t, "")
	if len(list) != 1 || list[0].Text != "look" {
		t.Fatalf("what comes ahead of a file that cannot be had yet: %+v", list)
	}
	list, _ = w.poll(t, next)
	if len(list) != 5 {
		t.Fatalf("got %+v", list)
	}
	for i, want := range []string{"jpeg", "text"} {
		f := list[i].Files
		if len(f) != 1 {
			t.Fatalf("got %+v", list[i])
		}
		if b, err := os.ReadFile(f[0].Path); string(b) != want || err != nil {
			t.Errorf("%s holds %q, %v", f[0].Path, b, err)
		}
	}
	if f := list[0].Files[0]; list[0].Text != "this" || f.MIME != "image/jpeg" || f.Name != "photo.jpg" {
		t.Errorf("got %+v", list[0])
	}
	if f := list[1].Files[0]; f.MIME != "text/plain" || f.Name != "a.txt" {
		t.Errorf("got %+v", f)
	}
	if len(list[2].Files) != 0 || list[2].Text != "[big.bin could not be fetched: it is too large]" {
		t.Errorf("got %+v", list[2])
	}
	if len(list[3].Files) != 0 || !strings.Contains(list[3].Text, "[gone.bin could not be fetched: 400") {
		t.Errorf("got %+v", list[3])
	}
	if len(list[4].Files) != 0 {
		t.Errorf("a stranger's file was fetched: %+v", list[4])
	}
}

// TestAFileThatNeverComes does not hold up its message for ever.
func TestAFileThatNeverComes(t *testing.T) {
	w := start(t, func(method string, _ int) telegramtest.Fault { return telegramtest.Fault{Drop: method == "file"} })
	w.AddFile("doc", telegramtest.File{Data: []byte("text")})
	w.SayMore(42, 7, "Ada", map[string]any{"caption": "see", "document": map[string]any{"file_id": "doc", "file_name": "a"}})
	for range 2 {
		_, _, err := w.bot.Poll(t.Context(), "")
		if err == nil {
			t.Fatal("the file did not come, but the poll says nothing")
		}
		holdsToken(t, err)
	}
	if list, _ := w.poll(t, ""); len(list) != 1 || list[0].Text != "see\n\n[a could not be fetched: the download failed]" {
		t.Errorf("got %+v", list)
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
