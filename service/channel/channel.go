// Package channel is what the bridge asks of a messaging platform: to poll, to send, and to say
// what it can take. It promises that a text is cut and translated for a platform without a loss.
//
// The one idea: a [Channel] carries messages and knows nothing of agents, rights or the log.
package channel

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
)

// A Channel carries messages between people's phones and the bridge. It knows nothing of agents,
// rights or the log: it takes messages from a cursor on, and sends what it is given. Its
// methods may be called from several goroutines, Poll from one at a time.
//
// Errors of Send are judged by their kind: one that wraps ErrNotSent says that the platform has
// certainly not taken the message, a *RateLimitError besides when to come again, a
// *RejectedError that it never will. After any other error it is not known.
type Channel interface {
	// Name is the channel's id in the configuration and on the log: "telegram".
	Name() string
	// Limits are what the platform can take.
	Limits() Limits
	// Poll returns the messages behind the cursor and the cursor behind them. Without any it
	// waits for some, for as long as the platform holds a request open. The empty cursor is
	// the beginning of what the platform still has. A message may be returned again.
	Poll(ctx context.Context, cursor string) (messages []Inbound, next string, err error)
	// Send sends one message and returns the platform's id of it.
	Send(ctx context.Context, m Outbound) (id string, err error)
	// After reports whether a message that Poll returned last came, in its chat, behind one that
	// Send named sent: by the numbers of the platform, or, where it has none, by the order in which
	// this channel was told. Clocks do not say that. Where it cannot be known it is false.
	After(m Inbound, sent string) bool
}

// An Editor is a channel that can change a message that was sent.
type Editor interface {
	Edit(ctx context.Context, id string, m Outbound) error
}

// A Streamer is a channel that can show an answer as it comes: in one message, which is edited and in the end
// taken back.
type Streamer interface {
	Editor
	// Pace is how far apart at least the edits of one message in a chat are.
	Pace(chat string) time.Duration
	// Remove takes a message that Send has returned the id of off the chat.
	Remove(ctx context.Context, id string) error
}

// A Fetcher is a channel whose messages name files that are still on the platform.
type Fetcher interface {
	// Fetch brings a file of a message to this machine and returns its path; n is its place among the
	// message's files. It may take minutes. A *RejectedError says that it never will be had. The same
	// file of the same message takes the same place when it is fetched again.
	Fetch(ctx context.Context, message string, n int, f File) (path string, err error)
}

// A Typist is a channel that can show that somebody is typing. The sign fades by itself within
// seconds.
type Typist interface {
	Typing(ctx context.Context, chat string) error
}

// A Reactor is a channel that can put a sign on a message of a person.
type Reactor interface {
	// React puts an emoji on a message that Poll returned; Send's promises are its own. Where that cannot be
	// had in the chat it is a *RejectedError.
	React(ctx context.Context, message, emoji string) error
}

// A Menu is a channel whose platform shows people which commands there are.
type Menu interface {
	// SetMenu has the platform show the commands, each with what it does, to those who use it in a language; empty:
	// to all others.
	SetMenu(ctx context.Context, language string, commands iter.Seq2[string, string]) error
}

// A Refuser is a channel whose sender waits for an answer: it can be told that a message was not
// taken.
type Refuser interface {
	// Refuse answers a message that Poll returned, and that is not to be returned again.
	Refuse(m Inbound, why *ConflictError)
}

// Limits are what a platform can take.
type Limits struct {
	Text    int  // the longest text of one message, in UTF-16 code units; 0: any
	Buttons bool // options are buttons, else numbers
	Files   bool // a long text may be sent as a file
	Format  Format
	// Dedupes says that the channel knows the keys of what it was sent, so that sending again
	// does not make a second message.
	Dedupes bool
}

// Format is how a platform writes emphasis and code.
type Format string

// The formats.
const (
	Plain    Format = "plain"
	Markdown Format = "markdown" // CommonMark, as it is
	HTML     Format = "html"     // Telegram's subset: b, i, code, pre, a
)

// Inbound is a message of a person. Chat and Contact are the platform's own ids: answers go to
// the chat, rights belong to the contact.
type Inbound struct {
	ID      string // the platform's, unique in its channel
	Chat    string
	Contact string
	Name    string // of the contact, as the platform shows it
	Text    string
	Files   []File
	Sent    time.Time
	Own     bool // it came from the bridge itself, or is an echo of what it sent
	// Quoted says that these are somebody else's words, handed on: they answer no question, are
	// no command and pair no one.
	Quoted bool
	// ReplyTo is the id of the message that it answers, if it does; of one that cannot be named,
	// such as a story or a message of another chat, any words that are no id.
	ReplyTo string
	Shared  bool // several people read the chat
	// Unread names what came that is neither a text nor a file, such as "a sticker": its sender is told that
	// it is not read. Empty: there is a text, a file or a button.
	Unread string
	Button string // the data of the button that was pressed, if one was; Text is then its label
}

// File is a file that came or goes with a message.
type File struct {
	Name   string
	Path   string // on this machine; empty: it is still on the platform
	MIME   string
	Remote string // the platform's id of it, with which a [Fetcher] has it; empty: it needs none
	Size   int64  // in bytes, as far as the platform says so
}

// Outbound is a message to a person.
type Outbound struct {
	Chat    string
	Text    string // in the channel's Format
	Plain   bool   // the text has no formatting, whatever the channel's Format is
	Buttons []Button
	File    *File
	ReplyTo string // the id of a message of the person; empty: none
	Key     string // the same for every attempt to send the same message
	Silent  bool   // it makes no sound where the platform can do without
}

// Button is one answer to a question.
type Button struct {
	Label string
	Data  string // comes back in Inbound.Button; at most 64 bytes
}

// Wait returns when the time is over, or ctx ends; then it returns false.
func Wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// ErrNotSent says that a message has certainly not been sent: it may be sent again.
var ErrNotSent = errors.New("the message was not sent")

// A RateLimitError says that the platform wants no more for a while; the message was not sent.
type RateLimitError struct{ After time.Duration }

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("the platform wants no more messages for %s", e.After)
}

// Unwrap makes it an ErrNotSent.
func (e *RateLimitError) Unwrap() error { return ErrNotSent }

// A RejectedError says that the platform refuses for good what it was asked for, a message most often, and why.
type RejectedError struct{ Why string }

func (e *RejectedError) Error() string { return "the platform refuses: " + e.Why }

// A ConflictError says that a message came with the id of an earlier one, and with another text,
// another button or other files, or that this cannot be said because no digest of the earlier one is
// on record. Nothing of it was used.
type ConflictError struct {
	ID              string // the platform's
	Recorded, Given string // the digests, as kernel.Runner.Digest makes them; Recorded may be empty
}

func (e *ConflictError) Error() string {
	if e.Recorded == "" {
		return fmt.Sprintf("the message %s was received before; whether with this text and these files is not on record any more", e.ID)
	}
	return fmt.Sprintf("the message %s was received before with another text or other files: sha256 %s is recorded, %s was given", e.ID, e.Recorded, e.Given)
}

// Client is a copy of the given client, or of one of its own, that follows no redirect: what is
// sent to an address is for that address.
func Client(given *http.Client) *http.Client {
	client := &http.Client{}
	if given != nil {
		*client = *given
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// Do makes a request. Its errors are without the URL, see [WithoutURL], and of the kinds that
// [Channel] names: before there is a connection nothing can have been sent.
func Do(client *http.Client, req *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	resp, err := client.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil && !connected.Load() {
		err = fmt.Errorf("%w: %w", ErrNotSent, WithoutURL(err))
	}
	return resp, WithoutURL(err)
}

// WithoutURL takes the URL off an error of net/http: addresses hold tokens and secrets.
func WithoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// mostRecent is how many a [Recent] keeps.
const mostRecent = 4096

// Recent keeps what was put in last. The zero value is empty.
type Recent[T any] struct {
	values map[string]T
	keys   []string // the oldest first
}

// Put keeps a value, in the place of the one that was there under its key.
func (r *Recent[T]) Put(key string, value T) {
	if r.values == nil {
		r.values = map[string]T{}
	}
	if _, known := r.values[key]; !known {
		r.keys = append(r.keys, key)
	}
	r.values[key] = value
	if len(r.keys) > mostRecent {
		delete(r.values, r.keys[0])
		r.keys = r.keys[1:]
	}
}

// Get returns what is kept under a key.
func (r *Recent[T]) Get(key string) (value T, ok bool) {
	value, ok = r.values[key]
	return value, ok
}
