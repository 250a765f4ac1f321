// Package telegram is a channel over the Telegram Bot API.
//
// A Poll confirms an update to the server only if its cursor lies after the update. No update is
// therefore lost between the server and the caller's disk. No error and no returned text contains
// the token. Each Send sends a message at most once. If the server refuses its formatting, the
// message is sent as plain text. The package follows no redirect, because an address with the token
// must not reach another server.
//
// The offset of getUpdates is the cursor. Libraries for the Bot API keep the offset to themselves,
// advance it when an update arrives, or cannot interrupt a long poll. This package therefore calls
// the few needed methods over net/http.
package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// defaultBaseURL is Telegram's own server.
const defaultBaseURL = "https://api.telegram.org"

// These are the defaults of Options.
const (
	defaultMaxFile = 20 << 20 // the limit of Telegram's own server
	defaultPollFor = 50 * time.Second
	defaultTimeout = 30 * time.Second
)

// Options configures a bot.
type Options struct {
	Token   channel.Secret
	BaseURL string        // the address of a Bot API server; empty means defaultBaseURL
	Files   string        // the private folder of fetched files; empty means that files are refused
	MaxFile int64         // limit of a received file, in bytes; 0 means 20 MiB
	PollFor time.Duration // time for which the server holds a poll open; 0 means 50 s
	Timeout time.Duration // time limit of other requests, and a tenth of a file's limit; 0 means 30 s
	Client  *http.Client  // nil means a new client. CheckRedirect is ignored
}

// Channel is a bot. Its methods may be called from several goroutines, except Poll, which one
// goroutine calls at a time.
type Channel struct {
	opt    Options
	client *http.Client
	base   string // without a trailing slash
	self   string // the bot's own id
	secret string // the secret part of the token
	now    func() time.Time

	// Only Poll uses the fields below.
	presses   []press // buttons with a waiting sign to end
	username  string  // the bot's name; empty until the server has returned it
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

// New returns the channel of a bot. It contacts no server yet.
func New(opt Options) (*Channel, error) {
	m := tokenForm().FindStringSubmatch(string(opt.Token))
	if m == nil {
		return nil, errors.New("telegram: the token is not one of a bot: digits, a colon, letters")
	}
	opt.BaseURL = cmp.Or(opt.BaseURL, defaultBaseURL)
	u, err := url.Parse(opt.BaseURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" ||
		u.User != nil {
		// The error does not repeat the text, because people paste tokens into it.
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

// Name returns "telegram".
func (c *Channel) Name() string { return "telegram" }

// Probe asks the server for the bot's name.
func (c *Channel) Probe(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var me user
	if err := c.callMethod(ctx, "getMe", struct{}{}, &me); err != nil {
		return "", err
	}
	return fmt.Sprintf("@%s (%s)", me.Username, name(&me)), nil
}

// PairingLink returns an address that opens a chat with the bot. The first press of a button there
// sends the code, see https://core.telegram.org/bots/features#deep-linking.
func (c *Channel) PairingLink(ctx context.Context, code string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var me user
	if err := c.callMethod(ctx, "getMe", struct{}{}, &me); err != nil {
		return "", err
	}
	return "https://t.me/" + url.PathEscape(me.Username) + "?start=" + url.QueryEscape(code), nil
}

// Limits returns the limits of the Bot API.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: maxText, Buttons: true, Files: true, Format: channel.HTML}
}
