// Package slacktest is a Slack for tests, with real HTTP and real sockets and without Slack.
//
// It has the properties that the bridge depends on. An envelope is sent over one of the open sockets. It comes again
// after the end of its socket unless it was acknowledged. Tokens have kinds and scopes. A method takes the parameters
// of a form and answers with an error code. Blocks have limits. The server refuses the same requests as Slack, as far
// as the bridge makes them.
package slacktest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel/channeltest"
)

// These are the tokens and the ids of the workspace.
const (
	AppToken = "xapp-1-A0PERLICA-4711-0123456789abcdef0123456789abcdef"
	BotToken = "xoxb-4711471147-0815081508-AbCdEfGhIjKlMnOpQrStUvWx"
	BotUser  = "U0PERLICA"
	BotID    = "B0PERLICA"
)

// Scopes are the scopes of the bot token.
var Scopes = []string{"app_mentions:read", "chat:write", "commands", "files:read", "files:write", "im:history",
	"reactions:write", "users:read"}

// Server is a workspace with one app. Its methods may be called from several goroutines.
type Server struct {
	// URL is the address of the Web API.
	URL string
	// Fault is called before each call of a method with the name of the method. It may be nil.
	Fault func(method string) Fault
	// SocketFault is called before each delivery of an envelope. It may be nil.
	SocketFault func() SocketFault
	// Deaf reports whether a new socket gets no answers to its pings. It may be nil.
	Deaf func() bool
	// Scopes are the scopes of the bot token, and App is its app.
	Scopes []string
	App    string

	host   string
	ctx    context.Context
	wg     sync.WaitGroup
	mu     sync.Mutex // guards the fields below
	change chan struct{}
	calls  map[string]int
	record
}

// record is the state of the workspace.
type record struct {
	last      int64 // the last microsecond that is part of a time
	envelopes []*Envelope
	count     int // the number of envelopes
	sockets   []*socket
	opened    int // the number of sockets so far
	messages  []Message
	reactions []string
	files     map[string]*File
	people    map[string]string // names by ids
	archived  []string          // deleted channels
	revoked   bool
	disabled  bool // Socket Mode is off
}

// Envelope is an event that the app must acknowledge.
type Envelope struct {
	ID           string
	Type         string
	Payload      any
	on           *socket // nil means that the envelope must be sent
	repeats      bool    // an earlier envelope has the same payload
	Acknowledged bool
	Attempts     int
}

// Message is a message of the bot.
type Message struct {
	Channel string
	TS      string
	Thread  string
	Text    string
	Plain   bool
	ReplyTo string
	Buttons []Button
	File    *File
	Edited  bool
	Removed bool
}

// Button is a button of a message.
type Button struct {
	Label, Action, Value string
}

// File is a file in either direction.
type File struct {
	ID, Name string
	Data     []byte
	URL      string // overrides the address for a download
}

// Fault is the server's misbehaviour in one call of a method.
type Fault struct {
	Status     int           // answers with this status, and without an effect unless Late is set
	RetryAfter time.Duration // for the status 429
	Code       string        // answers with this error code
	Late       bool
	Say        string // the body of an answer with a status
	// Drop cuts the connection before the effect, Lose after it, and Half in the middle of the answer.
	Drop, Lose, Half bool
}

// SocketFault is the server's misbehaviour with one envelope.
type SocketFault string

// These are the faults of a socket.
const (
	cutBefore SocketFault = "cut before the envelope"
	cutAmid   SocketFault = "cut within the envelope"
	cutAfter  SocketFault = "cut after the envelope"
)

// New starts a server. It ends with the test.
func New(t testing.TB) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{ctx: ctx, Scopes: Scopes, App: "A0PERLICA", change: make(chan struct{}), calls: map[string]int{},
		record: record{files: map[string]*File{}, people: map[string]string{}}}
	h := httptest.NewServer(s)
	s.URL, s.host = h.URL+"/api", h.URL
	t.Cleanup(func() {
		cancel()
		s.cut()
		s.wg.Wait()
		h.CloseClientConnections()
		h.Close()
	})
	return s
}

// changed wakes the waiting goroutines. The caller holds mu.
func (s *Server) changed() {
	close(s.change)
	s.change = make(chan struct{})
}

// Wait returns nil when ok returns true, and the error of ctx when ctx ends first. It calls ok after every change.
func (s *Server) Wait(ctx context.Context, ok func() bool) error {
	return channeltest.Await(ctx, func() <-chan struct{} {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.change
	}, ok)
}

// Now returns a new time of Slack. It is later than all earlier ones.
func (s *Server) Now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// now returns a new time. The caller holds mu.
func (s *Server) now() string {
	s.last = max(s.last+1, time.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.last/1_000_000, s.last%1_000_000)
}

// Join adds a person with a name.
func (s *Server) Join(id, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id] = name
}

// Deliver queues envelopes for the app.
func (s *Server) Deliver(list ...*Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range list {
		s.count++
		e.ID = fmt.Sprintf("envelope-%d", s.count)
		s.envelopes = append(s.envelopes, e)
	}
	s.changed()
}

// Event returns the envelope of an event with these members.
func Event(members map[string]any) *Envelope {
	return &Envelope{Type: "events_api", Payload: map[string]any{"type": "event_callback", "event": members,
		"authorizations": []any{map[string]any{"user_id": BotUser, "is_bot": true}}}}
}

// Say delivers a direct message of a person with further members. It returns the time of the message.
func (s *Server) Say(channel, user, text string, members map[string]any) (ts string) {
	ts = s.Now()
	s.Deliver(Said(channel, user, text, ts, members))
	return ts
}

// Said returns the envelope of a direct message.
func Said(channel, user, text, ts string, members map[string]any) *Envelope {
	m := map[string]any{"type": "message", "channel": channel, "channel_type": "im", "user": user, "text": text, "ts": ts}
	for k, v := range members {
		m[k] = v
	}
	return Event(m)
}

// Press delivers the press of a button below a message of the bot.
func (s *Server) Press(user, channel, ts, value string) {
	s.mu.Lock()
	i := slices.IndexFunc(s.messages, func(m Message) bool { return m.Channel == channel && m.TS == ts })
	if i < 0 {
		s.mu.Unlock()
		return
	}
	m := s.messages[i]
	at := s.now()
	s.mu.Unlock()
	message := map[string]any{"ts": m.TS, "user": BotUser, "bot_id": BotID}
	if m.Thread != "" {
		message["thread_ts"] = m.Thread
	}
	for _, b := range m.Buttons {
		if b.Value != value {
			continue
		}
		s.Deliver(&Envelope{Type: "interactive", Payload: map[string]any{
			"type": "block_actions", "user": map[string]any{"id": user, "name": strings.ToLower(user)},
			"container":  map[string]any{"type": "message", "channel_id": channel, "message_ts": ts},
			"channel":    map[string]any{"id": channel},
			"message":    message,
			"trigger_id": at,
			"actions": []any{map[string]any{"type": "button", "action_id": b.Action, "value": b.Value, "action_ts": at,
				"text": map[string]any{"type": "plain_text", "text": b.Label}}},
		}})
	}
}

// Redeliver delivers all envelopes once more, with the same payloads.
func (s *Server) Redeliver() {
	s.mu.Lock()
	list := slices.Clone(s.envelopes)
	s.mu.Unlock()
	for _, e := range list {
		if !e.repeats {
			s.Deliver(&Envelope{Type: e.Type, Payload: e.Payload, Attempts: e.Attempts, repeats: true})
		}
	}
}

// Envelopes returns all envelopes.
func (s *Server) Envelopes() (list []Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.envelopes {
		list = append(list, *e)
	}
	return list
}

// Messages returns the bot's messages in the order of sending.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Reactions returns the bot's reactions: the channel, the time and the name of each.
func (s *Server) Reactions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reactions)
}

// AddFile adds a file of a person.
func (s *Server) AddFile(f *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[f.ID] = f
}

// Archive deletes a channel.
func (s *Server) Archive(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.archived = append(s.archived, channel)
}

// Revoke ends the validity of the tokens and of the sockets.
func (s *Server) Revoke() {
	s.mu.Lock()
	s.revoked = true
	s.mu.Unlock()
	s.cut()
}

// Calls returns how often a method was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// ServeHTTP serves the Web API, the sockets and the files.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch part, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); part {
	case "api":
		s.serveMethod(w, r, rest)
	case "link":
		s.serveSocket(w, r)
	case "upload":
		s.serveUpload(w, r, rest)
	case "files-pri":
		s.serveFile(w, r, rest)
	default:
		http.NotFound(w, r)
	}
}

func respond(w http.ResponseWriter, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
}
