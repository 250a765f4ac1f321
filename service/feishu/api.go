package feishu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/channel"
)

// maxAnswer exceeds the largest answer of the API to a call of this package.
const maxAnswer = 4 << 20

// moment is the pause if Feishu names none.
const moment = 5 * time.Second

// margin is the time before the end of a token at which a new one is fetched.
const margin = 10 * time.Minute

// token is a tenant access token.
type token struct {
	text  channel.Secret
	until time.Time // when the next token is fetched
}

// bot names the app's bot.
type bot struct {
	ID     string `json:"open_id"`
	Name   string `json:"app_name"`
	Status int    `json:"activate_status"`
}

// An apiError is an answer of the API with an error code. It wraps an error with the kind of [channel.Channel].
type apiError struct {
	code int
	kind error
}

func (e *apiError) Error() string { return e.kind.Error() }

func (e *apiError) Unwrap() error { return e.kind }

// said reports whether an error is an answer with one of these codes.
func said(err error, codes ...int) bool {
	var e *apiError
	return errors.As(err, &e) && slices.Contains(codes, e.code)
}

// https://open.feishu.cn/document/server-docs/api-call-guide/generic-error-code lists codes.
var (
	wrongSecret = []int{10003, 10014, 10015, 99991543, 1000040345}
	badToken    = []int{99991661, 99991663, 99991664, 99991665, 99991668, 99991671}
	// After these codes a person can repair the app. The message can then be sent.
	repairable = slices.Concat(wrongSecret, badToken, []int{noScope, 99991401, 99991673, 212100, 230006, 230027, 11205})
	limited    = []int{99991400, 230020, 11232, 11233, 11247}
	gone       = []int{230011, 230110} // the message was withdrawn or deleted
)

// noScope is the code of a missing scope.
const noScope = 99991672

// request is a call of the API.
type request struct {
	method, path string
	query        url.Values
	body         any       // encoded as JSON; nil means no body
	raw          io.Reader // the body instead
	kind         string    // the media type of raw
	open         bool      // no token is sent
	slow         bool      // has the time limit of a file
}

// call makes a call, and decodes the member "data" of its answer into result, unless result is nil.
func (c *Channel) call(ctx context.Context, r request, result any) error {
	var a struct {
		Data json.RawMessage `json:"data"`
	}
	if err := c.callWhole(ctx, r, &a); err != nil || result == nil {
		return err
	}
	if err := strict.Unmarshal(a.Data, result); err != nil {
		return fmt.Errorf("feishu: %s: the answer is not as it should be: %w", r.path, err)
	}
	return nil
}

// callWhole makes a call and decodes its whole answer.
func (c *Channel) callWhole(ctx context.Context, r request, result any) error {
	limit := c.opt.Timeout
	if r.slow {
		limit *= fileTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	return c.clean(r, readAnswer(resp, result))
}

// send sends a request and returns the response. The caller closes its body.
func (c *Channel) send(ctx context.Context, r request) (*http.Response, error) {
	bearer := channel.Secret("")
	if !r.open {
		var err error
		if bearer, err = c.accessToken(ctx); err != nil {
			return nil, notSent(err)
		}
	}
	body := r.raw
	if r.body != nil {
		body, r.kind = strings.NewReader(asJSON(r.body)), "application/json; charset=utf-8"
	}
	at := c.base + r.path
	if len(r.query) > 0 {
		at += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, at, body)
	if err != nil {
		return nil, c.clean(r, fmt.Errorf("%w: %w", channel.ErrNotSent, channel.WithoutURL(err)))
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+string(bearer))
	}
	resp, err := channel.Do(c.client, req)
	return resp, c.clean(r, err)
}

// clean returns an error with the path of its request and without secrets. It forgets a token that Feishu refuses.
func (c *Channel) clean(r request, err error) error {
	if err == nil {
		return nil
	}
	c.mu.Lock()
	bearer := c.token.text
	if said(err, badToken...) {
		c.token = token{}
	}
	c.mu.Unlock()
	return channel.WithoutSecrets(fmt.Errorf("feishu: %s: %w", r.path, err), c.opt.Secret, bearer)
}

// readAnswer reads an answer, and decodes it into result unless result is nil.
func readAnswer(resp *http.Response, result any) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("the answer breaks off: %w", channel.WithoutURL(err))
	}
	if len(text) > maxAnswer {
		return fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	if err := refusal(resp, text); err != nil {
		return err
	}
	if result == nil {
		return nil
	}
	if err := strict.Unmarshal(text, result); err != nil {
		return fmt.Errorf("the answer is not as it should be: %w", err)
	}
	return nil
}

// refusal returns the error of an answer, or nil for an answer without an error.
func refusal(resp *http.Response, text []byte) error {
	var a struct {
		Code *int   `json:"code"`
		Msg  string `json:"msg"`
	}
	readable := json.Unmarshal(text, &a) == nil && a.Code != nil
	switch status := resp.StatusCode; {
	case status == http.StatusTooManyRequests, readable && slices.Contains(limited, *a.Code):
		return &channel.RateLimitError{After: reset(resp)}
	case status >= 500:
		return fmt.Errorf("the server answers %d", status) // the effect may have happened
	case status >= 300 && status < 400:
		return channel.Judge(resp, nil, moment)
	case !readable: // an answer of a program between this machine and Feishu
		return fmt.Errorf("the server answers %d", status)
	case *a.Code == 0:
		return nil
	}
	why := fmt.Sprintf("%d %.300s", *a.Code, a.Msg)
	e := &apiError{code: *a.Code, kind: &channel.RejectedError{Why: why}}
	switch {
	case slices.Contains(repairable, e.code):
		e.kind = fmt.Errorf("%w: Feishu does not accept the app (%s)", channel.ErrNotSent, why)
	case slices.Contains(unsure, e.code):
		e.kind = fmt.Errorf("the server answers %s", why)
	}
	return e
}

// unsure are codes after which the result is unknown. They mean an internal error, or that a message with the same
// key is being sent.
var unsure = []int{1, 2200, 55001, 90203, 1000040343, 230049}

// reset returns the pause of an answer that limits the rate.
func reset(resp *http.Response) time.Duration {
	const most = 24 * time.Hour
	n, err := strconv.Atoi(resp.Header.Get("X-Ogw-Ratelimit-Reset"))
	if err != nil || n < 0 {
		return moment
	}
	return min(max(time.Duration(n)*time.Second, time.Second), most)
}

// notSent returns an error that wraps channel.ErrNotSent, unless the error is final.
func notSent(err error) error {
	var rejected *channel.RejectedError
	if errors.Is(err, channel.ErrNotSent) || errors.As(err, &rejected) {
		return err
	}
	return fmt.Errorf("%w: %w", channel.ErrNotSent, err)
}

// accessToken returns a valid token. It fetches a new one some minutes before the end of the last one.
func (c *Channel) accessToken(ctx context.Context) (channel.Secret, error) {
	c.mu.Lock()
	t := c.token
	c.mu.Unlock()
	if t.text != "" && time.Now().Before(t.until) {
		return t.text, nil
	}
	var a struct {
		Token  string `json:"tenant_access_token"`
		Expire int    `json:"expire"` // seconds
	}
	err := c.callWhole(ctx, request{method: http.MethodPost, path: "/open-apis/auth/v3/tenant_access_token/internal",
		open: true, body: map[string]string{"app_id": c.opt.AppID, "app_secret": string(c.opt.Secret)}}, &a)
	if err != nil {
		return "", err
	}
	if a.Token == "" || strings.ContainsAny(a.Token, " \t\r\n") {
		return "", errors.New("feishu: the answer has no token")
	}
	valid := time.Duration(a.Expire) * time.Second
	t = token{channel.Secret(a.Token), time.Now().Add(max(valid-margin, valid/2))}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = t
	return t.text, nil
}

// askBot asks Feishu for the bot of the app.
func (c *Channel) askBot(ctx context.Context) (bot, error) {
	var a struct {
		Bot bot `json:"bot"`
	}
	err := c.callWhole(ctx, request{method: http.MethodGet, path: "/open-apis/bot/v3/info"}, &a)
	if err == nil && !isID(a.Bot.ID, "ou_") {
		err = errors.New("feishu: the app has no bot")
	}
	return a.Bot, err
}

// learnBot asks Feishu for the id of the bot, unless it is known. Without it the bot could not recognise a mention.
func (c *Channel) learnBot(ctx context.Context) error {
	c.mu.Lock()
	known := c.self.ID != ""
	c.mu.Unlock()
	if known {
		return nil
	}
	self, err := c.askBot(ctx)
	if err != nil {
		return err
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
		list[i].Name = c.nameOf(ctx, list[i].Contact)
	}
}

// nameOf returns the name of a person, or the id if the app may not see the name.
func (c *Channel) nameOf(ctx context.Context, person string) string {
	c.mu.Lock()
	name, known := c.names.Get(person)
	c.mu.Unlock()
	if known {
		return name
	}
	var a struct {
		User struct {
			Name string `json:"name"`
		} `json:"user"`
	}
	err := c.call(ctx, request{method: http.MethodGet, path: "/open-apis/contact/v3/users/" + person,
		query: url.Values{"user_id_type": {"open_id"}}}, &a)
	name = person
	if a.User.Name != "" {
		name = a.User.Name
	}
	var refused *apiError
	if err == nil || errors.As(err, &refused) && !said(err, badToken...) {
		c.mu.Lock()
		c.names.Put(person, name)
		c.mu.Unlock()
	}
	return name
}

// asJSON returns a value as JSON without escapes for HTML, which would lengthen a card.
func asJSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil { // strings and numbers always encode
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// isJSON reports whether a response has JSON instead of a file.
func isJSON(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}
