// Package ntfy is a channel over a topic of an ntfy server.
//
// It sends notices and questions to a private topic, and reads answers by action buttons.
//
// Each button publishes its option and a MAC to a second topic, which the channel reads. The MAC binds the question,
// the option and the topic. The MAC is also the id of the answer, so that an answer counts once. Any other text in
// the second topic can only be a pairing code, because ntfy names no sender. The package refuses a topic without
// protection and with a name that can be guessed. No error contains the token or the topic, and the package follows
// no redirect.
package ntfy

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// These are the defaults of Options.
const (
	defaultServer  = "https://ntfy.sh"
	defaultPollFor = 50 * time.Second
	defaultTimeout = 30 * time.Second
)

// Options configures the channel.
type Options struct {
	Server  string // empty means defaultServer
	Topic   channel.Secret
	Token   channel.Secret // empty means that the server wants none
	Key     []byte         // the secret of the answers
	PollFor time.Duration  // time for which a poll stays open; 0 means 50 s
	Timeout time.Duration  // time limit of other requests; 0 means 30 s
	Client  *http.Client   // nil means a new client. CheckRedirect is ignored
}

// Channel is a topic. Its methods may be called from several goroutines, except Poll, which one goroutine calls at a
// time.
type Channel struct {
	opt     Options
	client  *http.Client
	base    string // without a trailing slash
	answers string // the topic of the answers
	contact string // the person with the topic

	// Only Poll uses protected.
	protected bool // nobody can read the topic without a token or a name that cannot be guessed
}

var _ interface {
	channel.Channel
	channel.Checker
} = (*Channel)(nil)

// ErrGuessable says that others can read a topic: it needs no token, and its name can be guessed.
var ErrGuessable = errors.New("ntfy: everyone can read the topic, and its name can be guessed")

var topicForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-_A-Za-z0-9]{1,55}$`) })

// New returns the channel of a topic. It contacts no server yet.
func New(opt Options) (*Channel, error) {
	const shortest = 16 // bytes of a key
	opt.Server = cmp.Or(opt.Server, defaultServer)
	u, err := url.Parse(opt.Server)
	switch {
	case !topicForm().MatchString(string(opt.Topic)):
		return nil, errors.New("ntfy: the topic has other characters than letters, digits, - and _, or more than 55")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" ||
		u.Fragment != "" || u.User != nil:
		return nil, errors.New("ntfy: the server is no address such as https://ntfy.sh")
	case len(opt.Key) < shortest:
		return nil, errors.New("ntfy: the secret of the answers is too short")
	case opt.Token == "" && opt.guessable():
		return nil, ErrGuessable
	}
	opt.PollFor = cmp.Or(max(opt.PollFor, 0), defaultPollFor)
	opt.Timeout = cmp.Or(max(opt.Timeout, 0), defaultTimeout)
	sum := sha256.Sum256([]byte("perlica ntfy topic " + string(opt.Topic)))
	return &Channel{opt: opt, client: channel.Client(opt.Client), base: strings.TrimRight(opt.Server, "/"),
		answers: string(opt.Topic) + "-answers", contact: "topic-" + hex.EncodeToString(sum[:6])}, nil
}

// guessable reports whether others could find the topic by its name. A random name of 20 characters is too long to try.
func (o Options) guessable() bool {
	const length, different = 20, 10
	seen := map[rune]bool{}
	for _, r := range string(o.Topic) {
		seen[r] = true
	}
	return len(o.Topic) < length || len(seen) < different
}

// Name returns "ntfy".
func (c *Channel) Name() string { return "ntfy" }

// maxText is the largest length of a text. A server takes 4,096 bytes of a message.
const maxText = 1300

// Limits returns the limits of ntfy.
func (c *Channel) Limits() channel.Limits {
	const most = 3
	return channel.Limits{Text: maxText, Buttons: true, MostButtons: most, Format: channel.Plain}
}

// After returns false, because an answer names its question.
func (c *Channel) After(channel.Inbound, string) bool { return false }

// PairingLink returns an address that sends the code when a browser opens it.
func (c *Channel) PairingLink(_ context.Context, code string) (string, error) {
	return c.base + "/" + c.answers + "/publish?message=" + url.QueryEscape(code), nil
}

// answerMark begins the text of each answer.
const answerMark = "perlica"

// sign returns the text that the button of an option publishes.
func (c *Channel) sign(b channel.Button) string {
	return strings.Join([]string{answerMark, c.mac(b), b.Data, b.Label}, " ")
}

// mac returns the MAC of an option.
func (c *Channel) mac(b channel.Button) string {
	mac := hmac.New(sha256.New, c.opt.Key)
	_, _ = io.WriteString(mac, strings.Join([]string{"ntfy answer", c.base, string(c.opt.Topic), b.Data, b.Label},
		"\x00")) // hash.Hash never fails
	const length = 16
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:length])
}

// verify returns the option of an answer and its MAC. ok is false if the channel did not sign the text.
func (c *Channel) verify(text string) (b channel.Button, mac string, ok bool) {
	const parts = 4
	words := strings.SplitN(text, " ", parts)
	if len(words) != parts || words[0] != answerMark {
		return b, "", false
	}
	b = channel.Button{Data: words[2], Label: words[3]}
	mac = c.mac(b)
	return b, mac, hmac.Equal([]byte(mac), []byte(words[1]))
}

// Message is a message as JSON for ntfy. In a JSON message, no text can become a header.
type Message struct {
	Topic    string   `json:"topic"`
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Tags     []string `json:"tags,omitempty"`
	Priority int      `json:"priority"`
	Click    string   `json:"click,omitempty"`
	Actions  []Action `json:"actions,omitempty"`
}

// Action is a button that makes a request.
type Action struct {
	Action string `json:"action"` // "http"
	Label  string `json:"label"`
	URL    string `json:"url"`
	Method string `json:"method"`
	Body   string `json:"body"`
	Clear  bool   `json:"clear"` // the notification vanishes after the request
}

// These are priorities of messages.
const (
	Quiet  = 2
	Usual  = 3
	Urgent = 4
)
