// Package channel defines the bridge's interface to a messaging platform. It cuts and translates a text for a platform
// without a loss.
//
// A [Channel] carries messages and knows nothing of agents, rights or the log.
package channel

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// A Channel carries messages between people's phones and the bridge. It knows nothing of agents,
// rights or the log. It returns the messages after a cursor, and sends messages. Its methods may be
// called from several goroutines, except Poll, which one goroutine calls at a time.
//
// Send has these kinds of errors. An error that wraps ErrNotSent says that the platform has
// certainly not received the message. A *RateLimitError also says when to try again. A
// *RejectedError says that the platform will never accept the message. After any other error the
// result is unknown.
type Channel interface {
	// Name returns the channel's id in the configuration and on the log, such as "telegram".
	Name() string
	// Limits returns the platform's limits.
	Limits() Limits
	// Poll returns the messages after the cursor and the cursor after them. It waits for a message as long as the
	// platform holds a request open. The empty cursor means that Poll begins with the platform's oldest message. A
	// message may be returned again.
	Poll(ctx context.Context, cursor string) (messages []Inbound, next string, err error)
	// Send sends one message and returns its id on the platform.
	Send(ctx context.Context, m Outbound) (id string, err error)
	// After reports whether a message of the last Poll came after a sent message of the same chat. The parameter
	// "sent" is the id that Send returned for the sent message. It uses the platform's numbers or, without them, the
	// order in which this channel learned of the messages. Clocks do not prove an order. After returns false if the
	// order is unknown.
	After(m Inbound, sent string) bool
}

// An Editor is a channel that can change a sent message.
type Editor interface {
	Edit(ctx context.Context, id string, m Outbound) error
}

// A Streamer is a channel that can show an answer while it arrives, in one message that is edited
// and finally deleted.
type Streamer interface {
	Editor
	// Pace returns the shortest interval between two edits of a message in a chat.
	Pace(chat string) time.Duration
	// Remove deletes a message for which Send has returned the id.
	Remove(ctx context.Context, id string) error
}

// A Fetcher is a channel that leaves files on the platform. Its messages have only the names of these files.
type Fetcher interface {
	// Fetch downloads a file of a message and returns its path. n is its position among the
	// message's files. Fetch may take minutes. A *RejectedError says that the file can never be
	// fetched. The same file of the same message gets the same path again.
	Fetch(ctx context.Context, message string, n int, f File) (path string, err error)
}

// A Typist is a channel that can show a typing sign. The sign fades within seconds.
type Typist interface {
	Typing(ctx context.Context, chat string) error
}

// A Reactor is a channel that can put a reaction on a person's message.
type Reactor interface {
	// React puts an emoji on a message that Poll returned. Its errors have the kinds of Send. A
	// *RejectedError says that the chat has no such reactions.
	React(ctx context.Context, message, emoji string) error
}

// A Menu is a channel with a platform that shows people the available commands.
type Menu interface {
	// SetMenu sets the commands and their help for the people that use a language. The empty language means all other
	// languages.
	SetMenu(ctx context.Context, language string, commands iter.Seq2[string, string]) error
}

// A Refuser is a channel with senders that wait for an answer. It can tell them that a message was
// not accepted.
type Refuser interface {
	// Refuse answers a message that Poll returned. Poll will not return it again.
	Refuse(m Inbound, why *ConflictError)
}

// A Checker is a channel that can compare the settings of its account on the platform with the bridge's needs.
type Checker interface {
	// Check asks the platform, and returns one finding for each examined setting. It sends no message and confirms none.
	Check(ctx context.Context) []Finding
}

// Finding is the result of examining one setting. A finding without a next step says that the setting is right.
type Finding struct {
	Name   string // one or two words, such as "token"
	Detail string
	Next   string // the person's next step
	Fails  bool   // the channel does not work with this setting; false with a next step is a warning
}

// Limits describes the limits of a platform.
type Limits struct {
	Text    int  // longest text of one message in UTF-16 code units; 0 means any
	Buttons bool // options are buttons, otherwise numbers
	// MostButtons is the largest number of buttons of a message. 0 means any number.
	MostButtons int
	Files       bool // a long text may be sent as a file
	Format      Format
	// Dedupes says that the channel remembers the keys of sent messages. Sending again then makes
	// no second message.
	Dedupes bool
	// Forgeable says that the name of a sender can be forged. A question is then answered by its buttons alone, and an
	// always-asked question is not approved on this channel.
	Forgeable bool
}

// Format is a platform's notation of emphasis and code.
type Format string

// These are the formats.
const (
	Plain    Format = "plain"
	Markdown Format = "markdown" // unchanged CommonMark
	HTML     Format = "html"     // Telegram's subset: b, i, code, pre, a
	Mrkdwn   Format = "mrkdwn"   // Slack's notation
	Discord  Format = "discord"  // Discord's Markdown; nothing in it is hidden or a mention
	Feishu   Format = "feishu"   // the Markdown of Feishu's cards; nothing in it is a mention
)

// Inbound is a message of a person. Chat and Contact are the platform's ids: answers go to the
// chat, and rights belong to the contact.
type Inbound struct {
	ID      string // the platform's id, unique in its channel
	Chat    string
	Contact string
	Name    string // the contact's name on the platform
	Text    string
	Files   []File
	Sent    time.Time
	Own     bool // a message of the bridge itself, or its echo
	// Quoted says that another person has written the words. They answer no question, are no command and pair no
	// contact.
	Quoted bool
	// Unproven says that nothing proves the sender. The message may pair its sender, and does nothing else.
	Unproven bool
	// ReplyTo is the id of the answered message, if there is one. If that message cannot be named,
	// such as a story or a message of another chat, ReplyTo is a text that is not an id.
	ReplyTo string
	Shared  bool // several people read the chat
	// Unread names a content that is neither a text nor a file, such as "a sticker". The sender is
	// told that it is not read. It is empty if the message has a text, a file or a button.
	Unread string
	// Button is the data of a pressed button, and Text is then its label. If the platform has reactions instead of
	// buttons, Button is the number of an option on the card ReplyTo.
	Button string
}

// File is a file of a message in either direction.
type File struct {
	Name   string
	Path   string // on this machine; empty means that the file is still on the platform
	MIME   string
	Remote string // the platform's id for a [Fetcher]; empty means not needed
	Size   int64  // bytes, as the platform reports them
}

// Outbound is a message to a person.
type Outbound struct {
	Chat    string
	Text    string // in the channel's Format
	Plain   bool   // the text has no formatting in any Format
	Buttons []Button
	File    *File
	ReplyTo string // the id of a person's message; may be empty
	Key     string // the same for every attempt to send this message
	Silent  bool   // without a sound, if the platform can
}

// Button is one answer to a question.
type Button struct {
	Label string
	Data  string // returned in Inbound.Button; at most 64 bytes
}

// Wait returns true after the duration d, or false when ctx ends.
func Wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// ErrNotSent says that a message was certainly not sent and may be sent again.
var ErrNotSent = errors.New("the message was not sent")

// A RateLimitError says that the platform demands a pause. The message was not sent.
type RateLimitError struct{ After time.Duration }

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("the platform wants no more messages for %s", e.After)
}

// Unwrap makes a RateLimitError an ErrNotSent.
func (e *RateLimitError) Unwrap() error { return ErrNotSent }

// A RejectedError says that the platform refuses a request for good. The request usually sends a message. Why is the
// platform's reason.
type RejectedError struct{ Why string }

func (e *RejectedError) Error() string { return "the platform refuses: " + e.Why }

// A ConflictError says that a message has the id of an earlier one but another text, button or files. It also covers an
// earlier message without a recorded digest, which cannot be compared. The bridge has not used the new message.
type ConflictError struct {
	ID              string // the platform's id
	Recorded, Given string // digests as kernel.Runner.Digest makes them; Recorded may be empty
}

func (e *ConflictError) Error() string {
	if e.Recorded == "" {
		return fmt.Sprintf(
			"the message %s was received before; whether with this text and these files is not on record any more", e.ID)
	}
	return fmt.Sprintf(
		"the message %s was received before with another text or other files: sha256 %s is recorded, %s was given", e.ID,
		e.Recorded, e.Given)
}

// Client returns a copy of the given client, or a new one, that follows no redirect. A request is
// meant only for its own address.
func Client(given *http.Client) *http.Client {
	client := &http.Client{}
	if given != nil {
		*client = *given
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// Do makes a request. Its errors contain no URL (see [WithoutURL]) and have the kinds of [Channel].
// A failure before the connection proves that nothing was sent.
func Do(client *http.Client, req *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	resp, err := client.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil && !connected.Load() {
		err = fmt.Errorf("%w: %w", ErrNotSent, WithoutURL(err))
	}
	return resp, WithoutURL(err)
}

// WithoutURL removes the URL from an error of net/http, because addresses may contain tokens and
// secrets.
func WithoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Judge returns the error of an answer to a posted message, with the kinds of [Channel]. text is the body of the
// answer. pause is the pause of a RateLimitError if the answer names none.
func Judge(resp *http.Response, text []byte, pause time.Duration) error {
	const most = 200
	code := resp.StatusCode
	said := fmt.Sprintf("%d %.*q", code, most, text)
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusTooManyRequests:
		return &RateLimitError{After: retryAfter(resp, pause)}
	case code == http.StatusServiceUnavailable && retryAfter(resp, 0) > 0:
		// With a 503 and a time to come again, the receiver has not accepted the message. A 503 without a time may come
		// from a proxy while the receiver handles the message.
		return &RateLimitError{After: retryAfter(resp, 0)}
	case code >= 300 && code < 400:
		return fmt.Errorf("%w: the receiver redirects, which is not followed (%s)", ErrNotSent, said)
	case code == http.StatusUnauthorized, code == http.StatusProxyAuthRequired:
		return fmt.Errorf("%w: the receiver does not accept the signature (%s)", ErrNotSent, said)
	case code == http.StatusRequestTimeout, code == http.StatusConflict:
		// The result is unknown. The receiver stopped reading, or handles a request with the same key at this moment.
	case code >= 400 && code < 500, code == http.StatusNotImplemented:
		return &RejectedError{Why: said}
	}
	return fmt.Errorf("the receiver answers %s", said)
}

// retryAfter returns the pause of the header Retry-After, in seconds or as a date. If the header is absent, it returns
// the parameter "fallback".
func retryAfter(resp *http.Response, fallback time.Duration) time.Duration {
	const most = 24 * time.Hour
	text := resp.Header.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= int(most/time.Second) {
		return max(time.Duration(n)*time.Second, time.Second)
	}
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if at, err2 := http.ParseTime(text); err == nil && err2 == nil {
		return min(max(at.Sub(date), time.Second), most)
	}
	return fallback
}

// mostRecent is the size of a [Recent].
const mostRecent = 4096

// Recent holds the mostRecent values that were stored last. The zero value is empty.
type Recent[T any] struct {
	values map[string]T
	keys   []string // oldest first
}

// Put stores a value under a key. It replaces the key's earlier value.
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

// Get returns the value of a key.
func (r *Recent[T]) Get(key string) (value T, ok bool) {
	value, ok = r.values[key]
	return value, ok
}
