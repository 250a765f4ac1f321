package feishu

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/perlica/perlica/service/channel"
)

// These are limits of received frames.
const (
	maxFrame = 4 << 20
	maxParts = 64 // of one event
	maxSplit = 16 // events with missing parts
)

// maxWaiting is the number of messages that wait for their acknowledgement. The connection is not read until there is
// room.
const maxWaiting = 1000

// connection is a WebSocket to Feishu.
type connection struct {
	ws      *websocket.Conn
	service int32
	ping    time.Duration
	heard   atomic.Int64 // the number of received frames
	parts   map[string][][]byte
}

// pending is a message that waits for its acknowledgement.
type pending struct {
	n    int
	on   *connection
	f    frame
	came time.Time
	channel.Inbound
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
		change, open, last := c.change, c.conn != nil, c.count
		for _, p := range c.waiting {
			list = append(list, p.Inbound)
		}
		c.mu.Unlock()
		switch {
		case len(list) > 0:
			c.addNames(ctx, list)
			return list, c.instance + "/" + strconv.Itoa(last), nil
		case ctx.Err() != nil:
			return nil, cursor, ctx.Err()
		case !open:
			if err := c.connect(ctx); err != nil {
				return nil, cursor, err
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

// acknowledgeUpTo acknowledges the messages up to a cursor of this process. An acknowledgement may be lost. Feishu then
// repeats the message, and the caller recognises its id.
func (c *Channel) acknowledgeUpTo(ctx context.Context, cursor string) {
	instance, number, _ := strings.Cut(cursor, "/")
	n, err := strconv.Atoi(number)
	if instance != c.instance || err != nil {
		return
	}
	for {
		c.mu.Lock()
		if len(c.waiting) == 0 || c.waiting[0].n > n {
			c.mu.Unlock()
			return
		}
		p := c.waiting[0]
		c.mu.Unlock()
		c.acknowledge(ctx, p)
		c.mu.Lock()
		c.waiting = c.waiting[1:] // only Poll removes messages
		c.changed()
		c.mu.Unlock()
	}
}

// acknowledge answers an event. The answer to a press leaves the card unchanged.
func (c *Channel) acknowledge(ctx context.Context, p pending) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	answer := `{"code":200}`
	if p.Button != "" {
		answer = `{"code":200,"data":"e30="}` // {} in Base64
	}
	f := p.f
	took := strconv.FormatInt(time.Since(p.came).Milliseconds(), 10)
	f.headers = append(slices.Clone(f.headers), header{"biz_rt", took})
	f.payload = []byte(answer)
	_ = p.on.ws.Write(ctx, websocket.MessageBinary, f.encode()) // Feishu repeats a message without an acknowledgement
}

// awaitAcknowledged waits until no press on a card waits for its acknowledgement. Feishu undoes an edit of a card
// that comes before the acknowledgement. The wait normally ends after three seconds, because Feishu expects no
// acknowledgement after that.
func (c *Channel) awaitAcknowledged(ctx context.Context, card string) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout/10)
	defer cancel()
	for {
		c.mu.Lock()
		change := c.change
		pressed := slices.ContainsFunc(c.waiting, func(p pending) bool { return p.Button != "" && p.ReplyTo == card })
		c.mu.Unlock()
		if !pressed {
			return
		}
		select {
		case <-change:
		case <-ctx.Done():
			return
		case <-c.life.Context().Done():
			return
		}
	}
}

// connect opens a connection.
func (c *Channel) connect(ctx context.Context) error {
	if err := c.learnBot(ctx); err != nil {
		return err
	}
	at, err := c.dial(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = at
	c.life.Go(func() { c.readFrames(at) })
	c.life.Go(func() { c.pingFeishu(at) })
	return nil
}

// dial asks for the address of a WebSocket and opens it.
func (c *Channel) dial(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var a struct {
		URL    string
		Config struct {
			Ping int `json:"PingInterval"` // seconds
		} `json:"ClientConfig"`
	}
	const path = "/callback/ws/endpoint"
	err := c.call(ctx, request{method: http.MethodPost, path: path, open: true,
		body: map[string]string{"AppID": c.opt.AppID, "AppSecret": string(c.opt.Secret)}}, &a)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(a.URL)
	switch {
	case err != nil, at.Scheme != "wss" && at.Scheme != "ws":
		return nil, errors.New("feishu: the answer has no address of a long connection")
	case at.Scheme != "wss" && strings.HasPrefix(c.base, "https:"):
		return nil, errors.New("feishu: the address of the long connection is not encrypted")
	}
	ws, resp, err := websocket.Dial(ctx, a.URL, &websocket.DialOptions{HTTPClient: c.client})
	if err != nil {
		if resp != nil && resp.Header.Get("Handshake-Msg") != "" {
			err = fmt.Errorf("%.20q %.200q", resp.Header.Get("Handshake-Status"), resp.Header.Get("Handshake-Msg"))
		}
		// The address has a secret ticket.
		return nil, fmt.Errorf("feishu: the long connection does not open: %s",
			strings.ReplaceAll(channel.WithoutURL(err).Error(), a.URL, "(address)"))
	}
	ws.SetReadLimit(maxFrame)
	conn := &connection{ws: ws, ping: c.opt.Ping, parts: map[string][][]byte{}}
	if n, err := strconv.ParseInt(at.Query().Get("service_id"), 10, 32); err == nil {
		conn.service = int32(n)
	}
	if a.Config.Ping > 0 {
		conn.ping = min(conn.ping, time.Duration(a.Config.Ping)*time.Second)
	}
	return conn, nil
}

// pingFeishu closes a connection that no longer answers.
func (c *Channel) pingFeishu(at *connection) {
	defer func() { _ = at.ws.CloseNow() }() // the reader then ends
	ping := frame{service: at.service, method: control, headers: []header{{"type", "ping"}}}.encode()
	for {
		before := at.heard.Load()
		ctx, cancel := context.WithTimeout(c.life.Context(), at.ping)
		err := at.ws.Write(ctx, websocket.MessageBinary, ping)
		cancel()
		if err != nil || !channel.Wait(c.life.Context(), at.ping) || at.heard.Load() == before {
			return
		}
	}
}

// readFrames receives the frames of a connection until it ends.
func (c *Channel) readFrames(at *connection) {
	defer func() {
		_ = at.ws.CloseNow() // the pinging goroutine then ends with its next ping
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conn = nil
		c.changed()
	}()
	for {
		_, b, err := at.ws.Read(c.life.Context())
		if err != nil {
			return
		}
		at.heard.Add(1)
		f, err := decode(b)
		if err != nil || f.method != data {
			continue // an unknown frame must not stop the next ones
		}
		if payload, whole := at.join(f); whole {
			c.takeEvent(at, f, payload)
		}
	}
}

// join returns the payload of an event. An event may come in several frames, each with its number. The result "whole"
// is false if parts are missing.
func (at *connection) join(f frame) (payload []byte, whole bool) {
	sum, seq, id := f.number("sum"), f.number("seq"), f.value("message_id")
	if sum <= 1 {
		return f.payload, true
	}
	if sum > maxParts || seq < 0 || seq >= sum {
		return nil, false
	}
	parts := at.parts[id]
	if len(parts) != sum {
		if len(at.parts) >= maxSplit {
			clear(at.parts) // Feishu repeats their events
		}
		parts = make([][]byte, sum)
		at.parts[id] = parts
	}
	parts[seq] = f.payload
	size, whole := 0, true
	for _, p := range parts {
		size, whole = size+len(p), whole && p != nil
	}
	if size > maxFrame {
		delete(at.parts, id)
		return nil, false
	}
	if !whole {
		return nil, false
	}
	delete(at.parts, id)
	return slices.Concat(parts...), true
}

// takeEvent stores a message for Poll. Any other event is acknowledged at once, because it has no effect.
func (c *Channel) takeEvent(at *connection, f frame, payload []byte) {
	p := pending{on: at, f: f, came: time.Now()}
	var ok bool
	if f.value("type") == "event" {
		p.Inbound, ok = c.inbound(payload)
	}
	if !ok {
		c.acknowledge(c.life.Context(), p)
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
	p.n = c.count
	c.waiting = append(c.waiting, p)
	c.changed()
}
