package ntfy

import (
	"bufio"
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

// maxLine is the longest line of the server that is read, in bytes.
const maxLine = 64 << 10

// line is a line of the server.
type line struct {
	ID      string `json:"id"`
	Time    int64  `json:"time"`
	Event   string `json:"event"`
	Message string `json:"message"`
}

// Poll returns the answers and the pairing codes after the cursor, which is the id of a message. The server returns all
// stored messages if it does not know the cursor.
func (c *Channel) Poll(ctx context.Context, cursor string) (list []channel.Inbound, next string, err error) {
	if err := c.protect(ctx); err != nil {
		return nil, cursor, err
	}
	since := cursor
	if since == "" {
		since = "all"
	}
	open, cancel := context.WithTimeout(ctx, c.opt.PollFor)
	defer cancel()
	resp, err := c.do(open, http.MethodGet, "/"+c.answers+"/json?since="+url.QueryEscape(since), nil, true)
	if err == nil {
		defer func() { _ = resp.Body.Close() }() // the rest is read by the next poll
		list, next, err = c.read(bufio.NewReaderSize(resp.Body, maxLine), cursor)
	}
	switch {
	case ctx.Err() != nil:
		return nil, cursor, fmt.Errorf("ntfy: %w", ctx.Err())
	case next != "" && next != cursor:
		return list, next, nil
	case open.Err() != nil: // no message came in time
		return nil, cursor, nil
	case err != nil:
		return nil, cursor, fmt.Errorf("ntfy: %w", err)
	}
	return nil, cursor, nil
}

// read returns the next messages of a stream and the id of the last one.
func (c *Channel) read(r *bufio.Reader, cursor string) (list []channel.Inbound, next string, err error) {
	next = cursor
	for {
		text, err := r.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server has ended the stream")
			}
			return list, next, channel.WithoutURL(err)
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return list, next, errors.New("the server sends something else than JSON")
		}
		if l.Event != "message" || l.ID == "" {
			continue
		}
		if m, ok := c.inbound(l); ok {
			list = append(list, m)
		}
		next = l.ID
		if more, _ := r.Peek(r.Buffered()); !strings.Contains(string(more), "\n") {
			return list, next, nil
		}
	}
}

// inbound returns the answer or the code in a message. ok is false for any other text, which does nothing.
func (c *Channel) inbound(l line) (m channel.Inbound, ok bool) {
	m = channel.Inbound{Chat: c.contact, Contact: c.contact, Name: "ntfy", Sent: time.Unix(l.Time, 0)}
	text := strings.TrimSpace(l.Message)
	if b, mac, ok := c.verify(text); ok {
		// The MAC is the id, so a second copy of the answer is a repetition for the bridge.
		m.ID, m.Button, m.Text = "press:"+mac, b.Data, b.Label
		return m, true
	}
	const digits = 6
	m.ID, m.Text = l.ID, strings.Join(strings.Fields(text), "")
	return m, len(m.Text) == digits && strings.Trim(m.Text, "0123456789") == ""
}

// protect returns an error if everyone can read the topic and its name can be guessed.
func (c *Channel) protect(ctx context.Context) error {
	if c.protected || !c.opt.guessable() {
		return nil
	}
	readable, err := c.readable(ctx, string(c.opt.Topic), false)
	switch {
	case err != nil:
		return fmt.Errorf("ntfy: %w", err)
	case readable:
		return ErrGuessable
	}
	c.protected = true
	return nil
}

// readable reports whether the server lets somebody read a topic.
func (c *Channel) readable(ctx context.Context, topic string, authorized bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	resp, err := c.do(ctx, http.MethodGet, "/"+topic+"/auth", nil, authorized)
	if errors.Is(err, errDenied) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, resp.Body.Close()
}
