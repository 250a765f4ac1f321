package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// patience limits the wait for an expected event.
const patience = 2 * time.Minute

func listen(t *testing.T, limits channel.Limits) (*Channel, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "local") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "run", "s")
	c, err := Listen(path, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, path
}

// raw is a phone's end of a connection, line by line.
type raw struct {
	net.Conn
	t  *testing.T
	in *bufio.Scanner
}

func dial(t *testing.T, path string) *raw {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the connection may be closed already
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(conn)
	in.Buffer(nil, maxLine)
	return &raw{conn, t, in}
}

const aliceToken = "0123456789ABCDEF-of-alice"

func (r *raw) says(l line) {
	r.t.Helper()
	b, err := json.Marshal(l)
	if err == nil {
		_, err = r.Write(append(b, '\n'))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// hears returns the next line. ok is false if the connection is closed instead.
func (r *raw) hears() (l line, ok bool) {
	r.t.Helper()
	if !r.in.Scan() {
		if err := r.in.Err(); errors.Is(err, os.ErrDeadlineExceeded) {
			r.t.Fatal("nothing came")
		}
		return l, false
	}
	if err := json.Unmarshal(r.in.Bytes(), &l); err != nil {
		r.t.Fatal(err)
	}
	return l, true
}

// alice connects and identifies herself.
func alice(t *testing.T, path string) *raw {
	t.Helper()
	r := dial(t, path)
	r.says(line{Hello: &hello{"alice", aliceToken}})
	return r
}

// polled returns the messages after a cursor. It fails if there are none.
func polled(t *testing.T, c *Channel, cursor string) ([]channel.Inbound, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	list, next, err := c.Poll(ctx, cursor)
	if err != nil {
		t.Fatal(err)
	}
	return list, next
}

// sent is the result of sending a message.
type sent struct {
	id  string
	err error
}

func send(ctx context.Context, c *Channel, m channel.Outbound) <-chan sent {
	done := make(chan sent, 1)
	go func() {
		id, err := c.Send(ctx, m)
		done <- sent{id, err}
	}()
	return done
}

func TestPath(t *testing.T) {
	if got := Path("/run/user/1", "/work/a"); filepath.Dir(got) != "/run/user/1" || got == Path("/run/user/1", "/work/b") {
		t.Errorf("%s is no place of its own", got)
	}
	long := "/" + strings.Repeat("x", maxSocketPath)
	if got := Path(long, "/work/a"); strings.HasPrefix(got, long) || got == Path(long+"y", "/work/a") ||
		got == Path(long, "/work/b") {
		t.Errorf("%s is for a folder whose path is too long", got)
	}
}

// TestFolderOfALongPath checks that no empty folder stays in the temporary folder after Close, and after an error.
func TestFolderOfALongPath(t *testing.T) {
	dir, err := os.MkdirTemp("", "local")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	long := filepath.Join(dir, strings.Repeat("a-folder-with-a-long-name/", 6))
	for name, temp := range map[string]string{"closed": dir, "too long": long} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", temp)
			if err := os.MkdirAll(temp, 0o700); err != nil {
				t.Fatal(err)
			}
			c, err := Listen(Path(filepath.Join(long, "sockets"), "/project"), DefaultLimits())
			if (err == nil) != (temp == dir) {
				t.Fatal(err)
			}
			if err == nil {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			if left, err := filepath.Glob(filepath.Join(temp, "perlica-*")); err != nil || len(left) > 0 {
				t.Errorf("%q stays (%v)", left, err)
			}
		})
	}
}

// TestContactID checks that the token identifies the contact, and that the name in the id is
// readable and harmless.
func TestContactID(t *testing.T) {
	id := ContactID("Ada/../B:c d", "token-1")
	if !strings.HasPrefix(id, "Ada_.._B_c_d-") {
		t.Errorf("the id is %s", id)
	}
	if id == ContactID("Ada/../B:c d", "token-2") || id != ContactID("Ada/../B:c d", "token-1") {
		t.Error("it is not the token that makes it")
	}
	if n := len([]rune(ContactID(strings.Repeat("é", 1000), "t"))); n != longestName+1+16 {
		t.Errorf("a long name makes an id of %d", n)
	}
}

// TestATokenIsGiven checks that a phone without a token, or with a short one, gets a token before
// any other line.
func TestATokenIsGiven(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	for _, own := range []string{"", "short"} {
		r := dial(t, path)
		r.says(line{Hello: &hello{"alice", own}})
		l, ok := r.hears()
		if !ok || len(l.Token) < leastToken {
			t.Fatalf("it was given %+v", l)
		}
		r.says(line{Message: &Message{ID: "of " + own, Text: "hi"}})
		list, next := polled(t, c, "")
		if want := ContactID("alice", l.Token); len(list) != 1 || list[0].Contact != want || list[0].Chat != want ||
			list[0].Name != "alice" {
			t.Errorf("got %+v, want it of %s", list, want)
		}
		c.confirmUpTo(next)
	}
}

// TestAcceptedBehindTheCursor checks that a message is accepted only when the caller returns its
// cursor, and is repeated until then. The cursor of another process does not count.
func TestAcceptedBehindTheCursor(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	r := alice(t, path)
	now := time.Now().UTC()
	r.says(line{Message: &Message{ID: "1", Text: "hi", Sent: now, ReplyTo: "k", Button: "b",
		Files: []string{"/tmp/f.txt"}}})
	list, next := polled(t, c, "")
	again, _ := polled(t, c, "elsewhere/99")
	if len(list) != 1 || len(again) != 1 || again[0].ID != list[0].ID {
		t.Fatalf("%+v, then %+v", list, again)
	}
	m := list[0]
	if m.Text != "hi" || m.ReplyTo != "k" || m.Button != "b" || !m.Sent.Equal(now) ||
		m.Files[0] != (channel.File{Name: "f.txt", Path: "/tmp/f.txt"}) {
		t.Errorf("got %+v", m)
	}
	r.says(line{Message: &Message{ID: "2", Text: "more"}})
	c.confirmUpTo(next)
	if l, ok := r.hears(); !ok || l.Accepted != "1" {
		t.Errorf("it heard %+v", l)
	}
	if list, _ := polled(t, c, next); len(list) != 1 || list[0].Text != "more" {
		t.Errorf("then %+v", list)
	}
}

// TestPollEndsWithItsContext checks that Poll returns when its context ends.
func TestPollEndsWithItsContext(t *testing.T) {
	c, _ := listen(t, DefaultLimits())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, next, err := c.Poll(ctx, "x"); !errors.Is(err, context.Canceled) || len(list) > 0 || next != "x" {
		t.Errorf("%v, %q, %v", list, next, err)
	}
}

// TestSendWaitsForThePhone checks that Send waits for the phone and for its confirmation.
func TestSendWaitsForThePhone(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	id := ContactID("alice", aliceToken)
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := send(t.Context(), c, channel.Outbound{
		Chat: id, Text: "hello", Key: "k1", ReplyTo: "1", Buttons: []channel.Button{{Label: "ok", Data: "1"}},
		File: &channel.File{Name: "a.txt", Path: file},
	})
	r := alice(t, path)
	l, ok := r.hears()
	if !ok || l.Send == nil {
		t.Fatalf("it heard %+v", l)
	}
	if a := *l.Send; a.Key != "k1" || a.Text != "hello" || a.ReplyTo != "1" || len(a.Buttons) != 1 || a.File != "a.txt" ||
		string(a.Content) != "content" {
		t.Errorf("it was sent %+v", a)
	}
	select {
	case s := <-done:
		t.Fatalf("it is sent before the phone said so: %+v", s)
	default:
	}
	r.says(line{Got: "k1"})
	if s := <-done; s.err != nil || s.id != "k1" {
		t.Errorf("%+v", s)
	}
}

// TestSendWithoutAPhone checks that a message without a phone was certainly not sent. After it was
// written, the result is unknown.
func TestSendWithoutAPhone(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	id := ContactID("alice", aliceToken)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Send(ctx, channel.Outbound{Chat: id, Key: "k"}); !errors.Is(err, channel.ErrNotSent) {
		t.Errorf("without a phone: %v", err)
	}
	if _, err := c.Send(t.Context(), channel.Outbound{Chat: id, Key: "k",
		File: &channel.File{Path: "/nowhere"}}); !errors.Is(err, channel.ErrNotSent) {
		t.Errorf("with a file that is not there: %v", err)
	}
	if err := c.Typing(t.Context(), id); !errors.Is(err, channel.ErrNotSent) {
		t.Errorf("typing to nobody: %v", err)
	}
	r := alice(t, path)
	ctx, cancel = context.WithCancel(t.Context())
	done := send(ctx, c, channel.Outbound{Chat: id, Key: "k"})
	if l, ok := r.hears(); !ok || l.Send == nil {
		t.Fatalf("it heard %+v", l)
	}
	cancel()
	if s := <-done; s.err == nil || errors.Is(s.err, channel.ErrNotSent) {
		t.Errorf("after it was written: %v", s.err)
	}
}

// TestAPhoneThatGoesAway checks an unconfirmed message. A phone that remembers keys gets it again.
// Otherwise the result is unknown.
func TestAPhoneThatGoesAway(t *testing.T) {
	for name, dedupes := range map[string]bool{"knows keys": true, "does not": false} {
		t.Run(name, func(t *testing.T) {
			limits := DefaultLimits()
			limits.Dedupes = dedupes
			c, path := listen(t, limits)
			first := alice(t, path)
			done := send(t.Context(), c, channel.Outbound{Chat: ContactID("alice", aliceToken), Text: "hello", Key: "k"})
			if l, ok := first.hears(); !ok || l.Send == nil {
				t.Fatalf("it heard %+v", l)
			}
			_ = first.Close()
			if !dedupes {
				if s := <-done; s.err == nil || errors.Is(s.err, channel.ErrNotSent) {
					t.Errorf("%+v", s)
				}
				return
			}
			second := alice(t, path)
			if l, ok := second.hears(); !ok || l.Send == nil || l.Send.Key != "k" {
				t.Fatalf("it heard %+v", l)
			}
			second.says(line{Got: "k"})
			if s := <-done; s.err != nil {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestEditAndTyping checks that an edit names the message that it replaces, and that each edit has
// its own key.
func TestEditAndTyping(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	id := ContactID("alice", aliceToken)
	r := alice(t, path)
	keys := map[string]bool{}
	for _, text := range []string{"one", "two"} {
		done := make(chan error, 1)
		go func() { done <- c.Edit(t.Context(), "k", channel.Outbound{Chat: id, Text: text, Key: "q"}) }()
		l, ok := r.hears()
		if !ok || l.Send == nil || l.Send.Edits != "k" || l.Send.Text != text {
			t.Fatalf("it heard %+v", l)
		}
		keys[l.Send.Key] = true
		r.says(line{Got: l.Send.Key})
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if len(keys) != 2 {
		t.Errorf("the keys are %v", keys)
	}
	if err := c.Typing(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if l, ok := r.hears(); !ok || !l.Typing {
		t.Errorf("it heard %+v", l)
	}
}

// TestRefuse checks that the phone learns the reason and that Poll does not return the message
// again.
func TestRefuse(t *testing.T) {
	c, path := listen(t, DefaultLimits())
	r := alice(t, path)
	r.says(line{Message: &Message{ID: "1", Text: "no"}})
	list, _ := polled(t, c, "")
	c.Refuse(list[0], &channel.ConflictError{ID: "1", Recorded: "a", Given: "b"})
	if l, ok := r.hears(); !ok || l.Refused == nil || l.Refused.ID != "1" ||
		!strings.Contains(l.Refused.Error, "sha256 a is recorded, b was given") {
		t.Errorf("it heard %+v", l)
	}
	r.says(line{Message: &Message{ID: "2", Text: "yes"}})
	if list, _ := polled(t, c, ""); len(list) != 1 || list[0].Text != "yes" {
		t.Errorf("then %+v", list)
	}
}
