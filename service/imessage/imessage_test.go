package imessage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// world is the folder of a stand-in and a channel that runs it.
type world struct {
	*Channel
	dir string
}

func start(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	opt := Options{Command: self, Every: time.Millisecond, Settle: time.Millisecond, Timeout: time.Minute}
	for _, f := range change {
		f(&opt)
	}
	c, err := prepare(opt, []string{
		standIn + "=" + dir, "GORACE=atexit_sleep_ms=0", // otherwise each run of a race build exits a second later
		"PATH=" + os.Getenv("PATH"), "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{c, dir}
	w.write(t, db{})
	return w
}

func (w *world) write(t *testing.T, d db) {
	t.Helper()
	if err := store(filepath.Join(w.dir, "db"), d); err != nil {
		t.Fatal(err)
	}
}

func (w *world) mode(t *testing.T, mode string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "mode"), []byte(mode), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) log(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

func (w *world) poll(t *testing.T, cursor string) ([]channel.Inbound, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // for a message that never comes
	defer cancel()
	list, next, err := w.Poll(ctx, cursor)
	if err != nil {
		t.Fatal(err)
	}
	return list, next
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// said returns a message; each row is a minute later.
func said(row, chat int64, text string) message {
	return message{ID: row, Chat: chat, GUID: fmt.Sprintf("G%d", row), Sender: "ada@example.com", SenderName: "Ada",
		Text: text, Created: noon.Add(time.Duration(row) * time.Minute)}
}

func texts(list []channel.Inbound) string {
	var all []string
	for _, m := range list {
		all = append(all, m.Text)
	}
	return strings.Join(all, " ")
}

func TestOtherSystems(t *testing.T) {
	c, err := New(Options{})
	if runtime.GOOS != "darwin" && (!errors.Is(err, ErrSystem) || c != nil) {
		t.Errorf("New on %s: %v", runtime.GOOS, err)
	}
	if _, err := prepare(Options{Command: filepath.Join(t.TempDir(), "imsg")}, nil); !errors.Is(err, ErrNoCommand) {
		t.Errorf("without imsg: %v", err)
	}
}

func TestPoll(t *testing.T) {
	w := start(t)
	d := db{said(1, 1, "old"), said(2, 2, "older")}
	w.write(t, d)
	list, cursor := w.poll(t, "")
	if len(list) != 0 || !strings.HasPrefix(cursor, "2@") {
		t.Fatalf("the past is given out: %+v, %q", list, cursor)
	}
	mine := said(4, 1, "echo")
	mine.FromMe, mine.Sender = true, ""
	reply := said(5, 2, "\ufffc see")
	reply.ReplyTo = "G4"
	reply.Attachments = []attachment{{Name: "a.png", MIME: "image/png", Path: "/x/a.png"}, {Name: "b.png", Missing: true}}
	thumb, renamed, sms := said(6, 1, "liked"), said(7, 1, "x"), said(8, 1000, "you have won")
	thumb.Reaction, renamed.Sender = true, ""
	d = append(d, said(3, 1, "new"), mine, reply, thumb, renamed, sms)
	w.write(t, d)
	list, cursor = w.poll(t, cursor)
	if len(list) != 3 {
		t.Fatalf("got %+v", list)
	}
	if m := list[0]; m.ID != "G3" || m.Chat != "1" || m.Contact != "ada@example.com" || m.Name != "Ada" ||
		m.Text != "new" || m.Own || !m.Sent.Equal(d[2].Created) {
		t.Errorf("got %+v", m)
	}
	if m := list[1]; !m.Own {
		t.Errorf("an own message is not: %+v", m)
	}
	if m := list[2]; m.ReplyTo != "G4" || m.Text != "see\n\n[b.png is not on this Mac]" || len(m.Files) != 1 ||
		m.Files[0] != (channel.File{Name: "a.png", Path: "/x/a.png", MIME: "image/png"}) {
		t.Errorf("got %+v", m)
	}
	d = append(d, said(9, 2, "last"))
	w.write(t, d)
	if list, _ := w.poll(t, cursor); texts(list) != "last" {
		t.Errorf("then %+v", list)
	}
	// Another process continues at the cursor.
	if list, _ := start2(t, w).poll(t, cursor); texts(list) != "last" {
		t.Errorf("after a restart %+v", list)
	}
}

func start2(t *testing.T, w *world) *world {
	t.Helper()
	c, err := prepare(w.opt, w.env)
	if err != nil {
		t.Fatal(err)
	}
	return &world{c, w.dir}
}

func TestSMS(t *testing.T) {
	w := start(t, func(o *Options) { o.SMS = true })
	w.write(t, db{said(1, 1000, "by SMS")})
	if list, _ := w.poll(t, "0@0"); texts(list) != "by SMS" {
		t.Errorf("got %+v", list)
	}
}

// TestManyAtOnce checks that the channel reads all messages of an outage, although imsg shows fewer
// by default.
func TestManyAtOnce(t *testing.T) {
	w := start(t)
	var d db
	for i := range int64(300) {
		d = append(d, said(i+1, 1+i%80, "x"))
	}
	for i := range int64(120) {
		d = append(d, said(301+i, 7, "x"))
	}
	w.write(t, d)
	list, next := w.poll(t, fmt.Sprintf("1@%d", noon.Unix()))
	if len(list) != 419 || !strings.HasPrefix(next, "420@") || !slices.IsSortedFunc(list,
		func(a, b channel.Inbound) int { return a.Sent.Compare(b.Sent) }) {
		t.Errorf("%d messages, %q", len(list), next)
	}
}

// TestStoredWhileRead stores a message during a Poll, in a chat that this Poll has already read. Then the Poll reads a
// message with a higher row in another chat. The cursor must not pass the first message before Poll has returned it.
func TestStoredWhileRead(t *testing.T) {
	w := start(t)
	w.write(t, db{said(1, 1, "old"), said(2, 2, "older")})
	_, cursor := w.poll(t, "")
	w.write(t, db{said(1, 1, "old"), said(2, 2, "older"), said(3, 2, "three")})
	// After the first history of chat 2 was read, row 4 is stored there and row 5 in chat 1.
	next := db{said(1, 1, "old"), said(2, 2, "older"), said(3, 2, "three"), said(4, 2, "four"), said(5, 1, "five")}
	if err := store(filepath.Join(w.dir, "after-history"), next); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 3 {
		var list []channel.Inbound
		list, cursor = w.poll(t, cursor)
		for _, m := range list {
			got = append(got, m.Text)
		}
	}
	if strings.Join(got, " ") != "three four five" {
		t.Errorf("got %q", got)
	}
}

// TestCorrection checks a sent message that Messages first shows as another person's. It counts as
// sent.
func TestCorrection(t *testing.T) {
	w := start(t)
	w.write(t, db{said(1, 1, "old")})
	_, cursor := w.poll(t, "")
	w.write(t, db{said(1, 1, "old"), said(2, 1, "an answer")})
	ours := said(2, 1, "an answer")
	ours.FromMe = true
	if err := store(filepath.Join(w.dir, "after-history"), db{said(1, 1, "old"), ours}); err != nil {
		t.Fatal(err)
	}
	if list, _ := w.poll(t, cursor); len(list) != 1 || !list[0].Own {
		t.Errorf("got %+v", list)
	}
}

func TestSend(t *testing.T) {
	w := start(t)
	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	id, err := w.Send(t.Context(), channel.Outbound{Chat: "42", Text: "a secret text\nof two lines",
		File: &channel.File{Path: file}})
	if err != nil || id != "SENT" {
		t.Fatalf(`got %q, %v; want err == nil && id == "SENT"`, id, err)
	}
	b, err := os.ReadFile(filepath.Join(w.dir, "sent"))
	if err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Chat int64 `json:"chat_id"`
		Text string
		File string
	}
	if err := json.Unmarshal(b, &sent); err != nil || sent.Chat != 42 || sent.Text != "a secret text\nof two lines" ||
		sent.File != file {
		t.Errorf("sent %s, %v", b, err)
	}
	if log := w.log(t); log != "rpc\n" {
		t.Errorf("the command line was %q", log)
	}
	w.write(t, db{said(1, 1, "x")})
	echo := said(2, 1, "echo")
	echo.GUID = "SENT"
	_, cursor := w.poll(t, "")
	w.write(t, db{said(1, 1, "x"), echo})
	if list, _ := w.poll(t, cursor); len(list) != 1 || !list[0].Own {
		t.Errorf("what was sent comes back as %+v", list)
	}
}

func TestSendFaults(t *testing.T) {
	const notSent, refused, unknown = "not sent", "refused", "unknown"
	for mode, want := range map[string]string{
		"code -32602": refused, "code -32603": unknown, "code -32601": notSent, "die": unknown, "garbage": unknown,
		"silent": unknown, "hang": unknown,
	} {
		t.Run(mode, func(t *testing.T) {
			w := start(t, func(o *Options) {
				if mode == "hang" {
					o.Timeout = 200 * time.Millisecond
				}
			})
			w.mode(t, mode)
			_, err := w.Send(t.Context(), channel.Outbound{Chat: "42", Text: "private words"})
			if got := kind(err); err == nil || got != want || strings.Contains(err.Error(), "private words") {
				t.Errorf(`%s: got %v; want err != nil && got == %v && !strings.Contains(err.Error(), "private words")`,
					got, err, want)
			}
		})
	}
	w := start(t)
	for _, m := range []channel.Outbound{{Chat: "ada", Text: "x"}, {Chat: "1", Text: strings.Repeat("x", 10_001)},
		{Chat: "1", File: &channel.File{Path: t.TempDir()}}, {Chat: "1", File: &channel.File{Path: ""}}} {
		if _, err := w.Send(t.Context(), m); kind(err) != refused {
			t.Errorf("%+v: got %v; want kind(err) == %v", m, err, refused)
		}
	}
	if log := w.log(t); log != "" {
		t.Errorf("imsg was run: %q", log)
	}
	if err := os.Remove(filepath.Join(w.dir, "db")); err != nil {
		t.Fatal(err)
	}
	w.opt.Command = filepath.Join(w.dir, "gone")
	if _, err := w.Send(t.Context(), channel.Outbound{Chat: "1", Text: "x"}); kind(err) != notSent {
		t.Errorf("without imsg: %v", err)
	}
}

func kind(err error) string {
	var rejected *channel.RejectedError
	switch {
	case errors.As(err, &rejected):
		return "refused"
	case errors.Is(err, channel.ErrNotSent):
		return "not sent"
	}
	return "unknown"
}

func TestPollFaults(t *testing.T) {
	for mode, want := range map[string]string{"die": "full disk access", "garbage": "else than JSON",
		"hang": "was ended"} {
		w := start(t, func(o *Options) {
			if mode == "hang" {
				o.Timeout = 200 * time.Millisecond
			}
		})
		w.mode(t, mode)
		if list, next, err := w.Poll(t.Context(), "7@7"); err == nil || !strings.Contains(err.Error(), want) ||
			len(list) != 0 || next != "7@7" {
			t.Errorf("%s: %+v, %q, %v", mode, list, next, err)
		}
	}
	w := start(t)
	if _, _, err := w.Poll(t.Context(), "x"); err == nil {
		t.Error("a cursor of another channel is taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := w.Poll(ctx, "7@7"); !errors.Is(err, context.Canceled) {
		t.Errorf("a poll that was given up: %v", err)
	}
}

// TestOneAtATime checks that two instances of the stand-in never run at the same time.
func TestOneAtATime(t *testing.T) {
	w := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _, _ = w.Poll(ctx, "7@7") })
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if _, err := w.Send(t.Context(), channel.Outbound{Chat: "1", Text: "x"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() { defer cancel() })
	wg.Wait()
	if log := w.log(t); strings.Contains(log, "met another") || strings.Count(log, "rpc") != 20 {
		t.Errorf("imsg ran beside itself:\n%s", log)
	}
}
