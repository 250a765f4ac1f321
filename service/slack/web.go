package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/channel"
)

// maxAnswer exceeds the largest answer of the Web API to a call of this package.
const maxAnswer = 4 << 20

// answer is the part of every answer of the Web API that reports success.
type answer struct {
	OK     bool   `json:"ok"`
	Error  string `json:"error"`
	Needed string `json:"needed"` // the missing scope
	Said   struct {
		Messages []string `json:"messages"`
	} `json:"response_metadata"`
}

// An apiError is an answer of the Web API with an error code. It wraps an error with the kind of [channel.Channel].
type apiError struct {
	code string
	kind error
}

func (e *apiError) Error() string { return e.kind.Error() }

func (e *apiError) Unwrap() error { return e.kind }

// said reports whether an error is an answer with one of these codes.
func said(err error, codes ...string) bool {
	var e *apiError
	return errors.As(err, &e) && slices.Contains(codes, e.code)
}

// call calls a method of the Web API with the bot token.
func (c *Channel) call(ctx context.Context, method string, params url.Values, result any) error {
	return c.callWith(ctx, c.opt.BotToken, method, params, result)
}

// callWith calls a method and decodes its answer into result, unless result is nil.
func (c *Channel) callWith(ctx context.Context, token channel.Secret, method string, params url.Values,
	result any) error {
	_, err := c.callHeader(ctx, token, method, params, result)
	return err
}

// callHeader also returns the header of the answer.
func (c *Channel) callHeader(ctx context.Context, token channel.Secret, method string, params url.Values,
	result any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	header, err := c.tryOnce(ctx, token, method, params, result)
	if err != nil {
		return header, c.cleanError(fmt.Errorf("slack: %s: %w", method, err))
	}
	return header, nil
}

func (c *Channel) tryOnce(ctx context.Context, token channel.Secret, method string, params url.Values,
	result any) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.String()+"/"+method,
		strings.NewReader(params.Encode()))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", channel.ErrNotSent, channel.WithoutURL(err))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+string(token))
	resp, err := channel.Do(c.client, req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("the answer breaks off: %w", channel.WithoutURL(err))
	}
	var a answer
	switch {
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case resp.StatusCode == http.StatusOK && json.Unmarshal(text, &a) == nil && (a.OK || a.Error != ""):
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, channel.Judge(resp, nil, moment)
	default: // a failing server, or an answer of a program between this machine and Slack
		return nil, fmt.Errorf("the server answers %d", resp.StatusCode)
	}
	if !a.OK {
		return resp.Header, refusal(resp, a)
	}
	if result != nil {
		if err := strict.Unmarshal(text, result); err != nil {
			return resp.Header, fmt.Errorf("the answer is not as it should be: %w", err)
		}
	}
	return resp.Header, nil
}

// refusal returns the error of an answer with an error code.
func refusal(resp *http.Response, a answer) error {
	const most = 300
	why := a.Error
	if a.Needed != "" {
		why += ": the token lacks the scope " + a.Needed
	}
	if len(a.Said.Messages) > 0 {
		why += ": " + strings.Join(a.Said.Messages, "; ")
	}
	why = fmt.Sprintf("%.*s", most, why)
	e := &apiError{code: a.Error}
	switch a.Error {
	case "ratelimited", "rate_limited":
		limited := &http.Response{StatusCode: http.StatusTooManyRequests, Header: resp.Header}
		e.kind = channel.Judge(limited, nil, moment)
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "no_permission",
		"missing_scope", "not_allowed_token_type", "org_login_required", "ekm_access_denied", "access_denied",
		"team_access_not_granted", "two_factor_setup_required":
		// A person can repair the app. The message can then be sent.
		e.kind = fmt.Errorf("%w: Slack does not accept the token (%s)", channel.ErrNotSent, why)
	case "internal_error", "fatal_error", "request_timeout", "service_unavailable", "team_added_to_org":
		e.kind = fmt.Errorf("the server answers %s", why) // the effect may have happened
	default:
		e.kind = &channel.RejectedError{Why: why}
	}
	return e
}

// learnIdentity asks Slack for the ids of the bot, unless they are known. Without them the bot could not recognise its
// own messages.
func (c *Channel) learnIdentity(ctx context.Context) error {
	c.mu.Lock()
	known := c.self.User != ""
	c.mu.Unlock()
	if known {
		return nil
	}
	var self identity
	if err := c.call(ctx, "auth.test", nil, &self); err != nil {
		return err
	}
	if self.User == "" || self.Bot == "" {
		return errors.New("slack: auth.test: the token is not one of a bot")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self = self
	return nil
}

// addNames adds the names of the senders. The time for all names together is limited, because the messages wait for
// their acknowledgements.
func (c *Channel) addNames(ctx context.Context, list []channel.Inbound) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout/10)
	defer cancel()
	for i := range list {
		list[i].Name = c.nameOf(ctx, list[i])
	}
}

// nameOf returns the name of a message's sender. Without the scope users:read it is the name in the message, or the id.
func (c *Channel) nameOf(ctx context.Context, m channel.Inbound) string {
	c.mu.Lock()
	name, known := c.names.Get(m.Contact)
	c.mu.Unlock()
	if known {
		return name
	}
	var a struct {
		User struct {
			Name    string `json:"real_name"`
			Profile struct {
				Display string `json:"display_name"`
			} `json:"profile"`
		} `json:"user"`
	}
	err := c.call(ctx, "users.info", url.Values{"user": {m.Contact}}, &a)
	name = cmp.Or(a.User.Name, a.User.Profile.Display, m.Name, m.Contact)
	var refused *apiError
	if err == nil || errors.As(err, &refused) && !errors.As(err, new(*channel.RateLimitError)) {
		c.mu.Lock()
		c.names.Put(m.Contact, name)
		c.mu.Unlock()
	}
	return name
}

// cleanError returns an error without the tokens.
func (c *Channel) cleanError(err error) error {
	return channel.WithoutSecrets(err, c.opt.AppToken, c.opt.BotToken)
}
