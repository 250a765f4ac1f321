package slacktest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"
)

// socket is an open WebSocket of the app.
type socket struct {
	ws       *websocket.Conn
	retiring bool
}

// serveSocket greets the app and sends envelopes until the socket ends.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("ticket") == "" {
		http.Error(w, "no ticket", http.StatusForbidden)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // of any origin
	if err != nil {
		return
	}
	s.wg.Add(1)
	defer s.wg.Done()
	at := &socket{ws: ws}
	s.mu.Lock()
	s.sockets = append(s.sockets, at)
	s.opened++
	n := len(s.sockets)
	s.mu.Unlock()
	defer s.drop(at)
	if s.write(at, map[string]any{"type": "hello", "num_connections": n,
		"connection_info": map[string]any{"app_id": "A0PERLICA"}, "debug_info": map[string]any{"host": "applink-1"}}) != nil {
		return
	}
	s.mu.Lock()
	s.changed()
	s.mu.Unlock()
	if s.Deaf != nil && s.Deaf() {
		// The socket answers pings only while the server reads.
		select {
		case <-r.Context().Done():
		case <-s.ctx.Done():
		}
		return
	}
	ended := make(chan struct{})
	s.wg.Go(func() { defer close(ended); s.readAcknowledgements(at) })
	for {
		s.mu.Lock()
		change := s.change
		var next *Envelope
		if !at.retiring {
			if i := slices.IndexFunc(s.envelopes, func(e *Envelope) bool { return e.on == nil && !e.Acknowledged }); i >= 0 {
				next = s.envelopes[i]
				next.on = at
				next.Attempts++
			}
		}
		s.mu.Unlock()
		if next != nil {
			if !s.sendEnvelope(at, next) {
				return
			}
			continue
		}
		select {
		case <-change:
		case <-ended:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// sendEnvelope reports whether the socket is still open after the envelope.
func (s *Server) sendEnvelope(at *socket, e *Envelope) bool {
	body := map[string]any{"envelope_id": e.ID, "type": e.Type, "payload": e.Payload, "accepts_response_payload": false}
	if e.Attempts > 1 {
		body["retry_attempt"], body["retry_reason"] = e.Attempts-1, "timeout"
	}
	var f SocketFault
	if s.SocketFault != nil {
		f = s.SocketFault()
	}
	switch f {
	case cutBefore:
		return false
	case cutAmid:
		b, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		w, err := at.ws.Writer(s.ctx, websocket.MessageText)
		if err == nil {
			_, _ = w.Write(b[:len(b)/2]) // the socket is cut in any case
		}
		return false
	}
	return s.write(at, body) == nil && f != cutAfter
}

func (s *Server) write(at *socket, body map[string]any) error {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return at.ws.Write(s.ctx, websocket.MessageText, b)
}

// readAcknowledgements reads until the socket ends.
func (s *Server) readAcknowledgements(at *socket) {
	for {
		_, text, err := at.ws.Read(s.ctx)
		if err != nil {
			return
		}
		var a struct {
			Envelope string `json:"envelope_id"`
		}
		if json.Unmarshal(text, &a) != nil {
			return
		}
		s.mu.Lock()
		for _, e := range s.envelopes {
			e.Acknowledged = e.Acknowledged || e.ID == a.Envelope
		}
		s.changed()
		s.mu.Unlock()
	}
}

// drop ends a socket. Its envelopes without an acknowledgement are sent again.
func (s *Server) drop(at *socket) {
	_ = at.ws.CloseNow() // the connection may have ended
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = slices.DeleteFunc(s.sockets, func(o *socket) bool { return o == at })
	for _, e := range s.envelopes {
		if e.on == at {
			e.on = nil
		}
	}
	s.changed()
}

// cut ends all sockets.
func (s *Server) cut() {
	s.mu.Lock()
	list := slices.Clone(s.sockets)
	s.mu.Unlock()
	for _, at := range list {
		_ = at.ws.CloseNow() // the connection may have ended
	}
}

// Sockets returns the number of open sockets, and of all sockets so far.
func (s *Server) Sockets() (open, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sockets), s.opened
}

// Disconnect announces the end of the open sockets with a reason. They get no further envelopes.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	list := slices.Clone(s.sockets)
	for _, at := range list {
		at.retiring = true
	}
	s.disabled = strings.HasPrefix(reason, "link_disabled")
	s.mu.Unlock()
	for _, at := range list {
		_ = s.write(at, map[string]any{"type": "disconnect", "reason": reason}) // the connection may have ended
	}
}

// Cut ends all open sockets without a word.
func (s *Server) Cut() { s.cut() }
