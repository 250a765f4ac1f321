package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// post is the body of a posted request.
type post struct {
	Type    string   `json:"type"`         // "message" or "edit"
	ID      string   `json:"id,omitempty"` // the receiver's id of the edited message
	Chat    string   `json:"chat"`
	Text    string   `json:"text"`
	Format  string   `json:"format"`
	ReplyTo string   `json:"reply_to,omitempty"`
	Buttons []button `json:"buttons,omitempty"`
	File    *file    `json:"file,omitempty"`
	Key     string   `json:"key,omitempty"`
	Silent  bool     `json:"silent,omitempty"`
}

type button struct {
	Label string `json:"label"`
	Data  string `json:"data"`
}

const (
	maxPosted = 32 << 20        // limit of a posted file, in bytes
	maxAnswer = 64 << 10        // more than any receiver answers
	moment    = 5 * time.Second // the pause if the receiver names none
)

// Send posts a message. Its id is the receiver's id, or its key if the receiver returns none.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	p, err := c.composePost("message", m)
	if err != nil {
		return "", err
	}
	if m.File != nil {
		if p.File, err = load(m.File); err != nil {
			return "", &channel.RejectedError{Why: err.Error()}
		}
	}
	id, err := c.postReply(ctx, p)
	if err != nil {
		return "", err
	}
	id = cmp.Or(id, m.Key)
	c.landed(id)
	return id, nil
}

// Edit posts a message's new text and buttons with its id. A receiver that cannot edit refuses it.
func (c *Channel) Edit(ctx context.Context, id string, m channel.Outbound) error {
	p, err := c.composePost("edit", m)
	if err != nil {
		return err
	}
	p.ID = id
	_, err = c.postReply(ctx, p)
	return err
}

func (c *Channel) composePost(kind string, m channel.Outbound) (p post, err error) {
	if n := channel.Units(m.Text); c.opt.Text > 0 && n > c.opt.Text {
		return p, &channel.RejectedError{Why: fmt.Sprintf("its text has %d characters, and %d are allowed", n, c.opt.Text)}
	}
	p = post{Type: kind, Chat: m.Chat, Text: m.Text, Format: string(c.opt.Format), ReplyTo: m.ReplyTo, Key: m.Key,
		Silent: m.Silent}
	if m.Plain {
		p.Format = string(channel.Plain)
	}
	for _, b := range m.Buttons {
		p.Buttons = append(p.Buttons, button{b.Label, b.Data})
	}
	return p, nil
}

// load reads a file for posting.
func load(f *channel.File) (*file, error) {
	r, err := os.Open(f.Path)
	if err != nil {
		return nil, fmt.Errorf("its file cannot be read: %w", err)
	}
	defer func() { _ = r.Close() }() // the file was only read
	b, err := io.ReadAll(io.LimitReader(r, maxPosted+1))
	if err != nil {
		return nil, fmt.Errorf("its file cannot be read: %w", err)
	}
	if len(b) > maxPosted {
		return nil, fmt.Errorf("its file has more than %d bytes", maxPosted)
	}
	return &file{Name: attachment.Name(f.Name), MIME: f.MIME, Data: b}, nil
}

func (c *Channel) postReply(ctx context.Context, p post) (id string, err error) {
	body, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("webhook: %w: %w", channel.ErrNotSent, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.opt.ReplyURL, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("webhook: %w: %w", channel.ErrNotSent, channel.WithoutURL(err))
	}
	c.signRequest(req, p, body)
	resp, err := channel.Do(c.client, req)
	if err != nil {
		return "", fmt.Errorf("webhook: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	// The message was accepted with a 2xx answer. An unreadable answer only means that its id is
	// unknown.
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err := channel.Judge(resp, text, moment); err != nil {
		return "", fmt.Errorf("webhook: %w", err)
	}
	var said struct {
		ID string `json:"id"`
	}
	_ = strict.Unmarshal(text, &said) // a receiver may answer without a body
	return said.ID, nil
}

func (c *Channel) signRequest(req *http.Request, p post, body []byte) {
	stamp := strconv.FormatInt(c.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(TimestampHeader, stamp)
	req.Header.Set(SignatureHeader, Sign(c.opt.Secret, stamp, body))
	if p.Key != "" {
		req.Header.Set(KeyHeader, p.Key)
	}
	// net/http treats a POST with an idempotency key as repeatable, and repeats it when a reused connection breaks.
	// Only the caller may decide to repeat it. So each request has its own connection, and its body cannot be read
	// again.
	req.GetBody = nil
	req.Close = true
}
