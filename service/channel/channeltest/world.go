package channeltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// patience limits the wait for an expected event.
const patience = 2 * time.Minute

// world is a platform, a person, and a bot of this process.
type world struct {
	t     *testing.T
	s     Subject
	p     Platform
	ada   Person
	files string
	codes []string // the texts for which words has returned a code
	*bot
}

// bot is a channel and its caller.
type bot struct {
	w *world
	channel.Channel
	cursor string
	seen   map[string]channel.Inbound // the messages of all polls by their ids
}

// start starts a platform and a bot. The bot has polled once if an empty cursor means "from now on".
func start(t *testing.T, s Subject) *world {
	t.Helper()
	w := &world{t: t, s: s, p: s.Start(t), files: filepath.Join(t.TempDir(), "files")}
	w.ada = w.p.Join("Ada")
	w.bot = w.dial("")
	return w
}

// dial starts a bot with a cursor.
func (w *world) dial(cursor string) *bot {
	w.t.Helper()
	ch, err := w.s.Dial(w.p.Address(), w.files)
	if err != nil {
		w.t.Fatal(err)
	}
	b := &bot{w: w, Channel: ch, cursor: cursor, seen: map[string]channel.Inbound{}}
	w.t.Cleanup(b.end)
	return b
}

// end closes the channel, as the end of its process does.
func (b *bot) end() {
	if c, ok := b.Channel.(io.Closer); ok {
		if err := c.Close(); err != nil {
			b.w.t.Errorf("closing the channel: %v", err)
		}
	}
}

// restart ends the bot and starts another one with the same cursor.
func (w *world) restart() {
	w.t.Helper()
	w.end()
	w.bot = w.dial(w.cursor)
}

// patient returns a context that ends long after the expected event.
func (w *world) patient() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

// write lets Ada write a text.
func (w *world) write(text string) (id string) { return w.p.Write(w.ada, Message{Text: w.words(text)}) }

// words returns a text as Ada can write it. On a platform without texts it is a pairing code.
func (w *world) words(text string) string {
	if _, lacks := w.s.Lacks[Texts]; !lacks {
		return text
	}
	i := slices.Index(w.codes, text)
	if i < 0 {
		i = len(w.codes)
		w.codes = append(w.codes, text)
	}
	const first = 100_000
	return strconv.Itoa(first + i)
}

// closes checks that Close ends the Poll of a channel with ErrClosed. Without the method Close, the end of the context
// ends the Poll.
func (w *world) closes(ch channel.Channel, cursor string, running <-chan struct{}) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.patient())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			_, cursor, err = ch.Poll(ctx, cursor)
		}
		done <- err
	}()
	select {
	case <-running:
	case err := <-done:
		w.t.Fatalf("Poll has ended: %v", err)
	}
	want := context.Canceled
	if c, ok := ch.(io.Closer); ok {
		want = channel.ErrClosed
		if err := c.Close(); err != nil {
			w.t.Error(err)
		}
	} else {
		cancel()
	}
	if err := <-done; !errors.Is(err, want) {
		w.t.Errorf("the Poll ended with %v, want %v", err, want)
	}
}

// port matches a free port of the system.
var port = regexp.MustCompile(`\b\d{5}\b`)

// silent starts a server that answers nothing. It returns the address of a platform with the ports of this server, and
// a channel that is closed by the first connection.
func silent(t *testing.T, platform string) (address string, connected <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			if n == 0 {
				close(first)
			}
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	_, number, _ := net.SplitHostPort(l.Addr().String()) // the address was parsed before
	return port.ReplaceAllString(platform, number), first
}

// pollOnce polls once. If "record" is true, the next Poll gets the new cursor, as after a recording of the messages.
func (b *bot) pollOnce(record bool) ([]channel.Inbound, error) {
	b.w.t.Helper()
	list, next, err := b.Poll(b.w.patient(), b.cursor)
	b.w.clean(err)
	if err != nil {
		if len(list) > 0 || next != b.cursor {
			b.w.t.Errorf("Poll returns %d messages and the cursor %q with the error %v", len(list), next, err)
		}
		return nil, err
	}
	for _, m := range list {
		if old, ok := b.seen[m.ID]; ok && (old.Text != m.Text || old.Button != m.Button) {
			b.w.t.Errorf("the id %q has the texts %q and %q", m.ID, old.Text, m.Text)
		}
		b.seen[m.ID] = m
	}
	if record {
		b.cursor = next
	}
	return list, nil
}

// until polls until the message with the id arrives. It returns this message and all messages of these polls. If
// "mayFail" is false, an error ends the test.
func (b *bot) until(id string, mayFail bool) (m channel.Inbound, all []channel.Inbound) {
	b.w.t.Helper()
	for begin := time.Now(); time.Since(begin) < patience; {
		list, err := b.pollOnce(true)
		if err != nil && !mayFail {
			b.w.t.Fatal(err)
		}
		all = append(all, list...)
		if i := slices.IndexFunc(list, func(m channel.Inbound) bool { return m.ID == id }); i >= 0 {
			return list[i], all
		}
	}
	b.w.t.Fatalf("the message %q never came; got %+v", id, all)
	return m, nil
}

// receives returns the message with the id.
func (w *world) receives(id string) channel.Inbound {
	w.t.Helper()
	m, _ := w.until(id, false)
	return m
}

// sends sends a message to Ada and returns it as the platform has it.
func (w *world) sends(m channel.Outbound) (id string, sent Sent) {
	w.t.Helper()
	m.Chat = w.ada.Chat
	if m.Key == "" {
		m.Key = fmt.Sprint("key", len(w.p.Sent()))
	}
	id, err := w.Send(w.patient(), m)
	if err != nil {
		w.t.Fatal(err)
	}
	list := w.p.Sent()
	if len(list) == 0 {
		w.t.Fatal("the platform has no message")
	}
	return id, list[len(list)-1]
}

// message returns the current form of a message of the bot.
func (w *world) message(id string) Sent {
	w.t.Helper()
	list := w.p.Sent()
	i := slices.IndexFunc(list, func(m Sent) bool { return m.ID == id })
	if i < 0 {
		w.t.Fatalf("the platform has no message %q; it has %+v", id, list)
	}
	return list[i]
}

// clean fails the test if an error shows a secret.
func (w *world) clean(err error) {
	w.t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, secret := range w.s.Secrets {
			if text := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(text, secret) {
				w.t.Errorf("a secret shows in %s", text)
			}
		}
	}
}

// kind is the kind of an error of Send.
type kind string

const (
	sent     kind = "sent"
	notSent  kind = "not sent"
	rejected kind = "rejected"
	unknown  kind = "unknown"
)

// kindOf returns the kind of an error.
func kindOf(err error) kind {
	var no *channel.RejectedError
	switch {
	case err == nil:
		return sent
	case errors.As(err, &no):
		return rejected
	case errors.Is(err, channel.ErrNotSent):
		return notSent
	}
	return unknown
}

// temp makes a file.
func (w *world) temp(data []byte) string {
	w.t.Helper()
	name := filepath.Join(w.t.TempDir(), "file")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return name
}
