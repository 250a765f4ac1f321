package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/channel"
)

// maxEnvelope exceeds the largest envelope.
const maxEnvelope = 4 << 20

// connection is a WebSocket to Slack.
type connection struct {
	ws *websocket.Conn
	// retiring says that Slack closes the connection soon. Its messages still count. Channel.mu guards it.
	retiring bool
}

// envelope is a message that waits for its acknowledgement.
type envelope struct {
	n  int
	id string // the envelope's id
	on *connection
	channel.Inbound
}

// frame is an object that Slack sends over a WebSocket.
type frame struct {
	Type     string          `json:"type"`
	Reason   string          `json:"reason"`
	Envelope string          `json:"envelope_id"`
	Payload  json.RawMessage `json:"payload"`

	// The greeting has these members.
	Connections int `json:"num_connections"` // of all programs with the app-level token
	Info        struct {
		App string `json:"app_id"`
	} `json:"connection_info"`
}

// Poll first acknowledges the messages up to the cursor, because the caller has stored them. It then waits for further
// messages. It opens a connection if necessary.
func (c *Channel) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	return c.life.Poll(ctx, cursor, c.pollOnce)
}

func (c *Channel) pollOnce(ctx context.Context, cursor string) (list []channel.Inbound, next string, err error) {
	c.acknowledgeUpTo(ctx, cursor)
	end := time.NewTimer(c.opt.PollFor)
	defer end.Stop()
	for {
		c.mu.Lock()
		change := c.change
		for _, e := range c.waiting {
			list = append(list, e.Inbound)
		}
		last := c.count
		open := slices.ContainsFunc(c.conns, func(at *connection) bool { return !at.retiring })
		refused := c.refused
		c.refused = nil
		c.mu.Unlock()
		switch {
		case len(list) > 0:
			c.addNames(ctx, list)
			return list, c.instance + "/" + strconv.Itoa(last), nil
		case ctx.Err() != nil:
			return nil, cursor, ctx.Err()
		case refused != nil:
			return nil, cursor, refused
		case !open:
			if err := c.connect(ctx); err != nil {
				return nil, cursor, c.cleanError(err)
			}
			continue
		}
		select {
		case <-change:
		case <-end.C:
			return nil, cursor, nil
		case <-ctx.Done():
			return nil, cursor, ctx.Err()
		}
	}
}

// acknowledgeUpTo acknowledges the messages up to a cursor of this process. An acknowledgement may be lost. Slack then
// repeats the message, and the caller recognises its id.
func (c *Channel) acknowledgeUpTo(ctx context.Context, cursor string) {
	instance, number, _ := strings.Cut(cursor, "/")
	n, err := strconv.Atoi(number)
	if instance != c.instance || err != nil {
		return
	}
	c.mu.Lock()
	var done []envelope
	for len(c.waiting) > 0 && c.waiting[0].n <= n {
		done = append(done, c.waiting[0])
		c.waiting = c.waiting[1:]
	}
	c.changed()
	c.mu.Unlock()
	for _, e := range done {
		c.acknowledge(ctx, e.on, e.id)
	}
}

func (c *Channel) acknowledge(ctx context.Context, on *connection, envelope string) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	b, err := json.Marshal(map[string]string{"envelope_id": envelope})
	if err == nil {
		_ = on.ws.Write(ctx, websocket.MessageText, b) // Slack repeats an envelope without an acknowledgement
	}
}

// connect opens a connection and waits for Slack's greeting.
func (c *Channel) connect(ctx context.Context) error {
	if err := c.learnIdentity(ctx); err != nil {
		return err
	}
	at, _, err := c.dial(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, at)
	c.life.Go(func() { c.readFrames(at) })
	c.life.Go(func() { c.pingSlack(at) })
	return nil
}

// dial opens a WebSocket and returns it with Slack's greeting.
func (c *Channel) dial(ctx context.Context) (at *connection, hello frame, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var a struct {
		URL string `json:"url"`
	}
	if err := c.callWith(ctx, c.opt.AppToken, "apps.connections.open", nil, &a); err != nil {
		return nil, hello, err
	}
	if scheme := "wss://"; !strings.HasPrefix(a.URL, scheme) && c.base.Scheme == "https" {
		return nil, hello, errors.New("slack: the address of the socket is not encrypted")
	}
	ws, _, err := websocket.Dial(ctx, a.URL, &websocket.DialOptions{HTTPClient: c.client})
	if err != nil {
		// The address has a secret ticket.
		text := strings.ReplaceAll(channel.WithoutURL(err).Error(), a.URL, "(address)")
		return nil, hello, fmt.Errorf("slack: the socket does not open: %s", text)
	}
	ws.SetReadLimit(maxEnvelope)
	hello, err = readFrame(ctx, ws)
	if err == nil && hello.Type != "hello" {
		err = fmt.Errorf("the first frame is %.40q", hello.Type)
		if hello.Type == "disconnect" {
			err = disconnected(hello.Reason)
		}
	}
	if err != nil {
		_ = ws.CloseNow() // nothing was received
		return nil, hello, fmt.Errorf("slack: no greeting: %w", err)
	}
	return &connection{ws: ws}, hello, nil
}

func readFrame(ctx context.Context, ws *websocket.Conn) (f frame, err error) {
	_, text, err := ws.Read(ctx)
	if err != nil {
		return f, err
	}
	return f, strict.Unmarshal(text, &f)
}

// pingSlack closes a connection that no longer answers.
func (c *Channel) pingSlack(at *connection) {
	for channel.Wait(c.life.Context(), c.opt.Ping) {
		ctx, cancel := context.WithTimeout(c.life.Context(), c.opt.Ping)
		err := at.ws.Ping(ctx)
		cancel()
		if err != nil {
			break
		}
	}
	_ = at.ws.CloseNow() // the reader then ends
}

// readFrames receives the envelopes of a connection until it ends.
func (c *Channel) readFrames(at *connection) {
	defer func() {
		_ = at.ws.CloseNow() // the pinging goroutine then ends with its next ping
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = slices.DeleteFunc(c.conns, func(o *connection) bool { return o == at })
		c.changed()
	}()
	for {
		_, text, err := at.ws.Read(c.life.Context())
		if err != nil {
			return
		}
		var f frame
		if strict.UnmarshalRepaired(text, &f) != nil {
			continue // an unknown frame must not stop the next ones
		}
		switch {
		case f.Type == "disconnect":
			c.retire(at, f.Reason)
		case f.Envelope != "":
			c.takeEnvelope(at, f)
		}
	}
}

// retire notes that Slack closes a connection soon, so that Poll opens the next one.
func (c *Channel) retire(at *connection, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at.retiring = true
	if reason != "warning" && reason != "refresh_requested" {
		c.refused = disconnected(reason)
	}
	c.changed()
}

var errDisabled = errors.New("slack: Socket Mode is off: switch it on in the settings of the app")

// disconnected returns the error of a connection that Slack ends for a reason.
func disconnected(reason string) error {
	switch reason {
	case "link_disabled":
		return errDisabled
	case "too_many_websockets":
		return errors.New("slack: too many programs are connected with the app-level token")
	}
	return fmt.Errorf("slack: the connection was ended: %.60q", reason)
}

// maxWaiting is the number of messages that wait for their acknowledgement. No connection is read until there is room.
const maxWaiting = 1000

// takeEnvelope stores a message for Poll. Any other envelope is acknowledged at once, because it has no effect.
func (c *Channel) takeEnvelope(at *connection, f frame) {
	m, ok := c.inbound(f)
	if !ok {
		c.acknowledge(c.life.Context(), at, f.Envelope)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) >= maxWaiting {
		change := c.change
		c.mu.Unlock()
		select {
		case <-change:
		case <-c.life.Context().Done():
		}
		if c.mu.Lock(); c.life.Context().Err() != nil {
			return
		}
	}
	c.count++
	c.waiting = append(c.waiting, envelope{c.count, f.Envelope, at, m})
	c.changed()
}
