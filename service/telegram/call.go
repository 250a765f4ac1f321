package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/channel"
)

// maxAnswer exceeds the largest answer of the server, which has a hundred updates.
const maxAnswer = 16 << 20

// badRequest is an answer 400: the server has understood the request and refuses it.
type badRequest struct {
	*channel.RejectedError
	moved int64 // the new chat of a migrated group; 0 means not migrated
}

// Unwrap returns the *channel.RejectedError, so that errors.As finds it.
func (e *badRequest) Unwrap() error { return e.RejectedError }

// callMethod makes one request with JSON parameters and decodes its result into result, unless result is
// nil. Its errors have the kinds of channel.Channel.
func (c *Channel) callMethod(ctx context.Context, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("telegram: %s: %w: %w", method, channel.ErrNotSent, err)
	}
	return c.postBody(ctx, method, "application/json", bytes.NewReader(body), int64(len(body)), result)
}

func (c *Channel) postBody(ctx context.Context, method, kind string, body io.Reader, size int64, result any) error {
	err := c.tryOnce(ctx, method, kind, body, size, result)
	if err == nil {
		return nil
	}
	return c.cleanError(fmt.Errorf("telegram: %s: %w", method, err))
}

func (c *Channel) tryOnce(ctx context.Context, method, kind string, body io.Reader, size int64, result any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/bot"+string(c.opt.Token)+"/"+method, body)
	if err != nil {
		return fmt.Errorf("%w: %w", channel.ErrNotSent, channel.WithoutURL(err))
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", kind)
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
	var a answer
	if json.Unmarshal(text, &a) != nil {
		return foreign(resp)
	}
	if !a.OK {
		return refusal(resp, a)
	}
	if result == nil {
		return nil
	}
	if err := unmarshalResult(a.Result, result); err != nil {
		return fmt.Errorf("the answer is not as it should be: %w", err)
	}
	return nil
}

// unmarshalResult decodes the result of a method. It does not decode the single updates of a list, because one
// ambiguous update must not stop the others.
func unmarshalResult(text []byte, result any) error {
	if _, list := result.(*[]json.RawMessage); list {
		return json.Unmarshal(text, result)
	}
	return strict.Unmarshal(text, result)
}

// foreign returns the error of an answer that is not JSON. Such an answer comes from a program between this machine and
// the server, for example a failing proxy. Only an answer that means the same from both is treated as the server's own.
func foreign(resp *http.Response) error {
	switch code := resp.StatusCode; code {
	case http.StatusTooManyRequests, http.StatusRequestEntityTooLarge:
		return refusal(resp, answer{})
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return fmt.Errorf("%w: something before the server wants a login (%d)", channel.ErrNotSent, code)
	default:
		if code >= 300 && code < 400 {
			return refusal(resp, answer{})
		}
		return fmt.Errorf("the answer is not the Bot API's (%d): a proxy's perhaps", code)
	}
}

// refusal returns the error of a refusing answer.
func refusal(resp *http.Response, a answer) error {
	code := a.ErrorCode
	if code == 0 {
		code = resp.StatusCode
	}
	said := strconv.Itoa(code)
	if a.Description != "" {
		const most = 300
		said = fmt.Sprintf("%d %.*s", code, most, a.Description)
	}
	switch {
	case code == http.StatusTooManyRequests:
		return &channel.RateLimitError{After: retryAfter(resp, a)}
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%w: the server does not accept the token (%s)", channel.ErrNotSent, said)
	case code == http.StatusConflict:
		return fmt.Errorf("%w: another program polls with this token, or a webhook is set (%s)", channel.ErrNotSent, said)
	case code == http.StatusBadRequest:
		if a.Parameters.MigrateTo != 0 {
			said += fmt.Sprintf("; the group is now %d", a.Parameters.MigrateTo)
		}
		return &badRequest{&channel.RejectedError{Why: said}, a.Parameters.MigrateTo}
	case code == http.StatusForbidden, code == http.StatusNotFound, code == http.StatusRequestEntityTooLarge:
		return &channel.RejectedError{Why: said}
	case code >= 300 && code < 400:
		return fmt.Errorf("%w: the server redirects, which is not followed (%s)", channel.ErrNotSent, said)
	}
	return fmt.Errorf("the server answers %s", said)
}

func retryAfter(resp *http.Response, a answer) time.Duration {
	seconds := a.Parameters.RetryAfter
	if seconds <= 0 {
		seconds, _ = strconv.Atoi(resp.Header.Get("Retry-After")) // 0 if it is not a number
	}
	return time.Duration(max(seconds, 1)) * time.Second
}

// cleanError returns err, or an error of the same kind without the token if the text of err contains the token. A proxy
// or the caller's own transport may have put the token there.
func (c *Channel) cleanError(err error) error {
	if !strings.Contains(err.Error(), c.secret) {
		return err
	}
	text := c.hideToken(err.Error())
	var bad *badRequest
	var rejected *channel.RejectedError
	var kind error
	switch {
	case errors.As(err, &bad):
		return &badRequest{&channel.RejectedError{Why: c.hideToken(bad.Why)}, bad.moved}
	case errors.As(err, &rejected):
		return &channel.RejectedError{Why: c.hideToken(rejected.Why)}
	case errors.Is(err, context.Canceled):
		kind = context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		kind = context.DeadlineExceeded
	}
	if errors.Is(err, channel.ErrNotSent) {
		kind = errors.Join(kind, channel.ErrNotSent)
	}
	return &cleaned{text, kind}
}

func (c *Channel) hideToken(text string) string { return strings.ReplaceAll(text, c.secret, "(token)") }

// cleaned is an error with a removed token.
type cleaned struct {
	text string
	kind error
}

func (e *cleaned) Error() string { return e.text }

func (e *cleaned) Unwrap() error { return e.kind }
