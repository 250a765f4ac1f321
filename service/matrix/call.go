package matrix

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

	"github.com/perlica/perlica/service/channel"
)

// maxAnswer is the largest answer of the server that is read, in bytes.
const maxAnswer = 32 << 20

// A refusal is an error that the server explains with a code.
type refusal struct {
	code string // such as M_FORBIDDEN
	kind error
}

func (e *refusal) Error() string { return e.kind.Error() }

// Unwrap returns the error with the kinds of channel.Channel.
func (e *refusal) Unwrap() error { return e.kind }

// codeOf returns the server's code of an error, or "".
func codeOf(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.code
	}
	return ""
}

// at returns a path of the API. It escapes the parts.
func at(path string, parts ...any) string {
	escaped := make([]any, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(p.(string))
	}
	return fmt.Sprintf(path, escaped...)
}

// call makes one request with a JSON body and decodes its result into the parameter "result", unless result is nil.
func (c *Channel) call(ctx context.Context, method, path string, query url.Values, body, result any) error {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("matrix: %w: %w", channel.ErrNotSent, err)
		}
		content = bytes.NewReader(data)
	}
	return c.send(ctx, request{method, path, query, "application/json", content, -1}, result)
}

// request is one request to the server.
type request struct {
	method, path string
	query        url.Values
	kind         string // the type of the content
	content      io.Reader
	size         int64 // length of the content, or -1 if net/http knows it
}

// send makes a request. Its errors have the kinds of channel.Channel.
func (c *Channel) send(ctx context.Context, r request, result any) error {
	resp, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("matrix: the answer breaks off: %w", channel.WithoutURL(err))
	case len(text) > maxAnswer:
		return fmt.Errorf("matrix: the answer has more than %d bytes", maxAnswer)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("matrix: the answer is not as it should be: %w", err)
	}
	return nil
}

// open makes a request and returns the answer if it is a success. The caller closes its body.
func (c *Channel) open(ctx context.Context, r request) (*http.Response, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, r.content)
	if err != nil {
		return nil, fmt.Errorf("matrix: %w: %w", channel.ErrNotSent, channel.WithoutURL(err))
	}
	if r.size >= 0 {
		req.ContentLength = r.size
	}
	req.GetBody = nil // otherwise net/http could repeat the request
	req.Header.Set("Authorization", "Bearer "+string(c.opt.Token))
	if r.content != nil {
		req.Header.Set("Content-Type", r.kind)
	}
	resp, err := channel.Do(c.client, req)
	if err != nil {
		return nil, fmt.Errorf("matrix: %w", err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()                 // the body was read
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // without the text, only the status counts
	return nil, c.judge(resp, text)
}

// judge returns the error of an answer that is not a success.
func (c *Channel) judge(resp *http.Response, text []byte) error {
	var a struct {
		Code  string `json:"errcode"`
		Error string `json:"error"`
		Soft  bool   `json:"soft_logout"`
		Retry int64  `json:"retry_after_ms"`
	}
	_ = json.Unmarshal(text, &a) // an answer of a proxy is no JSON
	const most = 200
	said := strings.ReplaceAll(fmt.Sprintf("%d %s %.*s", resp.StatusCode, a.Code, most, a.Error), string(c.opt.Token),
		"(token)")
	var kind error
	switch {
	case resp.StatusCode == http.StatusUnauthorized && a.Soft:
		kind = fmt.Errorf("%w: the server has ended the login for now, so a new token is needed (%s)", channel.ErrNotSent,
			said)
	case resp.StatusCode == http.StatusUnauthorized:
		kind = fmt.Errorf("%w: the server does not accept the token (%s)", channel.ErrNotSent, said)
	case a.Code == "M_LIMIT_EXCEEDED" || resp.StatusCode == http.StatusTooManyRequests:
		resp.StatusCode = http.StatusTooManyRequests
		const shortest = time.Second
		kind = channel.Judge(resp, nil, max(time.Duration(a.Retry)*time.Millisecond, shortest))
	case a.Code != "" && resp.StatusCode >= 400 && resp.StatusCode < 500:
		kind = &channel.RejectedError{Why: said}
	default:
		kind = channel.Judge(resp, []byte(strings.ReplaceAll(string(text), string(c.opt.Token), "(token)")), 0)
	}
	return fmt.Errorf("matrix: %w", &refusal{a.Code, kind})
}
