package feishutest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/encoding/protowire"
)

// socket is an open WebSocket of the app.
type socket struct{ ws *websocket.Conn }

// serviceID is the number of the service in frames.
const serviceID = 33554678

// partSize is the largest payload of a frame. A longer event comes in several frames.
const partSize = 500

// frame is a frame of the long connection. The server has an encoding of its own, so that it can find mistakes of the
// channel's encoding.
type frame struct {
	Service, Method uint64
	Headers         [][2]string
	Payload         []byte
}

// encode returns the bytes of a frame.
func (f frame) encode() []byte {
	var b []byte
	for i, n := range []uint64{0, 0, f.Service, f.Method} {
		b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(i+1), protowire.VarintType), n)
	}
	for _, h := range f.Headers {
		var v []byte
		for i, text := range h {
			v = protowire.AppendString(protowire.AppendTag(v, protowire.Number(i+1), protowire.BytesType), text)
		}
		b = protowire.AppendBytes(protowire.AppendTag(b, 5, protowire.BytesType), v)
	}
	return protowire.AppendBytes(protowire.AppendTag(b, 8, protowire.BytesType), f.Payload)
}

// decode parses a frame.
func decode(b []byte) (f frame, err error) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return f, protowire.ParseError(n)
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return f, protowire.ParseError(n)
		}
		switch {
		case kind == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(b)
			switch number {
			case 3:
				f.Service = v
			case 4:
				f.Method = v
			}
		case number == 5 && kind == protowire.BytesType:
			v, _ := protowire.ConsumeBytes(b)
			h, err := decodeHeader(v)
			if err != nil {
				return f, err
			}
			f.Headers = append(f.Headers, h)
		case number == 8 && kind == protowire.BytesType:
			f.Payload, _ = protowire.ConsumeBytes(b)
		}
		b = b[n:]
	}
	return f, nil
}

func decodeHeader(b []byte) (h [2]string, err error) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.BytesType || number > 2 {
			return h, fmt.Errorf("malformed header")
		}
		v, m := protowire.ConsumeString(b[n:])
		if m < 0 {
			return h, protowire.ParseError(m)
		}
		h[number-1] = v
		b = b[n+m:]
	}
	return h, nil
}

// value returns the value of a header.
func (f frame) value(key string) string {
	for _, h := range f.Headers {
		if h[0] == key {
			return h[1]
		}
	}
	return ""
}

// serveSocket sends events until the socket ends.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("access_key") == "" {
		w.Header().Set("Handshake-Status", "514")
		w.Header().Set("Handshake-Msg", "auth failed")
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
	s.changed()
	s.mu.Unlock()
	defer s.drop(at)
	ended := make(chan struct{})
	deaf := s.Deaf != nil && s.Deaf()
	s.wg.Go(func() { defer close(ended); s.readFrames(at, deaf) })
	for {
		s.mu.Lock()
		change := s.change
		var next *Event
		if i := slices.IndexFunc(s.events, func(e *Event) bool { return e.on == nil && !e.Acknowledged }); i >= 0 && !deaf {
			next = s.events[i]
			next.on = at
			next.Attempts++
		}
		s.mu.Unlock()
		if next != nil {
			if !s.sendEvent(at, next) {
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

// sendEvent reports whether the socket is still open after the event.
func (s *Server) sendEvent(at *socket, e *Event) bool {
	s.mu.Lock()
	rest := e.payload()
	name := fmt.Sprintf("message-%s-%d", e.ID, e.Attempts)
	for i, o := range s.events {
		if o == e {
			name += "-" + strconv.Itoa(i)
		}
	}
	s.mu.Unlock()
	var f SocketFault
	if s.SocketFault != nil {
		f = s.SocketFault()
	}
	if f == cutBefore {
		return false
	}
	sum := (len(rest) + partSize - 1) / partSize
	for seq := range sum {
		part := rest[:min(len(rest), partSize)]
		rest = rest[len(part):]
		b := frame{Service: serviceID, Method: 1, Payload: part, Headers: [][2]string{{"type", "event"},
			{"message_id", name}, {"sum", strconv.Itoa(sum)}, {"seq", strconv.Itoa(seq)}, {"trace_id", "trace"}}}.encode()
		if f == cutAmid && seq == sum-1 {
			w, err := at.ws.Writer(s.ctx, websocket.MessageBinary)
			if err == nil {
				_, _ = w.Write(b[:len(b)/2]) // the socket is cut in any case
			}
			return false
		}
		if at.ws.Write(s.ctx, websocket.MessageBinary, b) != nil {
			return false
		}
	}
	return f != cutAfter
}

// readFrames reads acknowledgements and pings until the socket ends.
func (s *Server) readFrames(at *socket, deaf bool) {
	for {
		_, b, err := at.ws.Read(s.ctx)
		if err != nil {
			return
		}
		f, err := decode(b)
		if err != nil {
			_ = at.ws.Close(websocket.StatusInvalidFramePayloadData, err.Error()) // the connection may have ended
			return
		}
		switch {
		case deaf:
		case f.Method == 0 && f.value("type") == "ping" && f.Service == serviceID:
			pong := frame{Service: serviceID, Headers: [][2]string{{"type", "pong"}}, Payload: []byte(`{"PingInterval":120}`)}
			_ = at.ws.Write(s.ctx, websocket.MessageBinary, pong.encode()) // the connection may have ended
		case f.Method == 1 && f.value("biz_rt") != "":
			s.acknowledged(at, f)
		}
	}
}

// acknowledged notes an acknowledgement.
func (s *Server) acknowledged(at *socket, f frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.events {
		if e.on == at && f.value("message_id") == fmt.Sprintf("message-%s-%d-%d", e.ID, e.Attempts, i) {
			e.Acknowledged, e.Answer = true, string(f.Payload)
		}
	}
	s.changed()
}

// drop ends a socket. Its messages without an acknowledgement are sent again. For a press the person presses again.
func (s *Server) drop(at *socket) {
	_ = at.ws.CloseNow() // the connection may have ended
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = slices.DeleteFunc(s.sockets, func(o *socket) bool { return o == at })
	for _, e := range s.events {
		if e.on == at && !e.Acknowledged {
			e.on = nil
			if e.Type == "card.action.trigger" {
				e.ID = s.next("event-")
			}
		}
	}
	s.changed()
}

// Cut ends all open sockets without a word.
func (s *Server) Cut() {
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
