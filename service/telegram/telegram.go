// Package telegram carries messages over the Telegram Bot API, by long polling.
//
// It promises that an update is confirmed to the server only by the Poll whose cursor lies
// behind it, so that none is lost between the server and the caller's disk; that the token
// appears in no error and no text that it returns; and that a message is sent at most once for
// each Send, unless the server has refused its formatting, in which case it goes as plain text.
// It refuses redirects, since an address that holds the token must not be handed on.
//
// The one idea: the offset of getUpdates is the cursor. Libraries for the Bot API keep it to
// themselves and move it ahead when an update is taken from the wire, or cannot give up a long
// poll; hence the few methods that are needed are called over net/http here.
package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// DefaultBaseURL is Telegram's own server.
const DefaultBaseURL = "https://api.telegram.org"

// What Options leave open.
const (
	defaultMaxFile = 20 << 20 // what Telegram's own server hands out
	defaultPollFor = 50 * time.Second
	defaultTimeout = 30 * time.Second
)

// Token is a bot's secret. However it is printed, it does not show.
type Token string

// Format writes something else than the token, for every verb.
func (Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(token)") }

// MarshalText writes something else than the token.
func (Token) MarshalText() ([]byte, error) { return []byte("(token)"), nil }

// LogValue is something else than the token.
func (Token) LogValue() slog.Value { return slog.StringValue("(token)") }

// Options are what a bot needs.
type Options struct {
	Token   Token
	BaseURL string        // of a Bot API server; empty: DefaultBaseURL
	Files   string        // the private folder for files that are fetched; empty: none are
	MaxFile int64         // of a file that comes, in bytes; 0: 20 MiB
	PollFor time.Duration // how long the server holds a poll open; 0: 50 s
	Timeout time.Duration // of any other request, a tenth of a file's; 0: 30 s
	Client  *http.Client  // nil: one of its own. Its CheckRedirect is not used
}

// Channel is a bot. Its methods may be called from several goroutines, Poll from one at a time.
type Channel struct {
	opt    Options
	client *http.Client
	base   string // without a slash at its end
	self   string // the bot's own id
	secret string // the part of the token that must not be seen
	now    func() time.Time

	// Of Poll alone.
	presses   []press // buttons whose sign of waiting is to be ended
	username  string  // the bot's; empty until the server has said it
	albumWait time.Duration
}

var _ interface {
	channel.Channel
	channel.Streamer
	channel.Typist
	channel.Reactor
	channel.Menu
	channel.Fetcher
} = (*Channel)(nil)

var tokenForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]+):([A-Za-z0-9_-]+)$`)
})

// New returns the channel of a bot. It contacts no one yet.
func New(opt Options) (*Channel, error) {
	m := tokenForm().FindStringSubmatch(string(opt.Token))
	if m == nil {
		return nil, errors.New("telegram: the token is not one of a bot: digits, a colon, letters")
	}
	opt.BaseURL = cmp.Or(opt.BaseURL, DefaultBaseURL)
	u, err := url.Parse(opt.BaseURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		// The text is not repeated: people paste tokens into it.
		return nil, errors.New("telegram: the base URL is no address of an HTTP server")
	}
	opt.MaxFile = cmp.Or(max(opt.MaxFile, 0), defaultMaxFile)
	opt.PollFor = cmp.Or(max(opt.PollFor, 0), defaultPollFor)
	opt.Timeout = cmp.Or(max(opt.Timeout, 0), defaultTimeout)
	return &Channel{
		opt: opt, client: channel.Client(opt.Client), base: strings.TrimRight(opt.BaseURL, "/"), self: m[1], secret: m[2],
		now: time.Now, albumWait: time.Second,
	}, nil
}

// Name is "telegram".
func (c *Channel) Name() string { return "telegram" }

// Probe asks the server who the bot is.
func (c *Channel) Probe(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var me user
	if err := c.call(ctx, "getMe", struct{}{}, &me); err != nil {
		return "", err
	}
	return fmt.Sprintf("@%s (%s)", me.Username, name(&me)), nil
}

// PairingLink is the address that opens a chat with the bot, in which the first press of a button sends the
// code, as https://core.telegram.org/bots/features#deep-linking says.
func (c *Channel) PairingLink(ctx context.Context, code string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var me user
	if err := c.call(ctx, "getMe", struct{}{}, &me); err != nil {
		return "", err
	}
	return "https://t.me/" + url.PathEscape(me.Username) + "?start=" + url.QueryEscape(code), nil
}

// Limits are those of the Bot API.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: maxText, Buttons: true, Files: true, Format: channel.HTML}
}
