// Package push wakes devices by Web Push where a question waits (RFC 8030, 8188, 8291 and 8292).
//
// It promises that a message says nothing but that; that it goes over https to public addresses alone,
// whatever a name resolves to and wherever an answer leads; and that nothing waits for it: at most one
// message for a device is on its way, all that comes behind it is one more, and one that fails is not
// sent again. Subscriptions and the key are files of the user's state, replaced whole; nothing of them is
// in a log. It knows no question and no request.
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

// Options of New.
type Options struct {
	Dir   string // where the key and the subscriptions are; it is made when it is needed
	Trail *slog.Logger

	// Due says for how long a question that a device is to be woken for still waits; false: it is not to
	// be woken. It is asked ahead of each message, and may wait.
	Due func(ctx context.Context, device string) (time.Duration, bool)

	Gap       time.Duration     // between two messages to a device; 0: 10 s
	Transport http.RoundTripper // a test's push service; nil: what reaches public addresses alone
}

// Sender wakes devices. Its methods may be called from several goroutines. The caller must Close it.
type Sender struct {
	opt    Options
	client *http.Client
	ctx    context.Context
	end    context.CancelFunc
	over   sync.WaitGroup

	mu    sync.Mutex // guards what follows, and the files
	lanes map[string]*lane
}

// lane is what is to be sent to a device.
type lane struct{ wanted bool }

// New returns a sender. Nothing is read or made yet.
func New(opt Options) *Sender {
	if opt.Gap == 0 {
		opt.Gap = 10 * time.Second
	}
	if opt.Transport == nil {
		opt.Transport = public()
	}
	s := &Sender{opt: opt, lanes: map[string]*lane{}, client: &http.Client{
		Transport:     opt.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends what is being sent.
func (s *Sender) Close() {
	s.end()
	s.over.Wait()
}

// azure is where virtual machines of Azure ask about themselves: the address looks like any other.
var azure = netip.MustParsePrefix("168.63.129.16/32")

// guard refuses addresses that are not public. A name cannot lead past it: it judges what is dialled.
func guard() *ssrf.Guardian {
	return ssrf.New(ssrf.WithPorts(443), ssrf.WithDeniedV4Prefixes(azure))
}

// patience is how long a push service may take for anything.
const patience = 15 * time.Second

// public reaches public addresses alone, and no proxy: which addresses that would dial cannot be judged.
func public() http.RoundTripper {
	dialer := &net.Dialer{Timeout: patience, Control: guard().Safe}
	return &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: patience, ResponseHeaderTimeout: patience,
		IdleConnTimeout: time.Minute, MaxConnsPerHost: 8, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
	}
}

// Wake has a message sent to a device, if it is subscribed. It never waits.
func (s *Sender) Wake(device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	l := s.lanes[device]
	if l == nil {
		l = &lane{}
		s.lanes[device] = l
		s.over.Go(func() { s.run(device, l) })
	}
	l.wanted = true
}

// run sends to a device until nothing more is wanted.
func (s *Sender) run(device string, l *lane) {
	for {
		s.mu.Lock()
		if !l.wanted || s.ctx.Err() != nil {
			delete(s.lanes, device)
			s.mu.Unlock()
			return
		}
		l.wanted = false
		s.mu.Unlock()
		sent, err := s.message(device)
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

// What a message is: all that it says, the name under which a newer one replaces one that was not
// delivered, and who push services may turn to.
const (
	message = "a question waits"
	topic   = "question"
	contact = "https://github.com/perlica/perlica"
)

// A StatusError is an answer of a push service that is no success.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return fmt.Sprintf("the push service answered %d %s", e.Status, http.StatusText(e.Status))
}

// message sends one message, if one is due. The address of a subscription is a secret: an error names
// its host alone.
func (s *Sender) message(device string) (sent bool, err error) {
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
	err = s.post(ctx, sub, waits)
	var status *StatusError
	if errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusGone) {
		err = errors.Join(err, s.gone(device, sub))
	}
	if u, perr := url.Parse(sub.Endpoint); err != nil && perr == nil {
		err = fmt.Errorf("%s: %w", u.Host, err)
	}
	return true, err
}

// post makes the one request of a message.
func (s *Sender) post(ctx context.Context, sub Subscription, waits time.Duration) error {
	private, public, err := s.keys()
	if err != nil {
		return err
	}
	res, err := webpush.SendNotificationWithContext(ctx, []byte(message), &webpush.Subscription{
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
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10) // so that the connection is good for the next
	_ = res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return &StatusError{res.StatusCode}
	}
	return nil
}
