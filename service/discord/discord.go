// Package discord is a channel over Discord's gateway and REST API.
//
// The caller's cursor proves that earlier messages are on the caller's disk. The cursor has the session and the
// sequence number for a resume, and the last message of each known chat. Poll resumes the session after a lost
// connection and after a restart. If Discord has given up the session, Poll reads the history of each known chat. A
// press of a button is acknowledged after the caller has recorded it. No error and no returned text contains the token.
// Each Send sends a message at most once. The package follows no redirect.
//
// A connection to the gateway stays open between two calls of Poll. One of its two goroutines reads, and the other
// sends heartbeats. Close ends both.
package discord

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// defaultBaseURL is the address of version 10 of Discord's REST API.
const defaultBaseURL = "https://discord.com/api/v10"

// These are the defaults of Options.
const (
	defaultMaxFile = 20 << 20
	defaultPause   = 5 * time.Second // Discord allows one Identify in this time
	defaultTimeout = 30 * time.Second
)

// Options configures a bot.
type Options struct {
	Token   channel.Secret
	BaseURL string // the address of the REST API; empty means defaultBaseURL
	Files   string // the private folder of fetched files; empty means that files are refused
	MaxFile int64  // limit of a received file, in bytes; 0 means 20 MiB
	// Paired reports whether a contact is paired. The chats of paired contacts are read after a lost session. nil means
	// that all contacts are paired.
	Paired  func(contact string) bool
	Pause   time.Duration // shortest time between two new sessions; 0 means 5 s
	Timeout time.Duration // time limit of a request, and a tenth of a file's limit; 0 means 30 s
	Client  *http.Client  // nil means a new client. CheckRedirect is ignored
}

// Channel is a bot. Its methods may be called from several goroutines, except Poll, which one goroutine calls at a
// time.
type Channel struct {
	opt    Options
	client *http.Client
	base   string // without a trailing slash
	self   string // the bot's own id
	epoch  string // identifies this process in cursors
	limits rateLimits
	life   *channel.Lifetime

	poll poller // only the method Poll uses this field
}

var _ interface {
	channel.Channel
	channel.Streamer
	channel.Typist
	channel.Reactor
	channel.Fetcher
	io.Closer
} = (*Channel)(nil)

var tokenForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
})

// New returns the channel of a bot. It contacts no server yet.
func New(opt Options) (*Channel, error) {
	self, err := readToken(string(opt.Token))
	if err != nil {
		return nil, fmt.Errorf("discord: %w", err)
	}
	opt.BaseURL = cmp.Or(opt.BaseURL, defaultBaseURL)
	u, err := url.Parse(opt.BaseURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" ||
		u.User != nil {
		// The error does not repeat the text, because people paste tokens into it.
		return nil, errors.New("discord: the base URL is no address of an HTTP server")
	}
	opt.MaxFile = cmp.Or(max(opt.MaxFile, 0), defaultMaxFile)
	opt.Pause = cmp.Or(max(opt.Pause, 0), defaultPause)
	opt.Timeout = cmp.Or(max(opt.Timeout, 0), defaultTimeout)
	if opt.Paired == nil {
		opt.Paired = func(string) bool { return true }
	}
	c := &Channel{
		opt: opt, client: channel.Client(opt.Client), base: strings.TrimRight(opt.BaseURL, "/"), self: self,
		epoch: rand.Text(), life: channel.NewLifetime(),
	}
	return c, nil
}

// readToken returns the bot's id, which is the first part of its token. If a person pasted another secret of
// Discord, the error names the kind of this secret.
func readToken(token string) (self string, err error) {
	if strings.HasPrefix(token, "Bot ") {
		return "", errors.New(`the token must not begin with "Bot "`)
	}
	const publicKey, clientSecret = 64, 32
	if m := tokenForm().FindStringSubmatch(token); m != nil {
		id, err := base64.RawURLEncoding.DecodeString(m[1])
		if err == nil && isID(string(id)) {
			return string(id), nil
		}
		return "", errors.New("the token is not one of a bot: its first part has no id")
	}
	switch {
	case isID(token):
		return "", errors.New("this is an id, not the token of a bot")
	case len(token) == publicKey && !strings.ContainsAny(token, ".-_"):
		return "", errors.New("this is the application's public key, not the token of a bot")
	case len(token) == clientSecret && !strings.Contains(token, "."):
		return "", errors.New("this is the application's client secret, not the token of a bot")
	}
	return "", errors.New("the token is not one of a bot: three parts of letters and digits, with dots between them")
}

// Name returns "discord".
func (c *Channel) Name() string { return "discord" }

// Limits returns the limits of Discord's API.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: longestText, Buttons: true, Files: true, Format: channel.Discord}
}

// Close ends the connection to the gateway. The session stays there for a while, so that a later process can resume it.
// Close also ends Poll, and waits for all goroutines. It may be called again.
func (c *Channel) Close() error {
	c.life.Close()
	return nil
}
