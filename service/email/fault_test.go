package email

import (
	"encoding/base64"
	"net/textproto"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"

	"github.com/perlica/perlica/service/channel"
)

// TestLongSubject checks that no line of a mail's header exceeds the limit of RFC 5322. Servers refuse such a mail, so
// the person would get no answer in this thread.
func TestLongSubject(t *testing.T) {
	c := &Channel{local: "bot", domain: "mail.example", now: time.Now}
	for _, subject := range []string{strings.Repeat("word ", 400), strings.Repeat("你好", 400)} {
		var h mail.Header
		h.Set("From", "ann@home.example")
		h.SetSubject(subject)
		l, ok := c.readLetter(message.Header{Header: h.Header.Header})
		if !ok {
			t.Fatal("the letter is not read")
		}
		l.thread = threadOf("first@home.example")
		c.noteThread(l)
		sent, err := c.compose(channel.Outbound{Text: "Yes."}, l.from, l.thread, "id@mail.example")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(sent), "\r\n") {
			if len(line) > 998 {
				t.Errorf("a line has %d bytes: %.60s", len(line), line)
			}
		}
	}
}

// TestFlowedCost checks that the work for a text grows with its length alone.
func TestFlowedCost(t *testing.T) {
	text := strings.Repeat("a \n", 20_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got := unfold(text, false); len(got) != 40_000 {
		t.Errorf("%d bytes", len(got))
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 100*uint64(len(text)) {
		t.Errorf("%d bytes were allocated for a text of %d bytes", n, len(text))
	}
}

// TestLargeText checks that a text that no agent could read is refused, and that a long address is no sender.
func TestLargeText(t *testing.T) {
	c := &Channel{local: "bot", domain: "mail.example", now: time.Now}
	for size, unread := range map[int]string{maxRead: "", maxRead + 1: "a mail that is too large"} {
		var m channel.Inbound
		c.fill(&m, letter{}, body{text: strings.Repeat("x", size)})
		if m.Unread != unread || (m.Text == "") != (unread != "") {
			t.Errorf("%d bytes: %q, and %d bytes of text", size, m.Unread, len(m.Text))
		}
	}
	for size, want := range map[int]bool{maxFrom: true, maxFrom + 1: false} {
		var h mail.Header
		h.Set("From", strings.Repeat("a", size-len("@home.example"))+"@home.example")
		if _, ok := c.readLetter(message.Header{Header: h.Header.Header}); ok != want {
			t.Errorf("a sender with %d bytes: %v", size, ok)
		}
	}
}

// TestPasswordIsHidden checks that an error has no form of the password that a server can repeat.
func TestPasswordIsHidden(t *testing.T) {
	s := Server{User: "me@example.org", Password: "pass word 4711"}
	plain := base64.StdEncoding.EncodeToString([]byte("\x00me@example.org\x00pass word 4711"))
	login := base64.StdEncoding.EncodeToString([]byte("pass word 4711"))
	err := s.withoutPassword(&textproto.Error{Code: 535, Msg: "no: AUTH PLAIN " + plain + ", " + login + ", pass word 4711"})
	if want := `535 "no: AUTH PLAIN (password), (password), (password)"`; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
