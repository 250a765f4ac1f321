package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/perlica/perlica/service/channel"
)

// These are the opcodes of the gateway.
const (
	opDispatch, opHeartbeat, opIdentify, opResume, opReconnect, opInvalid, opHello, opAck = 0, 1, 2, 6, 7, 9, 10, 11
)

// maxFrame exceeds the largest event, which describes a guild with all its channels.
const maxFrame = 32 << 20

// waitingFrames is the number of events that wait for Poll. If more events wait, the connection is not read until
// Poll takes some.
const waitingFrames = 1024

// frame is an event of the gateway.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
}

// link is a connection to the gateway.
type link struct {
	conn   *websocket.Conn
	frames chan frame // the dispatched events; closed when the connection has ended
	end    error      // the reason of the end; set before frames is closed
	resume bool       // the connection continues a session

	seq   atomic.Int64 // the last sequence number
	acked atomic.Bool  // the last heartbeat was acknowledged
}

// These are reasons for the end of a connection.
var (
	errReconnect = errors.New("the gateway asks for a new connection")
	errZombie    = errors.New("the gateway has not acknowledged a heartbeat")
	errInvalid   = errors.New("the gateway has given up the session")
)

// final explains the close codes after which Discord forbids a new attempt.
var final = map[websocket.StatusCode]string{
	4004: "Discord does not accept the token: put a new one from the page \"Bot\" of the application into its file",
	4010: "the gateway refuses the shard",
	4011: "the bot is in too many servers for one connection",
	4012: "the gateway does not know this version of the API any more",
	4013: "the gateway does not know the requested intents",
	4014: "the application lacks an intent: switch on \"Message Content Intent\" on its page \"Bot\"",
}

// lost has the close codes after which a session cannot be resumed.
var lost = map[websocket.StatusCode]bool{4003: true, 4007: true, 4009: true}

// dial connects to the gateway and sends the first frame: Identify if the parameter "seq" is 0, otherwise Resume. The
// event READY or RESUMED comes later.
func (c *Channel) dial(ctx context.Context, address string, seq int64, first any) (*link, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("discord: the gateway has an invalid address")
	}
	u.RawQuery = "v=10&encoding=json"
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{HTTPClient: c.client})
	if err != nil {
		return nil, c.clean(fmt.Errorf("discord: no connection to the gateway: %w", channel.WithoutURL(err)))
	}
	conn.SetReadLimit(maxFrame)
	var hello struct {
		Interval int64 `json:"heartbeat_interval"`
	}
	f, err := readFrame(ctx, conn)
	if err == nil && f.Op != opHello {
		err = fmt.Errorf("the gateway begins with the opcode %d", f.Op)
	}
	if err == nil {
		err = json.Unmarshal(f.Data, &hello)
	}
	if err == nil && hello.Interval <= 0 {
		err = errors.New("the gateway names no interval of heartbeats")
	}
	if err == nil {
		err = writeFrame(ctx, conn, map[bool]int{true: opResume, false: opIdentify}[seq > 0], first)
	}
	if err != nil {
		_ = conn.CloseNow() // the connection is of no use
		return nil, c.clean(fmt.Errorf("discord: the gateway: %w", err))
	}
	l := &link{conn: conn, frames: make(chan frame, waitingFrames), resume: seq > 0}
	l.seq.Store(seq)
	l.acked.Store(true)
	c.life.Go(func() { l.run(c.life.Context(), time.Duration(hello.Interval)*time.Millisecond) })
	return l, nil
}

// run reads the connection and sends heartbeats until the connection or ctx ends.
func (l *link) run(ctx context.Context, every time.Duration) {
	ctx, cancel := context.WithCancelCause(ctx)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		cancel(l.beat(ctx, every))
	}()
	err := l.read(ctx)
	if cause := context.Cause(ctx); cause != nil && websocket.CloseStatus(err) < 0 {
		err = cause // beat has stopped the reading
	}
	cancel(nil)
	<-beating
	// Without a close frame, Discord keeps the session, so that it can be resumed.
	_ = l.conn.CloseNow()
	l.end = err
	close(l.frames)
}

// read passes on the dispatched events until the connection ends. It returns the reason.
func (l *link) read(ctx context.Context) error {
	for {
		f, err := readFrame(ctx, l.conn)
		if err != nil {
			return err
		}
		switch f.Op {
		case opDispatch:
			l.seq.Store(max(f.Seq, l.seq.Load()))
			select {
			case l.frames <- f:
			case <-ctx.Done():
				return ctx.Err()
			}
		case opHeartbeat:
			if err := l.heartbeat(ctx); err != nil {
				return err
			}
		case opReconnect:
			return errReconnect
		case opInvalid:
			if string(f.Data) == "true" { // the session can be resumed
				return errReconnect
			}
			return errInvalid
		case opAck:
			l.acked.Store(true)
		}
	}
}

// beat sends heartbeats until ctx ends. The first one has a random delay, so that a restart of the gateway does not
// make all bots send at the same time.
func (l *link) beat(ctx context.Context, every time.Duration) error {
	for wait := time.Duration(rand.Float64() * float64(every)); channel.Wait(ctx, wait); wait = every {
		if !l.acked.Swap(false) {
			return errZombie
		}
		if err := l.heartbeat(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (l *link) heartbeat(ctx context.Context) error {
	seq := l.seq.Load()
	if seq == 0 {
		return writeFrame(ctx, l.conn, opHeartbeat, nil)
	}
	return writeFrame(ctx, l.conn, opHeartbeat, seq)
}

func readFrame(ctx context.Context, conn *websocket.Conn) (f frame, err error) {
	_, text, err := conn.Read(ctx)
	if err != nil {
		return f, err
	}
	// An event without the form of a frame must not be skipped, because it may be a message.
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("the gateway sends an invalid event: %w", err)
	}
	return f, nil
}

func writeFrame(ctx context.Context, conn *websocket.Conn, op int, data any) error {
	b, err := json.Marshal(struct {
		Op   int `json:"op"`
		Data any `json:"d"`
	}{op, data})
	if err != nil {
		return err
	}
	return conn.Write(ctx, websocket.MessageText, b)
}

// connect opens the connection. It resumes the session if there is one. Otherwise it begins a new session.
func (c *Channel) connect(ctx context.Context) error {
	p := &c.poll
	if p.at.Session == "" || p.gateway == "" {
		if err := c.findGateway(ctx); err != nil {
			return err
		}
	}
	var err error
	if p.at.Session != "" {
		p.link, err = c.dial(ctx, c.resumeAddress(), p.at.Seq, struct {
			Token   string `json:"token"`
			Session string `json:"session_id"`
			Seq     int64  `json:"seq"`
		}{string(c.opt.Token), p.at.Session, p.at.Seq})
	} else {
		p.link, err = c.identify(ctx)
	}
	p.ready = false
	return err
}

// identify begins a new session.
func (c *Channel) identify(ctx context.Context) (*link, error) {
	p := &c.poll
	var app application
	if err := c.call(ctx, getApplication, body{}, &app); err != nil {
		return nil, err
	}
	if !channel.Wait(ctx, time.Until(p.identified.Add(c.opt.Pause))) {
		return nil, fmt.Errorf("discord: %w", ctx.Err())
	}
	p.identified = time.Now()
	p.content = app.Flags&contentFlags != 0
	intents := guilds | guildMessages | directMessages
	if p.content { // Discord ends the connection of an application that asks for an intent that it does not have
		intents |= messageContent
	}
	return c.dial(ctx, p.gateway, 0, map[string]any{
		"token": string(c.opt.Token), "intents": intents,
		"properties": map[string]string{"os": runtime.GOOS, "browser": "perlica", "device": "perlica"},
	})
}

// sessions is the response to GET /gateway/bot.
type sessions struct {
	URL    string `json:"url"`
	Starts struct {
		Remaining int   `json:"remaining"`
		Reset     int64 `json:"reset_after"` // milliseconds
	} `json:"session_start_limit"`
}

// findGateway asks for the address of the gateway. It fails if the bot may begin no further session today.
func (c *Channel) findGateway(ctx context.Context) error {
	var s sessions
	if err := c.call(ctx, getGateway, body{}, &s); err != nil {
		return err
	}
	c.poll.gateway = s.URL
	if c.poll.at.Session == "" && s.Starts.Remaining <= 0 {
		return fmt.Errorf("discord: the bot has begun too many sessions today: %w",
			&channel.RateLimitError{After: time.Duration(s.Starts.Reset) * time.Millisecond})
	}
	return nil
}

// resumeAddress returns the address for resuming the session. The address comes from a cursor, which may come from a
// foreign log. The connection carries the token, so the address must lie in the domain of the gateway.
func (c *Channel) resumeAddress() string {
	p := &c.poll
	given, err := url.Parse(p.at.Resume)
	known, err2 := url.Parse(p.gateway)
	if err != nil || err2 != nil || given.Scheme != known.Scheme {
		return p.gateway
	}
	_, domain, _ := strings.Cut(known.Host, ".")
	if given.Host == known.Host || strings.Count(domain, ".") > 0 && strings.HasSuffix(given.Host, "."+domain) {
		return p.at.Resume
	}
	return p.gateway
}

// ended decides about a connection that has ended. It returns nil if Poll may connect again at once.
func (c *Channel) ended() error {
	p := &c.poll
	l := p.link
	p.link = nil
	code := websocket.CloseStatus(l.end)
	if why := final[code]; why != "" {
		p.refused = fmt.Errorf("discord: the gateway has closed the connection (%d): %s; then start the bridge again",
			code, why)
		return p.refused
	}
	gone := errors.Is(l.end, errInvalid) || lost[code]
	if gone {
		p.at.Session, p.at.Resume, p.at.Seq = "", "", 0
	}
	if p.ready || gone && l.resume {
		return nil
	}
	return c.clean(fmt.Errorf("discord: the gateway has closed the connection: %w", l.end))
}
