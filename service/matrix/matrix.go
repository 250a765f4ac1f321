// Package matrix is a channel over the client-server API of Matrix.
//
// The "since" token of /sync is the cursor. It confirms nothing to the server, so a message that is not on record is
// returned again. The channel reads gaps of a limited timeline from /messages. Each Send has a transaction id that
// follows from the message's key, so that the server recognises a repetition.
//
// The channel reads and writes unencrypted rooms only. It declines an invitation to an encrypted room with one sentence
// and ignores encrypted rooms. It joins a room only if an allowed person invites it. No error contains the token, and
// the package follows no redirect.
package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// These are the defaults of Options.
const (
	defaultMaxFile = 20 << 20
	defaultPollFor = 30 * time.Second
	defaultTimeout = 30 * time.Second
)

// Options configures an account.
type Options struct {
	Server  string // the address of the homeserver
	Token   channel.Secret
	Allow   []string                  // the ids of the people with invitations that are accepted
	Paired  func(contact string) bool // a paired contact may invite, too; nil means nobody is paired
	Refusal string                    // the sentence about encrypted rooms

	Files   string        // the private folder of fetched files; empty means that files are refused
	MaxFile int64         // limit of a received file, in bytes; 0 means 20 MiB
	PollFor time.Duration // time for which the server holds a poll open; 0 means 30 s
	Timeout time.Duration // time limit of other requests, and a tenth of a file's limit; 0 means 30 s
	Client  *http.Client  // nil means a new client. CheckRedirect is ignored
}

// Channel is an account. Its methods may be called from several goroutines, except Poll, which one goroutine calls at a
// time.
type Channel struct {
	opt    Options
	client *http.Client
	base   string // without a trailing slash

	mu        sync.Mutex                // guards the fields below
	self      string                    // the account's user id; empty until the server has returned it
	encrypted map[string]bool           // whether a room is encrypted, by its id; no value means unknown
	shared    map[string]bool           // whether several people read a room, by its id; no value means unknown
	entered   map[string]bool           // rooms that this process has joined
	own       channel.Recent[struct{}]  // ids of this account's last messages
	places    channel.Recent[placement] // the last messages of timelines, by id
	seen      int                       // number of placed messages
}

// placement is the place of a message in the order of its room.
type placement struct {
	room   string
	number int
}

var _ interface {
	channel.Channel
	channel.Editor
	channel.Typist
	channel.Reactor
	channel.Fetcher
	channel.Checker
} = (*Channel)(nil)

// New returns the channel of an account. It contacts no server yet.
func New(opt Options) (*Channel, error) {
	if opt.Token == "" || strings.ContainsAny(string(opt.Token), " \t\r\n") {
		return nil, errors.New("matrix: the access token has no characters, or spaces")
	}
	u, err := url.Parse(opt.Server)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" ||
		u.User != nil {
		return nil, errors.New("matrix: the server is no address such as https://matrix.example.org")
	}
	for _, id := range opt.Allow {
		if !isUser(id) {
			return nil, fmt.Errorf("matrix: %.80q is no id of a person such as @ann:example.org", id)
		}
	}
	opt.MaxFile = cmp.Or(max(opt.MaxFile, 0), defaultMaxFile)
	opt.PollFor = cmp.Or(max(opt.PollFor, 0), defaultPollFor)
	opt.Timeout = cmp.Or(max(opt.Timeout, 0), defaultTimeout)
	return &Channel{opt: opt, client: channel.Client(opt.Client), base: strings.TrimRight(opt.Server, "/"),
		encrypted: map[string]bool{}, shared: map[string]bool{}, entered: map[string]bool{}}, nil
}

func isUser(id string) bool {
	name, server, ok := strings.Cut(id, ":")
	return ok && strings.HasPrefix(name, "@") && server != "" && !strings.ContainsAny(id, " \t\r\n")
}

// Name returns "matrix".
func (c *Channel) Name() string { return "matrix" }

// maxText is the largest length of a text. An event has at most 65,536 bytes, and contains the text twice.
const maxText = 8000

// Limits returns the limits of Matrix, which has no buttons.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: maxText, Files: true, Format: channel.HTML, Dedupes: true}
}

// Probe asks the server for the account's user id.
func (c *Channel) Probe(ctx context.Context) (string, error) { return c.whoAmI(ctx) }

// whoAmI returns the account's user id.
func (c *Channel) whoAmI(ctx context.Context) (string, error) {
	c.mu.Lock()
	self := c.self
	c.mu.Unlock()
	if self != "" {
		return self, nil
	}
	var me struct {
		User string `json:"user_id"`
	}
	if err := c.call(ctx, http.MethodGet, "/_matrix/client/v3/account/whoami", nil, nil, &me); err != nil {
		return "", err
	}
	if !isUser(me.User) {
		return "", errors.New("matrix: the server names no account")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self = me.User
	return me.User, nil
}

// mayInvite reports whether the bot follows an invitation of this person.
func (c *Channel) mayInvite(person string) bool {
	return slices.Contains(c.opt.Allow, person) || c.opt.Paired != nil && c.opt.Paired(person)
}

// messageID names a message together with its room, because a reaction and an edit need both.
func messageID(room, event string) string { return room + "/" + event }

// parseID returns the room and the event of a message.
func parseID(id string) (room, event string, err error) {
	i := strings.LastIndex(id, "/$")
	if i <= 0 || !strings.HasPrefix(id, "!") {
		return "", "", &channel.RejectedError{Why: fmt.Sprintf("%.80q is no id of a message", id)}
	}
	return id[:i], id[i+1:], nil
}

// After reports whether a message came after a sent one in the timeline of their room. The order is unknown if this
// process has not read both.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.places.Get(m.ID)
	b, ok2 := c.places.Get(sent)
	return ok && ok2 && a.room == b.room && a.number > b.number
}
