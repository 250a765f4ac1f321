// Package webhook is a channel over HTTP. It receives messages and posts replies to an address. It serves every
// platform that has a gateway.
//
// A message is accepted (202) only after the caller of Poll has stored it. The request therefore waits for a Poll with
// a cursor after its message, because such a cursor proves that the message was stored. Otherwise the request gets 503,
// and the sender repeats it. Posted replies are signed in the same way as received messages, and posted once for each
// Send. A received message must have a signature that was made with the shared secret in the last five minutes. The
// package refuses redirects and, by default, addresses of other machines.
//
// A message's id is its idempotency key. A sender repeats a message until it gets 202. The caller
// knows the ids of its messages and recognises a repetition.
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
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// These are the headers of a signed request.
const (
	TimestampHeader = "Perlica-Timestamp" // seconds since 1970
	SignatureHeader = "Perlica-Signature" // "v1=" and HMAC-SHA256 in hex
	KeyHeader       = "Idempotency-Key"
)

// DefaultListen is the address for received messages if Options names none.
const DefaultListen = "127.0.0.1:8787"

const (
	minSecret       = 16 // bytes
	window          = 5 * time.Minute
	defaultMaxBody  = 1 << 20
	defaultHandover = 20 * time.Second
	defaultTimeout  = 30 * time.Second
	maxWaiting      = 256 // requests that wait for Poll; further ones must come again
)

// Options configures a webhook.
type Options struct {
	Listen   string         // host:port, or empty for DefaultListen
	ReplyURL string         // the address for replies
	Secret   channel.Secret // at least 16 bytes
	// AllowRemote lets other machines send messages, and lets replies go to another machine without
	// TLS.
	AllowRemote bool
	Dedupes     bool           // the receiver of replies remembers the keys
	Buttons     bool           // the receiver shows buttons
	Format      channel.Format // the format of replies; empty means Markdown
	Text        int            // longest text of the receiver; 0 means any
	MaxBody     int64          // limit of a request, in bytes; 0 means 1 MiB
	Files       string         // the private folder of received files; empty means that files are refused
	// Accept reports whether a contact's files are stored. nil accepts all contacts. A stranger
	// should not be able to fill the disk.
	Accept   func(contact string) bool
	Handover time.Duration // time for which a request waits for Poll; 0 means 20 s
	Timeout  time.Duration // time limit of posting a reply; 0 means 30 s
	Client   *http.Client  // nil means a new client. CheckRedirect is ignored
}

// Channel is a webhook. Its methods may be called from several goroutines, except Poll, which one
// goroutine calls at a time.
type Channel struct {
	opt    Options
	client *http.Client
	server *http.Server
	addr   net.Addr
	served chan error // the result of the serving goroutine
	now    func() time.Time
	epoch  string // identifies this process in cursors

	closed chan struct{}
	once   sync.Once
	err    error // the error of Close

	mu      sync.Mutex
	waiting []*handover           // in the order of arrival
	last    int64                 // the number of the last event
	first   channel.Recent[int64] // the first attempt of each message that was not accepted
	sent    channel.Recent[sending]
	arrived chan struct{} // closed and replaced when a message arrives
}

// handover is a message with a waiting request.
type handover struct {
	number  int64
	came    int64 // the number of its first attempt
	message channel.Inbound
	taken   chan struct{} // closed when the caller has or refuses the message
	refused error         // set before taken is closed
}

var _ interface {
	channel.Channel
	channel.Editor
} = (*Channel)(nil)

// Open starts to listen for messages. Close ends the listening.
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
	mux.HandleFunc("POST /messages", c.takeMessage)
	c.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second, IdleTimeout: time.Minute,
		WriteTimeout: 20*time.Second + c.opt.Handover + 10*time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // strangers could fill a log
	}
	go func() { c.served <- c.server.Serve(l) }() // Close joins this goroutine
	return c, nil
}

// Check returns the fault of options, as far as it is known without listening.
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
		return nil, fmt.Errorf("%s is not an address of this machine alone, and listening on others is not allowed",
			opt.Listen)
	}
	u, err := url.Parse(opt.ReplyURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("the reply URL is no http address") // the text may contain a secret
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

// Name returns "webhook".
func (c *Channel) Name() string { return "webhook" }

// Limits returns the receiver's limits from the options.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: c.opt.Text, Buttons: c.opt.Buttons, Files: true, Format: c.opt.Format,
		Dedupes: c.opt.Dedupes}
}

// Addr returns the address for received messages.
func (c *Channel) Addr() net.Addr { return c.addr }

// Close answers the waiting requests with 503, stops listening and waits until the server has ended. A second call
// returns the same result. After Close, Poll returns [channel.ErrClosed], and sending still works.
func (c *Channel) Close() error {
	c.once.Do(func() {
		close(c.closed)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c.err = c.server.Shutdown(ctx)
		if c.err != nil { // a client does not end its request
			c.err = c.server.Close()
		}
		if err := <-c.served; !errors.Is(err, http.ErrServerClosed) {
			c.err = errors.Join(c.err, err)
		}
	})
	return c.err
}

// Sign returns the value of SignatureHeader for a body and a timestamp, both as they are sent.
func Sign(secret channel.Secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + ".")) // never fails
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// stale is the largest time by which a message may be older than the question that it answers. An older message is not
// an answer, because a gateway without a network may deliver its messages late. A few seconds do not matter, because
// clocks differ.
const stale = time.Minute

// sending records when the receiver confirmed a message.
type sending struct {
	number int64
	at     time.Time
}

// tick returns the next number. The numbers give the order of received attempts and confirmed replies.
func (c *Channel) tick() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return c.last
}

// cameFirst returns the number of a message's first attempt. If this is the first attempt, it stores the number in the
// parameter "now". The caller holds mu.
func (c *Channel) cameFirst(id string, now int64) int64 {
	if before, ok := c.first.Get(id); ok {
		return before
	}
	c.first.Put(id, now)
	return now
}

// landed records that the receiver has confirmed a posted message.
func (c *Channel) landed(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.sent.Put(id, sending{c.last, c.now()})
}

// After reports whether a waiting message came after the receiver confirmed a sent one. The first attempt of the
// waiting message counts.
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
