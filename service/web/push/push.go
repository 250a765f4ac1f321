// Package push sends messages to devices by Web Push (RFC 8030, 8188, 8291 and 8292).
//
// A message goes over https and only to public addresses. This also holds for the results of name lookups and
// redirects. Subscriptions and the key are files of the user's state. Each is replaced as a whole, and no log contains
// them. The package knows neither questions nor requests.
//
// Send sends one message and returns the reply. Wake sends a message that says only that a question waits, and returns
// at once. While a message of Wake to a device is under way, all further calls for the device become one later message.
// Neither Send nor Wake sends a failed message again.
//
// Each device with a wanted message has one goroutine. Sender.over counts these goroutines, and
// Close joins them.
package push

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/perlica/perlica/service/channel"
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

// Sender sends messages to devices. Its methods may be called from several goroutines. A caller of Wake must Close it.
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

// Message is a message to a device. Only the device can read its text.
type Message struct {
	Text []byte // at most MaxText bytes
	// Topic is readable for the push service. A message replaces an undelivered one with the same topic.
	Topic string
	Kept  time.Duration // the time for which the push service keeps the message for a device without a network
	// Urgent means that the message also wakes a device that saves power.
	Urgent bool
}

// MaxText is the longest text of a message, in bytes.
const MaxText = 3900

// question is the message of Wake.
var question = Message{Text: []byte("a question waits"), Topic: "question", Urgent: true}

// contact is the address that each message gives to the operators of the push service.
const contact = "https://github.com/perlica/perlica"

// sendMessage sends one message if one is due.
func (s *Sender) sendMessage(device string) (sent bool, err error) {
	sub, err := s.subscription(device)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m := question
	m.Kept = time.Hour
	if s.opt.Due != nil {
		kept, due := s.opt.Due(s.ctx, device)
		if !due {
			return false, nil
		}
		m.Kept = kept
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	_, err = s.post(ctx, device, sub, m)
	return true, err
}

// Send sends one message to a subscribed device, and returns the reply of its push service. Its errors have the kinds
// of channel.Channel. A device without a subscription is refused. Send removes a subscription that its push service
// does not know any longer.
func (s *Sender) Send(ctx context.Context, device string, m Message) (reply string, err error) {
	sub, err := s.subscription(device)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &channel.RejectedError{Why: "the device is not subscribed any longer"}
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", channel.ErrNotSent, err)
	}
	return s.post(ctx, device, sub, m)
}

// post makes the one request of a message. The address of a subscription is a secret, so the reply and the error name
// only its host, and not the body of the answer.
func (s *Sender) post(ctx context.Context, device string, sub Subscription, m Message) (reply string, err error) {
	private, public, err := s.keys()
	if err != nil {
		return "", fmt.Errorf("%w: %w", channel.ErrNotSent, err)
	}
	urgency := webpush.UrgencyNormal
	if m.Urgent {
		urgency = webpush.UrgencyHigh
	}
	client := &once{client: s.client}
	res, err := webpush.SendNotificationWithContext(ctx, m.Text, &webpush.Subscription{
		Endpoint: sub.Endpoint, Keys: webpush.Keys{P256dh: sub.Keys.P256dh, Auth: sub.Keys.Auth},
	}, &webpush.Options{
		HTTPClient: client, Subscriber: contact, Topic: m.Topic, Urgency: urgency,
		TTL: int(min(max(m.Kept, time.Minute), 24*time.Hour).Seconds()), VAPIDPrivateKey: private, VAPIDPublicKey: public,
	})
	if err != nil && !client.used { // for example, the text is too long
		err = fmt.Errorf("%w: %w", channel.ErrNotSent, err)
	}
	if err == nil {
		_ = res.Body.Close() // only the status matters
		reply = res.Status
		err = channel.Judge(res, []byte(http.StatusText(res.StatusCode)), rateLimitPause)
		if res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone {
			err = errors.Join(err, s.gone(device, sub))
		}
	}
	if u, perr := url.Parse(sub.Endpoint); err != nil && perr == nil {
		err = fmt.Errorf("%s: %w", u.Host, err)
	}
	return reply, err
}

// rateLimitPause is the pause before the next attempt if a push service asks for a pause without a time.
const rateLimitPause = 30 * time.Second

// once makes a request that net/http cannot repeat. Its errors have the kinds of channel.Channel.
type once struct {
	client *http.Client
	used   bool // Do was called
}

func (o *once) Do(req *http.Request) (*http.Response, error) {
	o.used = true
	req.GetBody, req.Close = nil, true
	return channel.Do(o.client, req)
}
