// Package ntfytest is an ntfy server for tests, from the public description of its HTTP API. It stores messages,
// streams them from a known id on, and controls the access to topics. It misbehaves on request.
package ntfytest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Message is a stored message.
type Message struct {
	ID       string   `json:"id"`
	Time     int64    `json:"time"`
	Event    string   `json:"event"`
	Topic    string   `json:"topic"`
	Title    string   `json:"title,omitempty"`
	Message  string   `json:"message,omitempty"`
	Priority int      `json:"priority,omitempty"`
	Actions  []Action `json:"actions,omitempty"`
}

// Action is a button of a message.
type Action struct {
	Action string `json:"action"`
	Label  string `json:"label"`
	URL    string `json:"url"`
	Method string `json:"method"`
	Body   string `json:"body"`
}

// Server is an ntfy server. It is an http.Handler.
type Server struct {
	// Token is the access token of the bridge. Without it everybody has access to every topic.
	Token string
	// Everyone lists the topics to which clients without the token may write. Public lists the topics that such
	// clients may also read.
	Everyone, Public []string
	// Fault is called before each publication and each stream. It may be nil.
	Fault func(call string) Fault

	mu       sync.Mutex
	changed  chan struct{}
	messages []Message
}

// Fault is the server's misbehaviour in one call.
type Fault struct {
	Status int // the whole answer, without an effect unless Late is set
	Late   bool
	// Drop cuts the connection before the effect, Lose after it, and Half in the middle of the answer.
	Drop, Lose, Half bool
}

// New returns a server.
func New() *Server { return &Server{changed: make(chan struct{})} }

// Messages returns the messages of a topic.
func (s *Server) Messages(topic string) (list []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.Topic == topic {
			list = append(list, m)
		}
	}
	return list
}

// Changed returns a channel that is closed at the next message.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Publish stores a message.
func (s *Server) Publish(m Message) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.ID, m.Time, m.Event = fmt.Sprintf("id%09d", len(s.messages)), time.Now().Unix(), "message"
	s.messages = append(s.messages, m)
	close(s.changed)
	s.changed = make(chan struct{})
	return m
}

// Revoke ends the validity of the access token.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Token += "-of-tomorrow"
}

// may reports whether a request has access to a topic.
func (s *Server) may(r *http.Request, topic string, writes bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Token == "" || r.Header.Get("Authorization") == "Bearer "+s.Token || slices.Contains(s.Public, topic) ||
		writes && slices.Contains(s.Everyone, topic)
}

// ServeHTTP serves the calls that the bridge and a phone make.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	topic, call, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	writes := r.Method != http.MethodGet || call == "publish"
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // net/http's way to cut a connection
	}
	m := Message{Topic: topic, Message: string(body)}
	if call == "publish" {
		m.Message = r.FormValue("message")
	}
	const most = 4096
	if topic == "" {
		if len(body) > 2*most || json.Unmarshal(body, &m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	if !s.may(r, m.Topic, writes) {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var f Fault
	if s.Fault != nil && call != "auth" {
		f = s.Fault(map[bool]string{true: "publish", false: "stream"}[writes])
	}
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Status != 0 && !f.Late:
		w.WriteHeader(f.Status)
	case writes && (len(m.Message) > most || len(m.Actions) > 3):
		w.WriteHeader(http.StatusBadRequest)
	case writes:
		s.publish(w, m, f)
	case call == "json":
		s.stream(w, r, topic, f)
	default:
		_, _ = io.WriteString(w, `{"success":true}`)
	}
}

// publish stores a message and answers with it.
func (s *Server) publish(w http.ResponseWriter, m Message, f Fault) {
	answer, _ := json.Marshal(s.Publish(m)) // strings and numbers always encode
	switch {
	case f.Lose:
		panic(http.ErrAbortHandler)
	case f.Late:
		w.WriteHeader(f.Status)
		return
	case f.Half:
		answer = answer[:len(answer)/2]
	}
	_, _ = w.Write(answer) // fails only if the client has disconnected
}

// stream sends the messages after the id in the parameter "since". An unknown id means all messages.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, topic string, f Fault) {
	next := 0
	s.mu.Lock()
	if i := slices.IndexFunc(s.messages, func(m Message) bool { return m.ID == r.FormValue("since") }); i >= 0 {
		next = i + 1
	}
	s.mu.Unlock()
	e := json.NewEncoder(w)
	for _ = e.Encode(Message{Event: "open", Topic: topic}); ; {
		s.mu.Lock()
		list, changed := s.messages[next:], s.changed
		next = len(s.messages)
		s.mu.Unlock()
		for _, m := range list {
			if m.Topic != topic {
				continue
			}
			if f.Half {
				_, _ = io.WriteString(w, `{"id":"half","event":"mess`)
				_ = http.NewResponseController(w).Flush() // the connection is cut next
				panic(http.ErrAbortHandler)
			}
			_ = e.Encode(m) // fails only if the client has disconnected
			if f.Lose {
				_ = http.NewResponseController(w).Flush() // the connection is cut next
				panic(http.ErrAbortHandler)
			}
		}
		_ = http.NewResponseController(w).Flush() // fails only if the client has disconnected
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
