package push_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"code.dny.dev/ssrf"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/web/push"
	"github.com/perlica/perlica/service/web/push/pushtest"
)

// longest limits the wait for an expected event. It is long because a loaded machine is slow.
const longest = 2 * time.Minute

// trail is a debug trail that a test reads.
type trail struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (tr *trail) Write(b []byte) (int, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.text.Write(b)
	select {
	case tr.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (tr *trail) has(t *testing.T, want string) string {
	t.Helper()
	late := time.After(longest)
	for {
		tr.mu.Lock()
		text := tr.text.String()
		tr.mu.Unlock()
		if strings.Contains(text, want) {
			return text
		}
		select {
		case <-tr.more:
		case <-late:
			t.Fatalf("no %q in the trail: %s", want, text)
		}
	}
}

// world returns a sender with a stand-in, a folder and a trail.
func world(t *testing.T, change ...func(*push.Options)) (*push.Sender, *pushtest.Service, string, *trail) {
	t.Helper()
	service := pushtest.New()
	t.Cleanup(service.Close)
	tr := &trail{more: make(chan struct{}, 1)}
	opt := push.Options{Dir: filepath.Join(t.TempDir(), "push"), Gap: time.Nanosecond, Transport: service.Transport(),
		Trail: slog.New(slog.NewTextHandler(tr, nil))}
	for _, f := range change {
		f(&opt)
	}
	s := push.New(opt)
	t.Cleanup(s.Close)
	return s, service, opt.Dir, tr
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func next(t *testing.T, s *pushtest.Service) pushtest.Message {
	t.Helper()
	select {
	case m := <-s.Messages:
		return m
	case err := <-s.Wrong:
		t.Fatalf("a wrong message: %v", err)
	case <-time.After(longest):
		t.Fatal("no message")
	}
	return pushtest.Message{}
}

// TestMessage checks that a push service identifies the sender and that the browser reads the text.
// The text says only that a question waits.
func TestMessage(t *testing.T) {
	s, service, dir, _ := world(t, func(o *push.Options) {
		o.Due = func(context.Context, string) (time.Duration, bool) { return 90 * time.Minute, true }
	})
	check(t, s.Subscribe("phone", service.Subscribe()))
	key, err := s.Key()
	check(t, err)
	s.Wake("phone")
	s.Wake("another")
	want := pushtest.Message{Text: "a question waits", TTL: "5400", Topic: "question", Urgency: "high", Key: key,
		Subscriber: "https://github.com/perlica/perlica"}
	if got := next(t, service); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, name := range []string{"key", "phone.json"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || os.PathSeparator == '/' &&
			info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	other := push.New(push.Options{Dir: dir})
	defer other.Close()
	if again, err := other.Key(); again != key || err != nil {
		t.Errorf("another process has the key %q, %v", again, err)
	}
}

// TestOneKey checks that several simultaneous senders use the same key.
func TestOneKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "push")
	keys := make([]string, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			s := push.New(push.Options{Dir: dir})
			defer s.Close()
			keys[i], _ = s.Key() // after an error the key is empty, and the comparison fails
		})
	}
	all.Wait()
	for _, k := range keys {
		if k == "" || k != keys[0] {
			t.Fatalf("the keys are %q", keys)
		}
	}
}

// TestCollapse checks that all requests during a message become one further message. No caller
// waits.
func TestCollapse(t *testing.T) {
	s, service, _, _ := world(t)
	held, release := make(chan struct{}, 100), make(chan struct{})
	service.SetAnswer(func(*http.Request) int {
		held <- struct{}{}
		<-release
		return 0
	})
	check(t, s.Subscribe("phone", service.Subscribe()))
	s.Wake("phone")
	<-held
	for range 50 {
		s.Wake("phone")
	}
	close(release)
	next(t, service)
	next(t, service)
	s.Close() // a sent message cannot be recalled
	if n := len(service.Messages); n != 0 {
		t.Errorf("%d messages more", n)
	}
	s.Wake("phone") // a closed sender sends nothing
}

// TestHanging checks that a hanging push service delays neither Close nor another device's message.
func TestHanging(t *testing.T) {
	s, service, _, _ := world(t)
	held, gone := make(chan struct{}), make(chan struct{})
	slow := service.Subscribe()
	service.SetAnswer(func(r *http.Request) int {
		if strings.HasSuffix(slow.Endpoint, r.URL.Path) {
			close(held)
			<-gone
		}
		return 0
	})
	defer close(gone)
	check(t, s.Subscribe("slow", slow))
	check(t, s.Subscribe("phone", service.Subscribe()))
	s.Wake("slow")
	<-held
	s.Wake("phone")
	next(t, service)
	s.Close()
}

// TestGone checks that exactly the subscriptions that their service no longer knows are removed.
// The trail reports it without the address.
func TestGone(t *testing.T) {
	for status, kept := range map[int]bool{404: false, 410: false, 429: true, 500: true, 307: true, 302: true} {
		s, service, dir, tr := world(t)
		asked := make(chan string, 10)
		service.SetAnswer(func(r *http.Request) int {
			asked <- r.URL.Path
			return status
		})
		sub := service.Subscribe()
		check(t, s.Subscribe("phone", sub))
		s.Wake("phone")
		text := tr.has(t, pushtest.Host+": the ")
		if !strings.Contains(text, strconv.Itoa(status)) && status != http.StatusTooManyRequests ||
			strings.Contains(text, "/send/") {
			t.Errorf("%d: the trail: %s", status, text)
		}
		s.Close()
		if _, err := os.Stat(filepath.Join(dir, "phone.json")); errors.Is(err, fs.ErrNotExist) == kept {
			t.Errorf("%d: got %v; want errors.Is(err, fs.ErrNotExist) != kept", status, err)
		}
		if n := len(asked); n != 1 {
			t.Errorf("%d: %d requests: neither a redirect is followed nor anything sent again", status, n)
		}
	}
}

// TestSend checks the reply of a message and the kinds of its errors. A refused message is sent once, and the error has
// no address. A device without a subscription gets nothing.
func TestSend(t *testing.T) {
	s, service, _, _ := world(t)
	status := make(chan int, 1)
	service.SetAnswer(func(*http.Request) int { return <-status })
	check(t, s.Subscribe("phone", service.Subscribe()))
	text := strings.Repeat("x", push.MaxText)
	send := func(answer int) (string, error) {
		status <- answer
		return s.Send(t.Context(), "phone", push.Message{Text: []byte(text), Topic: "one", Kept: time.Hour})
	}
	reply, err := send(0)
	if got := next(t, service); err != nil || reply != "201 Created" || got.Text != text || got.Topic != "one" ||
		got.Urgency != "normal" || got.TTL != "3600" {
		t.Errorf("%q, %v, %d bytes, %q %q %q", reply, err, len(got.Text), got.Topic, got.Urgency, got.TTL)
	}
	limit, refused := (*channel.RateLimitError)(nil), (*channel.RejectedError)(nil)
	if _, err = send(429); !errors.As(err, &limit) {
		t.Errorf("429 is %v", err)
	}
	if _, err = send(500); err == nil || errors.Is(err, channel.ErrNotSent) || errors.As(err, &refused) {
		t.Errorf("500 is %v, and must be unknown", err)
	}
	if _, err = send(410); !errors.As(err, &refused) || strings.Contains(err.Error(), "/send/") {
		t.Errorf("410 is %v", err)
	}
	check(t, s.Subscribe("phone", service.Subscribe()))
	long := push.Message{Text: bytes.Repeat([]byte("x"), 2*push.MaxText)}
	if _, err = s.Send(t.Context(), "phone", long); !errors.Is(err, channel.ErrNotSent) || len(status) > 0 {
		t.Errorf("a text that is too long: %v", err)
	}
	check(t, s.Unsubscribe("phone"))
	refused = nil
	if _, err = s.Send(t.Context(), "phone", push.Message{}); !errors.As(err, &refused) || len(status) > 0 {
		t.Errorf("without a subscription: %v", err)
	}
}

// TestNotDue checks that a device is not woken if no question is due for it.
func TestNotDue(t *testing.T) {
	asked := make(chan string, 2)
	s, service, _, _ := world(t, func(o *push.Options) {
		o.Due = func(_ context.Context, device string) (time.Duration, bool) {
			asked <- device
			return time.Hour, false
		}
	})
	check(t, s.Subscribe("phone", service.Subscribe()))
	s.Wake("phone")
	<-asked
	s.Close()
	if len(service.Messages)+len(service.Wrong) > 0 {
		t.Error("it was sent")
	}
}

// TestAddresses checks that only public addresses are dialled, in every notation and for every
// resolved name.
func TestAddresses(t *testing.T) {
	_, service, _, _ := world(t)
	dial := push.Public(t)
	for _, host := range []string{
		"127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
		"169.254.170.2",
		"100.64.0.1", "100.100.100.200", "192.0.0.192", "168.63.129.16", "198.18.0.1", "192.0.2.1", "224.0.0.1", "240.0.0.1",
		"255.255.255.255",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:a00:1]", "[::127.0.0.1]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]",
		"[fec0::1]", "[ff02::1]",
		"[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2001::1]", "[2001:db8::1]", "[100::1]",
		// A name is checked when it is dialled, so a rebound name is refused, too.
		"localhost",
	} {
		sub := service.Subscribe()
		sub.Endpoint = strings.Replace(sub.Endpoint, pushtest.Host, host, 1)
		s := push.New(push.Options{Dir: t.TempDir()})
		if err := s.Subscribe("phone", sub); host != "localhost" && !errors.Is(err, push.ErrSubscription) {
			t.Errorf("%s is taken as a subscription's: %v", host, err)
		}
		s.Close()
		conn, err := dial(t.Context(), "tcp", host+":443")
		if conn != nil {
			_ = conn.Close()
		}
		var op *net.OpError
		if !errors.Is(err, ssrf.ErrProhibitedIP) && !(errors.As(err, &op) && op.Op == "dial" &&
			strings.HasPrefix(host, "[fe80")) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := dial(t.Context(), "tcp", "127.0.0.1:80"); !errors.Is(err, ssrf.ErrProhibitedPort) {
		t.Errorf("port 80: %v", err)
	}
}

// TestSubscription checks that an invalid subscription is refused.
func TestSubscription(t *testing.T) {
	s, service, dir, _ := world(t)
	for name, change := range map[string]func(*push.Subscription){
		"plain http":   func(sub *push.Subscription) { sub.Endpoint = strings.Replace(sub.Endpoint, "https", "http", 1) },
		"a port":       func(sub *push.Subscription) { sub.Endpoint = "https://example.com:8443/x" },
		"a user":       func(sub *push.Subscription) { sub.Endpoint = "https://u:p@example.com/x" },
		"no host":      func(sub *push.Subscription) { sub.Endpoint = "https:///x" },
		"a file":       func(sub *push.Subscription) { sub.Endpoint = "file:///etc/passwd" },
		"a line":       func(sub *push.Subscription) { sub.Endpoint = "https://example.com/\r\nX: y" },
		"long":         func(sub *push.Subscription) { sub.Endpoint += strings.Repeat("x", 3000) },
		"no point":     func(sub *push.Subscription) { sub.Keys.P256dh = "B" + strings.Repeat("A", 86) },
		"short secret": func(sub *push.Subscription) { sub.Keys.Auth = "AAAA" },
	} {
		sub := service.Subscribe()
		change(&sub)
		if err := s.Subscribe("phone", sub); !errors.Is(err, push.ErrSubscription) {
			t.Errorf("%s: got %v; want errors.Is(err, push.ErrSubscription)", name, err)
		}
	}
	if list, err := s.Subscribed(); len(list) > 0 || err != nil {
		t.Errorf("got %v, %v; want len(list) <= 0 && err == nil", list, err)
	}
	one, two := service.Subscribe(), service.Subscribe()
	check(t, s.Subscribe("phone", one))
	check(t, s.Subscribe("phone", two))
	check(t, s.Subscribe("tablet", one))
	check(t, s.Unsubscribe("phone"))
	check(t, s.Unsubscribe("phone"))
	if list, err := s.Subscribed(); len(list) != 1 || list[0] != "tablet" || err != nil {
		t.Errorf(`got %v, %v; want len(list) == 1 && list[0] == "tablet" && err == nil`, list, err)
	}
	check(t, os.WriteFile(filepath.Join(dir, "tablet.json"), []byte("{torn"), 0o600))
	s.Wake("tablet")
	s.Close()
}
