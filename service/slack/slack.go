// Package slack is a channel over Slack's Socket Mode and Web API.
//
// Slack sends an envelope over a WebSocket for each event. The channel acknowledges a message's envelope only after
// the caller of Poll has stored the message. A Poll with a cursor after the message proves this. Slack repeats an
// unacknowledged envelope. A message's id consists of its channel and its time, so a repeated message has the same
// id. No error and no returned text contains a token or the address of a socket. The package sends each message at
// most once for each Send, and follows no redirect.
//
// A thread is a chat. In a channel the bot reads only messages that mention it, and its answer begins a thread. In a
// direct message the bot also answers without a thread.
//
// Each connection has two goroutines. One reads its envelopes, and the other pings Slack. Close ends all of them. The
// field mu guards the state that they share with Poll, and it is never held during I/O.
package slack

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

// defaultBaseURL is the address of Slack's Web API.
const defaultBaseURL = "https://slack.com/api"

// These are the defaults of Options.
const (
	defaultMaxFile = 20 << 20
	defaultPollFor = 50 * time.Second
	defaultTimeout = 30 * time.Second
	defaultPing    = 20 * time.Second
)

// maxText is the largest number of characters of a block's text.
const maxText = 3000

// Options configures an app.
type Options struct {
	AppToken channel.Secret // opens sockets; begins with xapp-
	BotToken channel.Secret // calls the Web API; begins with xoxb-
	BaseURL  string         // the address of the Web API; empty means defaultBaseURL
	Files    string         // the private folder of fetched files; empty means that files are refused
	MaxFile  int64          // limit of a received file, in bytes; 0 means 20 MiB
	PollFor  time.Duration  // longest time of a Poll without a message; 0 means 50 s
	Timeout  time.Duration  // time limit of a request, and a tenth of a file's limit; 0 means 30 s
	Ping     time.Duration  // interval of pings, and the time limit of their answers; 0 means 20 s
	Client   *http.Client   // nil means a new client. CheckRedirect is ignored
}

// Channel is an app in a workspace. Its methods may be called from several goroutines, except Poll, which one goroutine
// calls at a time. The caller must Close it after the last call.
type Channel struct {
	opt      Options
	client   *http.Client
	base     *url.URL
	instance string // part of the cursor, because each process counts envelopes from 1
	life     *channel.Lifetime

	mu      sync.Mutex // guards the fields below
	change  chan struct{}
	conns   []*connection
	waiting []envelope // messages without an acknowledgement, in the order of arrival
	count   int        // the number of the last envelope
	self    identity   // empty until Slack has named the bot
	names   channel.Recent[string]
	refused error // Slack ended the last connection for this reason
}

// identity names the bot.
type identity struct {
	User string `json:"user_id"`
	Bot  string `json:"bot_id"`
	Name string `json:"user"`
	Team string `json:"team"`
}

var _ interface {
	channel.Channel
	channel.Streamer
	channel.Reactor
	channel.Fetcher
} = (*Channel)(nil)

// New returns the channel of an app. It contacts no server yet.
func New(opt Options) (*Channel, error) {
	if err := checkTokens(opt); err != nil {
		return nil, err
	}
	base, err := url.Parse(strings.TrimRight(cmp.Or(opt.BaseURL, defaultBaseURL), "/"))
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.RawQuery != "" ||
		base.Fragment != "" || base.User != nil {
		// The error does not repeat the text, because people paste tokens into it.
		return nil, errors.New("slack: the base URL is no address of an HTTP server")
	}
	opt.MaxFile = cmp.Or(max(opt.MaxFile, 0), defaultMaxFile)
	opt.PollFor = cmp.Or(max(opt.PollFor, 0), defaultPollFor)
	opt.Timeout = cmp.Or(max(opt.Timeout, 0), defaultTimeout)
	opt.Ping = cmp.Or(max(opt.Ping, 0), defaultPing)
	c := &Channel{opt: opt, client: channel.Client(opt.Client), base: base, instance: rand.Text(),
		life: channel.NewLifetime(), change: make(chan struct{})}
	return c, nil
}

// checkTokens names the tokens that are missing or exchanged.
func checkTokens(opt Options) error {
	for _, t := range []struct {
		token        channel.Secret
		name, prefix string
	}{{opt.AppToken, "app-level token", "xapp-"}, {opt.BotToken, "bot token", "xoxb-"}} {
		text := string(t.token)
		switch {
		case strings.HasPrefix(text, t.prefix) && len(text) > len(t.prefix) && !strings.ContainsAny(text, " \t\r\n"):
		case strings.HasPrefix(text, "xapp-") && t.prefix != "xapp-":
			return fmt.Errorf("slack: the %s is an app-level token; it must begin with %s", t.name, t.prefix)
		case strings.HasPrefix(text, "xoxb-") && t.prefix != "xoxb-":
			return fmt.Errorf("slack: the %s is a bot token; it must begin with %s", t.name, t.prefix)
		case strings.HasPrefix(text, "xoxp-"), strings.HasPrefix(text, "xoxe"):
			return fmt.Errorf("slack: the %s is a user token; it must begin with %s", t.name, t.prefix)
		default:
			return fmt.Errorf("slack: the %s must begin with %s and have no spaces", t.name, t.prefix)
		}
	}
	return nil
}

// Close ends Poll and all connections, and waits for their goroutines. Later calls do nothing. Slack repeats the
// messages without an acknowledgement.
func (c *Channel) Close() error {
	c.life.Close()
	return nil
}

// Name returns "slack".
func (c *Channel) Name() string { return "slack" }

// Limits returns Slack's limits.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: maxText, Buttons: true, Files: true, Format: channel.Mrkdwn}
}

// changed wakes the waiting goroutines. The caller holds mu.
func (c *Channel) changed() {
	close(c.change)
	c.change = make(chan struct{})
}

// chatOf returns the chat of a thread, or of a channel without a thread.
func chatOf(channel, thread string) string {
	if thread == "" {
		return channel
	}
	return channel + "/" + thread
}

// place returns the channel and the thread of a chat.
func place(chat string) (channelID, thread string, err error) {
	channelID, thread, _ = strings.Cut(chat, "/")
	if !isID(channelID) || thread != "" && !isTime(thread) {
		return "", "", &channel.RejectedError{Why: fmt.Sprintf("%.40q is no chat of Slack", chat)}
	}
	return channelID, thread, nil
}

// messageID names a message. Slack numbers the messages of a channel by their times.
func messageID(channel, ts string) string { return channel + ":" + ts }

// parseID returns the channel and the time of a message.
func parseID(id string) (channelID, ts string, err error) {
	channelID, ts, _ = strings.Cut(id, ":")
	if !isID(channelID) || !isTime(ts) {
		return "", "", &channel.RejectedError{Why: fmt.Sprintf("%.40q is no id of a message", id)}
	}
	return channelID, ts, nil
}

func isID(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// isTime reports whether a text is a time of Slack: seconds, a dot, and digits that make it unique in its channel.
func isTime(s string) bool {
	seconds, rest, ok := strings.Cut(s, ".")
	return ok && seconds != "" && rest != "" && strings.Trim(seconds+rest, "0123456789") == ""
}

// After reports whether a message came after a sent one. Slack's times give the order in a channel. They come from
// Slack's clock alone.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	at, ts, err := parseID(m.ID)
	at2, ts2, err2 := parseID(sent)
	return err == nil && err2 == nil && at == at2 && later(ts, ts2)
}

// later compares two times of Slack. They have the same number of digits after the dot.
func later(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }
