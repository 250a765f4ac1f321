package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/channel"
)

// maxAnswer exceeds the largest answer, which is a hundred messages.
const maxAnswer = 16 << 20

// userAgent has the form that Discord demands from bots.
const userAgent = "DiscordBot (https://github.com/perlica/perlica, 1)"

// route is a kind of request: a method, and a path with %s for each id. The first id of a path that begins with
// "/channels/" is the channel of a bucket.
type route string

const (
	getGateway     route = "GET /gateway/bot"
	getSelf        route = "GET /users/@me"
	getGuilds      route = "GET /users/@me/guilds"
	getApplication route = "GET /applications/@me"
	getChannel     route = "GET /channels/%s"
	getMessages    route = "GET /channels/%s/messages"
	getMessage     route = "GET /channels/%s/messages/%s"
	postMessage    route = "POST /channels/%s/messages"
	patchMessage   route = "PATCH /channels/%s/messages/%s"
	deleteMessage  route = "DELETE /channels/%s/messages/%s"
	postTyping     route = "POST /channels/%s/typing"
	putReaction    route = "PUT /channels/%s/messages/%s/reactions/%s/@me"
	acknowledge    route = "POST /interactions/%s/%s/callback"
)

// body is the body of a request. Its zero value is empty.
type body struct {
	kind string
	r    io.Reader
	size int64
}

func jsonBody(v any) (body, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return body{}, fmt.Errorf("%w: %w", channel.ErrNotSent, err)
	}
	return body{"application/json", bytes.NewReader(b), int64(len(b))}, nil
}

// refusedError is an answer with an error code of Discord that refuses the request for good.
type refusedError struct {
	*channel.RejectedError
	code int
}

// Unwrap returns the *channel.RejectedError, so that errors.As finds it.
func (e *refusedError) Unwrap() error { return e.RejectedError }

// hasCode reports whether an error is a refusal with one of these codes.
func hasCode(err error, codes ...int) bool {
	var refused *refusedError
	if !errors.As(err, &refused) {
		return false
	}
	for _, code := range codes {
		if refused.code == code {
			return true
		}
	}
	return false
}

// call makes one request and decodes its answer into result, unless result is nil. Its errors have the kinds of
// channel.Channel.
func (c *Channel) call(ctx context.Context, r route, b body, result any, ids ...string) error {
	return c.callWith(ctx, r, "", b, result, ids...)
}

// callWith is call with a query.
func (c *Channel) callWith(ctx context.Context, r route, query string, b body, result any, ids ...string) error {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	if err := c.tryOnce(ctx, r, query, b, result, ids); err != nil {
		return c.clean(fmt.Errorf("discord: %s: %w", r, err))
	}
	return nil
}

func (c *Channel) tryOnce(ctx context.Context, r route, query string, b body, result any, ids []string) error {
	method, path, _ := strings.Cut(string(r), " ")
	chat, escaped := "", make([]any, len(ids))
	for i, id := range ids {
		escaped[i] = url.PathEscape(id)
	}
	if strings.HasPrefix(path, "/channels/") {
		chat = ids[0]
	}
	if r != acknowledge { // Discord exempts these requests from the global limit
		if err := c.limits.await(ctx, string(r), chat); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+fmt.Sprintf(path, escaped...)+query, b.r)
	if err != nil {
		return fmt.Errorf("%w: %w", channel.ErrNotSent, channel.WithoutURL(err))
	}
	req.ContentLength = b.size
	if b.kind != "" {
		req.Header.Set("Content-Type", b.kind)
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Authorization", "Bot "+string(c.opt.Token))
	resp, err := channel.Do(c.client, req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("the answer breaks off: %w", channel.WithoutURL(err))
	}
	if len(text) > maxAnswer {
		return fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	var p problem
	known := json.Unmarshal(text, &p) == nil
	after := p.pause(resp)
	c.limits.learn(string(r), chat, resp.Header, after, p.Global || resp.Header.Get("X-RateLimit-Global") == "true")
	switch {
	case after > 0:
		return &channel.RateLimitError{After: after}
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		if result == nil {
			return nil
		}
		if err := unmarshal(text, result); err != nil {
			return fmt.Errorf("the answer is not as it should be: %w", err)
		}
		return nil
	}
	return p.refusal(resp.StatusCode, known && p.Message != "")
}

// unmarshal decodes an answer. It does not decode the single messages of a list, because one ambiguous message must
// not stop the others.
func unmarshal(text []byte, result any) error {
	if _, list := result.(*[]json.RawMessage); list {
		return json.Unmarshal(text, result)
	}
	return strict.Unmarshal(text, result)
}

// problem is the body of a refusing answer.
type problem struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Errors  json.RawMessage `json:"errors"` // the faults of single fields
	Retry   float64         `json:"retry_after"`
	Global  bool            `json:"global"`
}

// pause returns the pause that an answer 429 demands, or 0 for another answer.
func (p problem) pause(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests {
		return 0
	}
	after := max(seconds(fmt.Sprint(p.Retry)), seconds(resp.Header.Get("Retry-After")))
	if after == 0 {
		return time.Second
	}
	return after
}

// meanings explains the error codes that a newcomer meets.
var meanings = map[int]string{
	unknownChannel:     "the channel does not exist any more, or the bot is not there",
	unknownMessage:     "the message does not exist any more",
	missingAccess:      "the bot may not see this channel",
	noDirectMessages:   "this person takes no direct messages from the bot",
	missingPermissions: "the bot lacks a permission here; 'perlica service check discord' names it",
	tooLargeBody:       "it is larger than this server allows",
	archivedThread:     "the thread is archived",
}

// refusal returns the error of a refusing answer. The parameter "ours" is true if the answer has the form of Discord's
// API. Any other answer comes from a program between this machine and Discord.
func (p problem) refusal(status int, ours bool) error {
	const most = 300
	said := fmt.Sprint(status)
	if ours {
		said = fmt.Sprintf("%d: %d %.*s", status, p.Code, most, p.Message)
		if len(p.Errors) > 0 {
			said += fmt.Sprintf(" %.*s", most, p.Errors)
		}
		if m := meanings[p.Code]; m != "" {
			said += " (" + m + ")"
		}
	}
	switch {
	case status >= 300 && status < 400:
		return fmt.Errorf("%w: the server redirects, which is not followed (%s)", channel.ErrNotSent, said)
	case status == http.StatusUnauthorized && ours:
		return fmt.Errorf("%w: Discord does not accept the token (%s)", channel.ErrNotSent, said)
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired:
		return fmt.Errorf("%w: something before Discord wants a login (%s)", channel.ErrNotSent, said)
	case status == http.StatusRequestEntityTooLarge, ours && status >= 400 && status < 500:
		return &refusedError{&channel.RejectedError{Why: said}, p.Code}
	case ours:
		return fmt.Errorf("the answer of Discord: %s", said)
	}
	return fmt.Errorf("the answer is not that of Discord's API (%s): perhaps a proxy's", said)
}

// clean returns err, or an error of the same kind without the token if the text of err contains the token. A proxy or
// the caller's own transport may have put the token there.
func (c *Channel) clean(err error) error {
	secret := string(c.opt.Token)
	text := err.Error()
	if !strings.Contains(text, secret) {
		return err
	}
	text = strings.ReplaceAll(text, secret, "(token)")
	var refused *refusedError
	if errors.As(err, &refused) {
		return &refusedError{&channel.RejectedError{Why: strings.ReplaceAll(refused.Why, secret, "(token)")}, refused.code}
	}
	var kind error
	for _, k := range []error{context.Canceled, context.DeadlineExceeded, channel.ErrNotSent} {
		if errors.Is(err, k) {
			kind = errors.Join(kind, k)
		}
	}
	return &cleaned{text, kind}
}

// cleaned is an error with a removed token.
type cleaned struct {
	text string
	kind error
}

func (e *cleaned) Error() string { return e.text }

func (e *cleaned) Unwrap() error { return e.kind }
