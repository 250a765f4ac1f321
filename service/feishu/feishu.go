// Package feishu is a channel over the API of Feishu and Lark.
//
// Feishu sends a frame over a WebSocket for each event. The channel acknowledges a message only after the caller of
// Poll has stored it. A Poll with a cursor after the message proves this. Feishu repeats an unacknowledged message.
// Feishu does not repeat an unacknowledged press of a button. It shows an error, and the person can press again. A
// message's id is Feishu's own, so a repeated message has the same id. No error and no returned text contains the
// app's secret, a token or the address of a socket. The package sends each message at most once for each Send, and
// follows no redirect.
//
// A private chat is named by its person, and a group by its own id. A topic of a group is a chat of its own.
//
// Each connection has two goroutines. One reads its frames, and the other pings Feishu. Close ends all of them. The
// field mu guards the state that they share with Poll, and it is never held during I/O.
package feishu

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// defaultBaseURL is the address of Feishu. Lark has the address https://open.larksuite.com.
const defaultBaseURL = "https://open.feishu.cn"

// These are the defaults of Options.
const (
	defaultMaxFile = 20 << 20
	defaultPollFor = 50 * time.Second
	defaultTimeout = 30 * time.Second
	defaultPing    = 30 * time.Second
)

// maxText is the largest length of a text in UTF-16 code units. A card may have 30 KB, and a unit has at most seven
// bytes there.
const maxText = 4000

// Options configures an app.
type Options struct {
	AppID   string         // begins with cli_
	Secret  channel.Secret // of the app
	BaseURL string         // empty means defaultBaseURL
	Files   string         // the private folder of fetched files; empty means that files are refused
	MaxFile int64          // limit of a received file, in bytes; 0 means 20 MiB
	PollFor time.Duration  // longest time of a Poll without a message; 0 means 50 s
	Timeout time.Duration  // time limit of a request, and a tenth of a file's limit; 0 means 30 s
	Ping    time.Duration  // interval of pings, and the time limit of their answers; 0 means 30 s
	Client  *http.Client   // nil means a new client. CheckRedirect is ignored
}

// Channel is an app of a tenant. Its methods may be called from several goroutines, except Poll, which one goroutine
// calls at a time. The caller must Close it after the last call.
type Channel struct {
	opt      Options
	client   *http.Client
	base     string
	instance string // part of the cursor, because each process counts events from 1
	life     *channel.Lifetime

	mu      sync.Mutex // guards the fields below
	change  chan struct{}
	conn    *connection // nil without an open connection
	waiting []pending   // messages without an acknowledgement, in the order of arrival
	count   int         // the number of the last message
	token   token
	self    bot // empty until Feishu has named the bot
	names   channel.Recent[string]
}

var _ interface {
	channel.Channel
	channel.Streamer
	channel.Reactor
	channel.Fetcher
	channel.Checker
} = (*Channel)(nil)

// New returns the channel of an app. It contacts no server yet.
func New(opt Options) (*Channel, error) {
	switch {
	case !isID(opt.AppID, "cli_"):
		return nil, errors.New("feishu: the app id must begin with cli_")
	case opt.Secret == "" || strings.ContainsAny(string(opt.Secret), " \t\r\n"):
		return nil, errors.New("feishu: the app secret must not be empty and have no spaces")
	}
	base, err := url.Parse(strings.TrimRight(cmp.Or(opt.BaseURL, defaultBaseURL), "/"))
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.RawQuery != "" ||
		base.Fragment != "" || base.User != nil {
		// The error does not repeat the text, because people paste secrets into it.
		return nil, errors.New("feishu: the base URL is no address of an HTTP server")
	}
	opt.MaxFile = cmp.Or(max(opt.MaxFile, 0), defaultMaxFile)
	opt.PollFor = cmp.Or(max(opt.PollFor, 0), defaultPollFor)
	opt.Timeout = cmp.Or(max(opt.Timeout, 0), defaultTimeout)
	opt.Ping = cmp.Or(max(opt.Ping, 0), defaultPing)
	c := &Channel{opt: opt, client: channel.Client(opt.Client), base: base.String(), instance: rand.Text(),
		life: channel.NewLifetime(), change: make(chan struct{})}
	return c, nil
}

// Close ends Poll and the connection, and waits for their goroutines. Later calls do nothing. Feishu repeats the
// messages without an acknowledgement.
func (c *Channel) Close() error {
	c.life.Close()
	return nil
}

// Name returns "feishu".
func (c *Channel) Name() string { return "feishu" }

// Limits returns Feishu's limits. Feishu remembers the key of a message for an hour.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: maxText, Buttons: true, MostButtons: mostButtons, Files: true, Format: channel.Feishu,
		Dedupes: true}
}

// After returns false, because Feishu numbers no messages.
func (c *Channel) After(channel.Inbound, string) bool { return false }

// changed wakes the waiting goroutines. The caller holds mu.
func (c *Channel) changed() {
	close(c.change)
	c.change = make(chan struct{})
}

// place is the target of a message.
type place struct {
	person string // the id of a person; empty in a group
	group  string // the id of a group; empty in a private chat
	thread string // the first message of the topic; may be empty
}

// parseChat returns the place of a chat.
func parseChat(chat string) (p place, err error) {
	id, thread, _ := strings.Cut(chat, "/")
	switch {
	case thread != "" && !isID(thread, "om_"):
	case isID(id, "ou_"):
		return place{person: id, thread: thread}, nil
	case isID(id, "oc_"):
		return place{group: id, thread: thread}, nil
	}
	return p, &channel.RejectedError{Why: fmt.Sprintf("%.40q is no chat of Feishu", chat)}
}

// isID reports whether a text is an id of Feishu with a prefix. Such a text is safe in a URL.
func isID(s, prefix string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	return ok && rest != "" && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '_' && r != '-'
	})
}
