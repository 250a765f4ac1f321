package ntfy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// Send publishes a text to the topic. Each button becomes an action that publishes its signed option.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	switch {
	case m.Chat != c.contact:
		return "", &channel.RejectedError{Why: "it is for another topic"}
	case m.File != nil:
		return "", &channel.RejectedError{Why: "files are not sent here"}
	case channel.Units(m.Text) > maxText:
		return "", &channel.RejectedError{Why: fmt.Sprintf("its text is longer than %d", maxText)}
	}
	out := Message{Topic: string(c.opt.Topic), Title: "Perlica", Message: m.Text, Priority: Usual}
	switch {
	case len(m.Buttons) > 0:
		out.Priority = Urgent
	case m.Silent:
		out.Priority = Quiet
	}
	for _, b := range m.Buttons {
		out.Actions = append(out.Actions, Action{Action: "http", Label: b.Label, URL: c.base + "/" + c.answers,
			Method: http.MethodPost, Body: c.sign(b), Clear: true})
	}
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // a server limits the size of the JSON
	if err := e.Encode(out); err != nil {
		return "", fmt.Errorf("ntfy: %w: %w", channel.ErrNotSent, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	resp, err := c.do(ctx, http.MethodPost, "/", &body, true)
	if err != nil {
		return "", fmt.Errorf("ntfy: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	var sent line
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxLine)).Decode(&sent); err != nil || sent.ID == "" {
		return "", errors.New("ntfy: the answer has no id")
	}
	return sent.ID, nil
}

// errDenied says that the server denies access.
var errDenied = errors.New("the server denies the access")

// pause is the pause after a rate limit. The server names none.
const pause = 30 * time.Second

// do makes a request and returns the answer if it is a success. The caller closes its body. Its errors have the kinds
// of channel.Channel.
func (c *Channel) do(ctx context.Context, method, path string, body io.Reader,
	authorized bool) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", channel.ErrNotSent, channel.WithoutURL(err))
	}
	req.GetBody = nil // otherwise net/http could repeat the request
	if authorized && c.opt.Token != "" {
		req.Header.Set("Authorization", "Bearer "+string(c.opt.Token))
	}
	resp, err := channel.Do(c.client, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	const most = 1 << 10
	text, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // without the text, only the status counts
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return nil, fmt.Errorf("%w: %w (%d)", channel.ErrNotSent, errDenied, resp.StatusCode)
	}
	said := strings.ReplaceAll(string(text), string(c.opt.Topic), "(topic)")
	if c.opt.Token != "" {
		said = strings.ReplaceAll(said, string(c.opt.Token), "(token)")
	}
	return nil, channel.Judge(resp, []byte(said), pause)
}
