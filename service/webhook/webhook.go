// Package webhook takes messages in over HTTP and posts replies to an address, for every
// platform that has a gateway.
//
// It promises that a message is accepted (202) only when the caller of Poll has it: a request
// waits until the next Poll with a cursor behind its message, which proves that the message was
// kept; without that it gets 503 and the sender repeats. It promises that what it posts is signed
// as what it takes must be, and posted once for each Send. It refuses what is not signed with the
// shared secret within five minutes of its time, other addresses than this machine's unless told
// to, and redirects.
//
// The one idea: a message's id is its idempotency key. A sender repeats until it gets 202, and
// the caller, who knows the ids that it has, takes a repeated one as what it is.
package webhook

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// ErrClosed says that the channel was closed.
var ErrClosed = errors.New("webhook: the channel is closed")

// The headers of a signed request.
const (
	TimestampHeader = "Perlica-Timestamp" // seconds since 1970
	SignatureHeader = "Perlica-Signature" // "v1=" and HMAC-SHA256 in hex
	KeyHeader       = "Idempotency-Key"
)

// DefaultListen is where messages are taken unless Options say otherwise.
const DefaultListen = "127.0.0.1:8787"

const (
	minSecret       = 16 // bytes
	window          = 5 * time.Minute
	defaultMaxBody  = 1 << 20
	defaultHandover = 20 * time.Second
	defaultTimeout  = 30 * time.Second
	maxWaiting      = 256 // requests that wait for Poll; more are told to come again
)

// Secret is what both sides know. However it is printed, it does not show.
type Secret string

// Format writes something else than the secret, for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(secret)") }

// MarshalText writes something else than the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// LogValue is something else than the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue("(secret)") }

// Options are what a webhook needs.
type Options struct {
	Listen   string // host:port; empty: DefaultListen
	ReplyURL string // where replies are posted
	Secret   Secret // at least 16 bytes
	// AllowRemote lets others than this machine send messages, and lets replies go to another
	// machine without TLS.
	AllowRemote bool
	Dedupes     bool           // the receiver of replies knows the keys it has seen
	Buttons     bool           // the receiver shows buttons
	Format      channel.Format // of replies; empty: Markdown
	Text        int            // the longest text that the receiver takes; 0: any
	MaxBody     int64          // of a request, in bytes; 0: 1 MiB
	Files       string         // the private folder for files that come; empty: they are refused
	// Accept says whose files are kept; nil: everybody's. A stranger should not be able to fill
	// the disk.
	Accept   func(contact string) bool
	Handover time.Duration // how long a request waits for Poll; 0: 20 s
	Timeout  time.Duration // of posting a reply; 0: 30 s
	Client   *http.Client  // nil: one of its own. Its CheckRedirect is not used
}

// Channel is a webhook. Its methods may be called from several goroutines, Poll from one at a
// time.
type Channel struct {
	opt    Options
	client *http.Client
	server *http.Server
	addr   net.Addr
	served chan error // of the goroutine that serves
	now    func() time.Time
	epoch  string // of this process: a cursor of another proves nothing

	closed chan struct{}
	once   sync.Once
	err    error // of Close

	mu      sync.Mutex
	waiting []*handover           // in the order they came
	last    int64                 // the number of the last thing that happened
	first   channel.Recent[int64] // when messages that were not accepted came first
	sent    channel.Recent[sending]
	arrived chan struct{} // closed and replaced when one came
}

// handover is a message whose request waits for its answer.
type handover struct {
	number  int64
	came    int64 // the number of its first attempt
	message channel.Inbound
	taken   chan struct{} // closed when the caller has the message, or refuses it
	refused error         // set before taken is closed
}

var _ interface {
	channel.Channel
	channel.Editor
} = (*Channel)(nil)

// Open listens for messages. Close ends that.
func Open(opt Options) (*Channel, error) {
	c, err := prepare(opt)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	l, err := net.Listen("tcp", c.opt.Listen)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	c.addr = l.Addr()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /messages", c.take)
	c.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second, IdleTimeout: time.Minute,
		WriteTimeout: 20*time.Second + c.opt.Handover + 10*time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // strangers could fill it
	}
	go func() { c.served <- c.server.Serve(l) }() // Close joins it
	return c, nil
}

// Check says what is wrong with options, as far as it can be known without listening.
func Check(opt Options) error {
	if _, err := prepare(opt); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// prepare checks the options.
func prepare(opt Options) (*Channel, error) {
	if len(opt.Secret) < minSecret {
		return nil, fmt.Errorf("the secret is shorter than %d bytes", minSecret)
	}
	opt.Listen = cmp.Or(opt.Listen, DefaultListen)
	host, _, err := net.SplitHostPort(opt.Listen)
	if err != nil {
		return nil, err
	}
	if !isLoopback(host) && !opt.AllowRemote {
		return nil, fmt.Errorf("%s is not an address of this machine alone, and listening on others is not allowed", opt.Listen)
	}
	u, err := url.Parse(opt.ReplyURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("the reply URL is no http address") // it may hold a secret of its own
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) && !opt.AllowRemote {
		return nil, errors.New("replies would go to another machine without TLS, which is not allowed")
	}
	opt.Format = cmp.Or(opt.Format, channel.Markdown)
	opt.MaxBody = cmp.Or(max(opt.MaxBody, 0), defaultMaxBody)
	opt.Handover = cmp.Or(max(opt.Handover, 0), defaultHandover)
	opt.Timeout = cmp.Or(max(opt.Timeout, 0), defaultTimeout)
	return &Channel{
		opt: opt, client: channel.Client(opt.Client), served: make(chan error, 1), now: time.Now, epoch: rand.Text(),
		closed: make(chan struct{}), arrived: make(chan struct{}),
	}, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// Name is "webhook".
func (c *Channel) Name() string { return "webhook" }

// Limits are what the options say of the receiver.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: c.opt.Text, Buttons: c.opt.Buttons, Files: true, Format: c.opt.Format, Dedupes: c.opt.Dedupes}
}

// Addr is where messages are taken.
func (c *Channel) Addr() net.Addr { return c.addr }

// Close answers those who wait with 503, stops listening and waits until that is done. It may be
// called again, with the same result; afterwards Poll returns ErrClosed. Sending still works.
func (c *Channel) Close() error {
	c.once.Do(func() {
		close(c.closed)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c.err = c.server.Shutdown(ctx)
		if c.err != nil { // somebody does not end a request
			c.err = c.server.Close()
		}
		if err := <-c.served; !errors.Is(err, http.ErrServerClosed) {
			c.err = errors.Join(c.err, err)
		}
	})
	return c.err
}

// Sign is the value of SignatureHeader for a body sent at a time, both as they are sent.
func Sign(secret Secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + ".")) // never fails
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// stale is how much older than a card a message may say that it is: a gateway that was cut off may
// hand on much later what was written long before. It is no matter of seconds: clocks differ.
const stale = time.Minute

// sending is when the receiver had a message.
type sending struct {
	number int64
	at     time.Time
}

// tick numbers what happens.
func (c *Channel) tick() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return c.last
}

// cameFirst returns when a message came for the first time, if it was not accepted then. The
// caller holds mu.
func (c *Channel) cameFirst(id string, now int64) int64 {
	if before, ok := c.first.Get(id); ok {
		return before
	}
	c.first.Put(id, now)
	return now
}

// landed takes note that the receiver has a message.
func (c *Channel) landed(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.sent.Put(id, sending{c.last, c.now()})
}

// After reports whether a message that waits came behind the answer of the receiver that it has
// what was sent: for the first time, however often it was repeated.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	card, ok := c.sent.Get(sent)
	if !ok || m.Sent.Before(card.at.Add(-stale)) {
		return false
	}
	for _, h := range c.waiting {
		if h.message.ID == m.ID {
			return h.came > card.number
		}
	}
	return false
}
