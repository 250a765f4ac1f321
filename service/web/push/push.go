// Package push wakes devices by Web Push when a question waits (RFC 8030, 8188, 8291 and 8292).
//
// A message says only that a question waits. It goes over https and only to public addresses. This also holds for the
// results of name lookups and redirects. No caller waits for a message. One message for a device is sent at a time, and
// all requests in the meantime become one further message. A failed message is not sent again. Subscriptions and the
// key are files of the user's state. Each is replaced as a whole, and no log contains them. The package knows neither
// questions nor requests.
//
// Each device with a wanted message has one goroutine. Sender.over counts these goroutines, and
// Close joins them.
package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"code.dny.dev/ssrf"
	webpush "github.com/SherClockHolmes/webpush-go"
)

// Options configures New.
type Options struct {
	Dir   string // the folder of the key and the subscriptions; it is made on demand
	Trail *slog.Logger

	// Due decides whether a device must be woken for an open question, and returns the time for which that question
	// stays open. ok is false if the device needs no message. The sender calls Due before each message, and Due may
	// wait.
	Due func(ctx context.Context, device string) (time.Duration, bool)

	// Gap is the pause between two messages to a device. 0 means 10 s.
	Gap time.Duration
	// Transport sends the messages. If it is nil, only public addresses are reached.
	Transport http.RoundTripper
}

// Sender wakes devices. Its methods may be called from several goroutines. The caller must Close
// it.
type Sender struct {
	opt    Options
	client *http.Client
	ctx    context.Context
	end    context.CancelFunc
	over   sync.WaitGroup

	mu         sync.Mutex // guards deliveries and the files
	deliveries map[string]*delivery
}

// delivery says whether a device needs a further message after the message that is being sent.
type delivery struct{ wanted bool }

// New returns a sender. It reads and makes no file yet.
func New(opt Options) *Sender {
	if opt.Gap == 0 {
		opt.Gap = 10 * time.Second
	}
	if opt.Transport == nil {
		opt.Transport = public()
	}
	s := &Sender{opt: opt, deliveries: map[string]*delivery{}, client: &http.Client{
		Transport:     opt.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Close cancels the messages that are being sent.
func (s *Sender) Close() {
	s.end()
	s.over.Wait()
}

// azure is the metadata service of Azure's virtual machines. Its address looks like a public one.
var azure = netip.MustParsePrefix("168.63.129.16/32")

// guard refuses addresses that are not public. It checks the dialled address, so a name cannot
// avoid the check.
func guard() *ssrf.Guardian {
	return ssrf.New(ssrf.WithPorts(443), ssrf.WithDeniedV4Prefixes(azure))
}

// patience limits each step of a push service.
const patience = 15 * time.Second

// public returns a transport that reaches only public addresses. It uses no proxy, because the
// addresses that a proxy dials cannot be checked.
func public() http.RoundTripper {
	dialer := &net.Dialer{Timeout: patience, Control: guard().Safe}
	return &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: patience,
		ResponseHeaderTimeout: patience,
		IdleConnTimeout:       time.Minute, MaxConnsPerHost: 8, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
	}
}

// Wake requests a message to a device if the device is subscribed. It never blocks.
func (s *Sender) Wake(device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	l := s.deliveries[device]
	if l == nil {
		l = &delivery{}
		s.deliveries[device] = l
		s.over.Go(func() { s.deliver(device, l) })
	}
	l.wanted = true
}

// deliver sends messages to a device until no further one is wanted.
func (s *Sender) deliver(device string, l *delivery) {
	for {
		s.mu.Lock()
		if !l.wanted || s.ctx.Err() != nil {
			delete(s.deliveries, device)
			s.mu.Unlock()
			return
		}
		l.wanted = false
		s.mu.Unlock()
		sent, err := s.sendMessage(device)
		if err != nil && s.ctx.Err() == nil && s.opt.Trail != nil {
			s.opt.Trail.Warn("push", "device", device, "err", err)
		}
		if !sent {
			continue
		}
		gap := time.NewTimer(s.opt.Gap)
		select {
		case <-gap.C:
		case <-s.ctx.Done():
			gap.Stop()
		}
	}
}

// words is the whole text of a message. A newer message with the same topic replaces an undelivered one. contact is the
// address that each message gives to the operators of the push service.
const (
	words   = "a question waits"
	topic   = "question"
	contact = "https://github.com/perlica/perlica"
)

// A statusError is an unsuccessful answer of a push service.
type statusError struct{ Status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the push service answered %d %s", e.Status, http.StatusText(e.Status))
}

// sendMessage sends one message if one is due. The address of a subscription is a secret, so an
// error names only its host.
func (s *Sender) sendMessage(device string) (sent bool, err error) {
	sub, err := s.subscription(device)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	waits, due := time.Hour, true
	if s.opt.Due != nil {
		waits, due = s.opt.Due(s.ctx, device)
	}
	if !due {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	err = s.postMessage(ctx, sub, waits)
	var status *statusError
	if errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusGone) {
		err = errors.Join(err, s.gone(device, sub))
	}
	if u, perr := url.Parse(sub.Endpoint); err != nil && perr == nil {
		err = fmt.Errorf("%s: %w", u.Host, err)
	}
	return true, err
}

// postMessage makes the one request of a message.
func (s *Sender) postMessage(ctx context.Context, sub Subscription, waits time.Duration) error {
	private, public, err := s.keys()
	if err != nil {
		return err
	}
	res, err := webpush.SendNotificationWithContext(ctx, []byte(words), &webpush.Subscription{
		Endpoint: sub.Endpoint, Keys: webpush.Keys{P256dh: sub.Keys.P256dh, Auth: sub.Keys.Auth},
	}, &webpush.Options{
		HTTPClient: s.client, Subscriber: contact, Topic: topic, Urgency: webpush.UrgencyHigh,
		TTL: int(min(max(waits, time.Minute), 24*time.Hour).Seconds()), VAPIDPrivateKey: private, VAPIDPublicKey: public,
	})
	if with := (*url.Error)(nil); errors.As(err, &with) {
		return with.Err // without the address
	}
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10) // reading the rest lets the next message reuse the connection
	_ = res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return &statusError{res.StatusCode}
	}
	return nil
}
