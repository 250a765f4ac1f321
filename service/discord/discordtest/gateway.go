package discordtest

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// session is a session of the gateway. A session stays valid without a connection.
type session struct {
	id      string
	intents int
	events  []frame // all events; the number of an event is its index plus one
	conn    *connection
}

type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  *int            `json:"s"`
	Type *string         `json:"t"`
}

// connection is a WebSocket of a bot.
type connection struct {
	ws     *websocket.Conn
	writes sync.Mutex // held while a frame is written
	cancel context.CancelFunc
}

func (c *connection) write(f frame) {
	c.writes.Lock()
	defer c.writes.Unlock()
	_ = c.ws.Write(context.Background(), websocket.MessageText, encode(f)) // a lost connection is noticed by the reader
}

// dispatchMessage sends a message to all sessions that see it. The caller holds mu.
func (s *Server) dispatchMessage(kind string, m *Message) {
	at := s.place(m.Channel)
	for _, to := range s.sessions {
		if to.intents&map[bool]int{true: 1 << 9, false: 1 << 12}[at.guild != ""] == 0 {
			continue
		}
		o := s.object(m, to.intents&(1<<15) != 0 || s.shows(m))
		if at.guild != "" {
			o["guild_id"] = at.guild
		}
		s.send(to, kind, o)
	}
	s.wake()
}

// dispatch sends an event to all sessions. The caller holds mu.
func (s *Server) dispatch(kind string, data any) {
	for _, to := range s.sessions {
		s.send(to, kind, data)
	}
	s.wake()
}

// send adds an event to a session and sends it over its connection. The caller holds mu.
func (s *Server) send(to *session, kind string, data any) {
	n := len(to.events) + 1
	f := frame{Data: encode(data), Seq: &n, Type: &kind}
	to.events = append(to.events, f)
	if to.conn != nil {
		to.conn.write(f)
	}
}

// serveGateway serves a WebSocket. The path of the address for a resume ends with the id of the session.
func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &connection{ws: ws, cancel: cancel}
	defer func() { _ = ws.CloseNow() }() // the connection has ended
	interval := s.Interval
	if interval == 0 {
		interval = 45 * time.Second
	}
	c.write(frame{Op: 10, Data: encode(map[string]any{"heartbeat_interval": interval.Milliseconds()})})
	var in *session
	defer func() {
		s.update(func() {
			if in != nil && in.conn == c {
				in.conn = nil
			}
		})
	}()
	for {
		_, text, err := ws.Read(ctx)
		if err != nil {
			return
		}
		var f frame
		if json.Unmarshal(text, &f) != nil || len(text) > 4096 {
			_ = ws.Close(4002, "Error while decoding payload.")
			return
		}
		switch f.Op {
		case 1:
			s.heartbeat(c)
		case 2:
			if in = s.identify(c, f.Data); in == nil {
				return
			}
		case 6:
			in = s.resume(c, f.Data)
		default:
			_ = ws.Close(4001, "Unknown opcode.")
			return
		}
	}
}

func (s *Server) heartbeat(c *connection) {
	s.mu.Lock()
	deaf := s.deaf
	s.beats++
	s.wake()
	s.mu.Unlock()
	if !deaf {
		c.write(frame{Op: 11})
	}
}

// identify begins a session. It closes the connection and returns nil if Discord would refuse the session.
func (s *Server) identify(c *connection, data json.RawMessage) *session {
	var d struct {
		Token      string `json:"token"`
		Intents    int    `json:"intents"`
		Properties any    `json:"properties"`
	}
	_ = json.Unmarshal(data, &d) // an invalid Identify has no token
	s.mu.Lock()
	s.begun++
	s.starts--
	s.intents = d.Intents
	code, why := s.refuse, "refused"
	switch {
	case code != 0:
	case s.token == "" || bare(d.Token) != s.token || d.Properties == nil:
		code, why = 4004, "Authentication failed."
	case d.Intents&(1<<15) != 0 && s.flags&(1<<18|contentFlag) == 0:
		code, why = 4014, "Disallowed intent(s)."
	case d.Intents <= 0 || d.Intents >= 1<<26:
		code, why = 4013, "Invalid intent(s)."
	}
	if code != 0 {
		s.wake()
		s.mu.Unlock()
		_ = c.ws.Close(websocket.StatusCode(code), why)
		return nil
	}
	defer s.mu.Unlock()
	first := len(s.sessions) == 0 && s.Early
	s.Early = false
	in := &session{id: "session-" + s.newID(), intents: d.Intents, conn: c}
	s.sessions[in.id] = in
	s.send(in, "READY", map[string]any{
		"v": 10, "user": map[string]any{"id": Self, "username": "perlica", "bot": true}, "guilds": []any{},
		"session_id": in.id, "resume_gateway_url": "ws://" + s.origin + "/resume",
		"application": map[string]any{"id": Application},
	})
	if first {
		for _, i := range s.clicks {
			s.send(in, "INTERACTION_CREATE", i)
		}
		for _, m := range s.written {
			s.dispatchMessage("MESSAGE_CREATE", m)
		}
	}
	s.wake()
	return in
}

// resume continues a session. It returns nil and tells the client if the session is unknown.
func (s *Server) resume(c *connection, data json.RawMessage) *session {
	var d struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
	}
	_ = json.Unmarshal(data, &d) // an invalid Resume has no session
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.sessions[d.Session]
	if in == nil || bare(d.Token) != s.token || d.Seq > len(in.events) {
		c.write(frame{Op: 9, Data: encode(false)})
		return nil
	}
	s.resumed++
	in.conn = c
	for _, f := range in.events[d.Seq:] {
		c.write(f)
	}
	s.send(in, "RESUMED", map[string]any{})
	s.wake()
	return in
}

// connections returns the open connections.
func (s *Server) connections() (list []*connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disconnect()
}

// disconnect takes the open connections from their sessions. The caller holds mu.
func (s *Server) disconnect() (list []*connection) {
	for _, in := range s.sessions {
		if in.conn != nil {
			list = append(list, in.conn)
			in.conn = nil
		}
	}
	return list
}

// Drop cuts all connections to the gateway. Their sessions can be resumed.
func (s *Server) Drop() {
	for _, c := range s.connections() {
		_ = c.ws.CloseNow()
	}
}

// CloseAll closes all connections to the gateway with a code.
func (s *Server) CloseAll(code int) {
	for _, c := range s.connections() {
		_ = c.ws.Close(websocket.StatusCode(code), "closed by the test")
	}
}

// Tell sends a frame without an event over all connections, for example 7 (Reconnect), 9 (Invalid Session), or 1 (a
// request for a heartbeat).
func (s *Server) Tell(op int, data any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.sessions {
		if in.conn != nil {
			in.conn.write(frame{Op: op, Data: encode(data)})
		}
	}
}

// Forget gives up all sessions and cuts their connections. They cannot be resumed.
func (s *Server) Forget() {
	var list []*connection
	s.update(func() { // in one step, because a session that begins between two steps would keep its connection
		list = s.disconnect()
		clear(s.sessions)
	})
	for _, c := range list {
		_ = c.ws.CloseNow()
	}
}

// SetDeaf makes the gateway acknowledge no heartbeat.
func (s *Server) SetDeaf(deaf bool) { s.update(func() { s.deaf = deaf }) }

// RefuseSessions closes each connection that begins a session, with a code. 0 accepts sessions again.
func (s *Server) RefuseSessions(code int) { s.update(func() { s.refuse = code }) }

// Sessions returns how many sessions were begun and how many were resumed, and the intents of the last one.
func (s *Server) Sessions() (begun, resumed, intents int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun, s.resumed, s.intents
}

// Connected returns the number of open connections with a session.
func (s *Server) Connected() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.sessions {
		if in.conn != nil {
			n++
		}
	}
	return n
}

// Heartbeats returns the number of received heartbeats.
func (s *Server) Heartbeats() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beats
}
