// Package feishutest is a Feishu for tests, with real HTTP and real sockets and without Feishu.
//
// It has the properties that the bridge depends on. An event is sent over one of the open sockets, in several frames
// if it is long. A message comes again after the end of its socket unless it was acknowledged. For a press without
// an acknowledgement the person presses again. Tokens expire. A second message with the same key is not sent. Cards
// have limits. The server refuses the same requests as Feishu, as far as the bridge makes them.
package feishutest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel/channeltest"
)

// These are the secret and the ids of the app.
const (
	AppID  = "cli_a0perlica"
	Secret = "aFeishuAppSecret0123456789abcdef"
	Bot    = "ou_perlica"
)

// Scopes are the scopes that the bridge uses.
var Scopes = []string{"im:message", "im:message.p2p_msg:readonly", "im:message.group_at_msg:readonly", "im:resource",
	"contact:user.base:readonly", "application:application:self_manage"}

// Server is a tenant with one app. Its methods may be called from several goroutines.
type Server struct {
	// URL is the address of the API.
	URL string
	// Fault is called before each call with its name. It may be nil.
	Fault func(call string) Fault
	// SocketFault is called before each delivery of an event. It may be nil.
	SocketFault func() SocketFault
	// Deaf reports whether a new socket gets no answers to its pings. It may be nil.
	Deaf func() bool
	// Settings are the settings of the app.
	Settings

	ctx    context.Context
	wg     sync.WaitGroup
	mu     sync.Mutex // guards the fields below
	change chan struct{}
	calls  map[string]int
	record
}

// Settings are the settings of an app.
type Settings struct {
	Scopes    []string
	Status    int           // of the bot; 2 means enabled
	Mode      string        // of the events and the callbacks; "websocket" means the long connection
	Events    []string      // the subscriptions
	Callbacks []string      // the subscriptions
	Expire    time.Duration // how long a token is valid
	Published bool
}

// record is the state of the tenant.
type record struct {
	last      int // the last number of an id
	skew      time.Duration
	tokens    map[string]time.Time // the ends of the tokens
	events    []*Event
	sockets   []*socket
	opened    int // the number of sockets so far
	messages  []Message
	keys      map[string]string // the id of each message of the bot, by its key
	heard     map[string]string // the chat of each message of a person, by the message's id
	reactions []string
	files     map[string]*File
	people    map[string]string // names by ids
	deleted   []string          // people without a chat
	revoked   bool
}

// Event is an event that the app must acknowledge.
type Event struct {
	ID           string // of the event
	Type         string
	Created      time.Time
	Body         any
	on           *socket // nil means that the event must be sent
	repeats      bool    // an earlier event has the same id
	Acknowledged bool
	Attempts     int
	Answer       string // the payload of the acknowledgement
}

// Message is a message of the bot.
type Message struct {
	ID      string
	Chat    string // a person or a group
	Thread  string
	Text    string
	Plain   bool
	ReplyTo string
	Buttons []Button
	File    *File
	Edited  bool
	Removed bool
	kind    string
}

// Button is a button of a message.
type Button struct {
	Label string
	Value map[string]string
}

// File is a file in either direction.
type File struct {
	Key, Name string
	Image     bool
	Data      []byte
}

// Fault is the server's misbehaviour in one call.
type Fault struct {
	Status int           // answers with this status, and without an effect unless Late is set
	Reset  time.Duration // the pause of a rate limit
	Code   int           // answers with this error code
	Late   bool
	Say    string // the body of an answer with a status
	// Drop cuts the connection before the effect, Lose after it, and Half in the middle of the answer.
	Drop, Lose, Half bool
}

// SocketFault is the server's misbehaviour with one event.
type SocketFault string

// These are the faults of a socket.
const (
	cutBefore SocketFault = "cut before the event"
	cutAmid   SocketFault = "cut within the event"
	cutAfter  SocketFault = "cut after the event"
)

// New starts a server. It ends with the test.
func New(t testing.TB) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{ctx: ctx, change: make(chan struct{}), calls: map[string]int{},
		Settings: Settings{Scopes: Scopes, Status: 2, Mode: "websocket", Events: []string{"im.message.receive_v1"},
			Callbacks: []string{"card.action.trigger"}, Expire: 2 * time.Hour, Published: true},
		record: record{tokens: map[string]time.Time{}, keys: map[string]string{}, heard: map[string]string{},
			files: map[string]*File{}, people: map[string]string{}}}
	h := httptest.NewServer(s.handler())
	s.URL = h.URL
	t.Cleanup(func() {
		cancel()
		s.Cut()
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

// next returns a new id. The caller holds mu.
func (s *Server) next(prefix string) string {
	s.last++
	return prefix + strconv.Itoa(s.last)
}

// NewID returns a new id.
func (s *Server) NewID(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next(prefix)
}

// Join adds a person with a name.
func (s *Server) Join(id, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people[id] = name
}

// Skew changes the clock of the server by a duration.
func (s *Server) Skew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew += d
}

// Deliver queues events for the app.
func (s *Server) Deliver(list ...*Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range list {
		if e.ID == "" {
			e.ID, e.Created = s.next("event-"), time.Now().Add(s.skew)
		}
		s.events = append(s.events, e)
	}
	s.changed()
}

// chatOf returns the id of the private chat of a person.
func chatOf(person string) string { return "oc_with_" + person }

// Said returns the event of a message, and its id. A chat is a person or a group. The parameter "members" has further
// members of the message, or other values of usual ones.
func (s *Server) Said(chat, user, kind string, content any, members map[string]any) (*Event, string) {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.next("om_")
	m := map[string]any{"message_id": id, "chat_id": chat, "chat_type": "group", "message_type": kind,
		"content": string(text), "create_time": strconv.FormatInt(time.Now().Add(s.skew).UnixMilli(), 10)}
	if chat == user {
		m["chat_id"], m["chat_type"] = chatOf(user), "p2p"
	}
	for k, v := range members {
		m[k] = v
	}
	s.heard[id] = chat
	sender := map[string]any{"sender_id": map[string]any{"open_id": user, "union_id": "on_1", "user_id": nil},
		"sender_type": "user", "tenant_key": "tenant"}
	return &Event{Type: "im.message.receive_v1", Body: map[string]any{"sender": sender, "message": m}}, id
}

// Say delivers a text of a person. It returns its id.
func (s *Server) Say(chat, user, text string, members map[string]any) string {
	e, id := s.Said(chat, user, "text", map[string]string{"text": text}, members)
	s.Deliver(e)
	return id
}

// Press delivers the press of a button below a message of the bot in a chat.
func (s *Server) Press(user, chat, message, data string) {
	s.mu.Lock()
	i := slices.IndexFunc(s.messages, func(m Message) bool { return m.ID == message })
	if i < 0 {
		s.mu.Unlock()
		return
	}
	m := s.messages[i]
	s.mu.Unlock()
	if chat == user {
		chat = chatOf(user)
	}
	for _, b := range m.Buttons {
		if b.Value["data"] == data {
			s.Deliver(&Event{Type: "card.action.trigger", Body: map[string]any{
				"operator": map[string]any{"open_id": user, "tenant_key": "tenant"}, "token": "c-1", "host": "im_message",
				"action":  map[string]any{"tag": "button", "value": b.Value},
				"context": map[string]any{"open_message_id": message, "open_chat_id": chat}}})
		}
	}
}

// Redeliver delivers all messages of people once more.
func (s *Server) Redeliver() {
	s.mu.Lock()
	list := slices.Clone(s.events)
	s.mu.Unlock()
	for _, e := range list {
		if e.Type == "im.message.receive_v1" && !e.repeats {
			s.Deliver(&Event{ID: e.ID, Type: e.Type, Created: e.Created, Body: e.Body, Attempts: e.Attempts,
				repeats: true})
		}
	}
}

// Deliveries returns all events.
func (s *Server) Deliveries() (list []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
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

// Reactions returns the bot's reactions: the message and the emoji of each.
func (s *Server) Reactions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reactions)
}

// AddFile adds a file of a person.
func (s *Server) AddFile(f *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[f.Key] = f
}

// Dissolve ends the private chat of a person.
func (s *Server) Dissolve(person string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted = append(s.deleted, person)
}

// Withdraw makes a message of a person unknown.
func (s *Server) Withdraw(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.heard, id)
}

// Revoke ends the validity of the secret, the tokens and the sockets.
func (s *Server) Revoke() {
	s.mu.Lock()
	s.revoked = true
	clear(s.tokens)
	s.mu.Unlock()
	s.Cut()
}

// EndTokens ends the validity of the tokens.
func (s *Server) EndTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Calls returns how often a call was made.
func (s *Server) Calls(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func respond(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
}

// payload returns the payload of an event.
func (e *Event) payload() []byte {
	b, err := json.Marshal(map[string]any{"schema": "2.0", "event": e.Body, "header": map[string]any{"event_id": e.ID,
		"event_type": e.Type, "app_id": AppID, "tenant_key": "tenant", "token": "",
		"create_time": fmt.Sprint(e.Created.UnixMilli())}})
	if err != nil {
		panic(err)
	}
	return b
}
