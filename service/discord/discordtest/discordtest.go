// Package discordtest is a gateway and a REST API of Discord for tests, with real HTTP and without Discord.
//
// It has the properties that a bot depends on. Ids grow with the server's clock. Each session numbers its events and
// keeps them, so that it can be resumed. A channel's messages are a history. Only an application with the Message
// Content intent sees the content of all messages. Rate limits have buckets. The server refuses the same requests as
// Discord, as far as the bridge makes them. It misbehaves on request, see [Fault] and the methods of [Server].
package discordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel/channeltest"
)

// Self is the id of the bot, and Application the id of its application.
const (
	Self        = "900000000000000001"
	Application = "900000000000000002"
)

// These are types of channels.
const (
	Text   = 0
	Direct = 1
	Thread = 11
)

// contentFlag is the flag of a small application with the Message Content intent.
const contentFlag = 1 << 19

// Server is a platform with one bot. It is an http.Handler. Its methods may be called from several goroutines.
type Server struct {
	// Fault is called before each REST call with its route and the number of earlier calls of this route. A route is a
	// method and a path with {} for each id. Fault must be set before the first request and be safe for several
	// goroutines.
	Fault func(route string, n int) Fault
	// Interval is the time between two heartbeats. 0 means 45 s. It must be set before the first request.
	Interval time.Duration
	// Early delivers messages from before the first session to this session. Discord does not do this, but the table
	// of cases begins with a message.
	Early bool
	// MaxFile is the largest file that a bot can send. 0 means 10 MiB.
	MaxFile int64

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	calls    map[string]int
	token    string
	flags    int
	endpoint string
	starts   int // sessions that the bot may begin today
	skew     time.Duration
	lastID   uint64
	origin   string // host and port of the last request
	deaf     bool   // heartbeats are not acknowledged
	refuse   int    // the close code for each new session; 0 means none
	begun    int    // sessions that the bot has begun
	resumed  int
	beats    int
	intents  int

	channels map[string]*place
	guilds   map[string]*guild
	files    map[string]File
	sessions map[string]*session
	presses  map[string]*press
	buckets  map[string]*bucket
	limit    int // requests of a bucket in a window; 0 means any
	window   time.Duration
	nonces   map[string]string // the message of a nonce
	written  []*Message        // the messages of people, in order
	clicks   []map[string]any  // the presses, in order
	held     []*Message        // messages that are not delivered yet
	holds    bool
	pressed  []string // the acknowledged presses, in order
	sent     []string // the ids of the bot's messages, in order
}

// place is a channel of Discord.
type place struct {
	kind     int
	guild    string
	messages []*Message
	denied   int // the error code of every request; 0 means none
}

type guild struct {
	name  string
	right uint64
}

type press struct {
	token string
	until time.Time
	acked bool
}

// Message is a message in either direction.
type Message struct {
	ID, Channel string
	Author      string // a person's id, or Self
	Text        string
	Members     map[string]any // further members of Discord's Message
	Buttons     []Button
	ReplyTo     string
	File        *File
	Flags       int
	Edits       []string // earlier texts
	Removed     bool
	Reactions   []string
	Pings       int // people and groups that the text notifies
}

// Button is a button below a message.
type Button struct{ Label, Data string }

// File is a file in either direction.
type File struct {
	Name string
	Data []byte
}

// New returns a server for a bot with this token. The bot is in one guild, see [Server.AddChannel], and has the Message
// Content intent.
func New(token string) *Server {
	return &Server{
		token: token, changed: make(chan struct{}), calls: map[string]int{}, flags: contentFlag, starts: 1000,
		channels: map[string]*place{},
		guilds:   map[string]*guild{"700": {"Workshop", 1<<6 | 1<<10 | 1<<11 | 1<<15 | 1<<16 | 1<<38}},
		files:    map[string]File{}, sessions: map[string]*session{}, presses: map[string]*press{},
		buckets: map[string]*bucket{}, nonces: map[string]string{},
	}
}

// update changes the state and wakes all that wait.
func (s *Server) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.wake()
}

// wake tells all waiting goroutines that the state has changed. The caller holds mu.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait returns nil when ok returns true, and ctx's error when ctx ends first.
func (s *Server) Wait(ctx context.Context, ok func() bool) error {
	return channeltest.Await(ctx, func() <-chan struct{} {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.changed
	}, ok)
}

// newID returns an id of this moment. The caller holds mu.
func (s *Server) newID() string {
	const epoch = 1420070400000
	ms := uint64(time.Now().Add(s.skew).UnixMilli() - epoch)
	s.lastID = max(s.lastID+1, ms<<22)
	return strconv.FormatUint(s.lastID, 10)
}

// place returns a channel. A channel that nobody has added is a direct one. The caller holds mu.
func (s *Server) place(id string) *place {
	if s.channels[id] == nil {
		s.channels[id] = &place{kind: Direct}
	}
	return s.channels[id]
}

// AddChannel adds a channel of this kind to the guild.
func (s *Server) AddChannel(id string, kind int) {
	s.update(func() { s.channels[id] = &place{kind: kind, guild: "700"} })
}

// Deny makes every request for a channel fail with an error code, for example 10003 for a deleted channel.
func (s *Server) Deny(id string, code int) { s.update(func() { s.place(id).denied = code }) }

// Say adds a message of a person and returns its id.
func (s *Server) Say(channel, contact, name, text string) string {
	return s.SayMore(channel, contact, name, map[string]any{"content": text})
}

// SayMore adds a message of a person with members of Discord's Message.
func (s *Server) SayMore(channel, contact, name string, members map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &Message{ID: s.newID(), Channel: channel, Author: contact, Members: map[string]any{
		"author": map[string]any{"id": contact, "username": name},
	}}
	maps.Copy(m.Members, members)
	m.Text, _ = m.Members["content"].(string)
	s.place(channel).messages = append(s.place(channel).messages, m)
	s.written = append(s.written, m)
	if s.holds {
		s.held = append(s.held, m)
		return m.ID
	}
	s.dispatchMessage("MESSAGE_CREATE", m)
	return m.ID
}

// Change is an edit of a person's message.
func (s *Server) Change(channel, id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(channel, id); m != nil {
		m.Text, m.Members["content"] = text, text
		m.Members["edited_timestamp"] = time.Now().Add(s.skew).UTC().Format(time.RFC3339Nano)
		s.dispatchMessage("MESSAGE_UPDATE", m)
	}
}

// Unfurl delivers the update that Discord sends after it has made a preview of a link.
func (s *Server) Unfurl(channel, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(channel, id); m != nil {
		s.dispatchMessage("MESSAGE_UPDATE", m)
	}
}

// Again delivers a message once more, as a later event.
func (s *Server) Again(channel, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(channel, id); m != nil {
		s.dispatchMessage("MESSAGE_CREATE", m)
	}
}

// Press adds a person's press of a button below a message of the bot. It returns the id of the interaction. The
// interaction must be acknowledged within the duration "valid".
func (s *Server) Press(channel, contact, name, message, data string, valid time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.newID()
	s.presses[id] = &press{token: "token-of-" + id, until: time.Now().Add(valid)}
	who := map[string]any{"id": contact, "username": name}
	i := map[string]any{"id": id, "token": "token-of-" + id, "type": 3, "channel_id": channel,
		"application_id": Application, "version": 1, "data": map[string]any{"custom_id": data, "component_type": 2}}
	if m := s.find(channel, message); m != nil {
		i["message"] = s.object(m, true)
	}
	if at := s.place(channel); at.guild != "" {
		i["guild_id"], i["member"] = at.guild, map[string]any{"user": who, "roles": []string{}, "permissions": "0"}
	} else {
		i["user"] = who
	}
	s.clicks = append(s.clicks, i)
	s.dispatch("INTERACTION_CREATE", i)
	return id
}

// find returns a message, or nil. The caller holds mu.
func (s *Server) find(channel, id string) *Message {
	for _, m := range s.place(channel).messages {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// object returns Discord's Message. Its content is hidden if "content" is false. The caller holds mu.
func (s *Server) object(m *Message, content bool) map[string]any {
	o := map[string]any{
		"id": m.ID, "channel_id": m.Channel, "type": 0, "content": m.Text, "edited_timestamp": nil, "mentions": []any{},
		"mention_roles": []any{}, "attachments": []any{}, "embeds": []any{}, "components": components(m.Buttons),
		"tts": false, "mention_everyone": false, "pinned": false, "flags": m.Flags,
		"timestamp": time.UnixMilli(int64(number(m.ID)>>22) + 1420070400000).UTC().Format(time.RFC3339Nano),
	}
	maps.Copy(o, m.Members)
	if m.Author == Self {
		o["author"] = map[string]any{"id": Self, "username": "perlica", "bot": true}
	}
	if m.ReplyTo != "" {
		o["type"] = 19
		o["message_reference"] = map[string]any{"type": 0, "message_id": m.ReplyTo, "channel_id": m.Channel}
		if to := s.find(m.Channel, m.ReplyTo); to != nil {
			o["referenced_message"] = map[string]any{"id": to.ID, "channel_id": to.Channel, "content": to.Text,
				"author": map[string]any{"id": to.Author, "username": "x"}, "timestamp": o["timestamp"]}
		}
	}
	if m.File != nil {
		s.files[m.ID] = *m.File
		o["attachments"] = []any{map[string]any{"id": m.ID, "filename": m.File.Name, "size": len(m.File.Data),
			"content_type": "application/octet-stream"}}
	}
	s.address(o["attachments"])
	if snapshots, ok := o["message_snapshots"].([]any); ok {
		for _, snap := range snapshots {
			s.address(snap.(map[string]any)["message"].(map[string]any)["attachments"])
		}
	}
	if !content {
		o["content"], o["attachments"], o["components"], o["embeds"] = "", []any{}, []any{}, []any{}
	}
	return o
}

// address gives attachments their present addresses. The caller holds mu.
func (s *Server) address(attachments any) {
	list, _ := attachments.([]any)
	for _, a := range list {
		if a, ok := a.(map[string]any); ok {
			a["url"] = s.cdn(fmt.Sprint(a["id"]))
		}
	}
}

// cdn returns the address of a file. It expires with the next change of the server's clock. The caller holds mu.
func (s *Server) cdn(file string) string {
	return "http://" + s.origin + "/cdn/" + file + "?ex=" + fmt.Sprint(int64(s.skew))
}

// components returns the rows of buttons, at most five in a row.
func components(buttons []Button) []any {
	rows := []any{}
	for part := range slices.Chunk(buttons, 5) {
		var row []any
		for _, b := range part {
			row = append(row, map[string]any{"type": 2, "style": 2, "label": b.Label, "custom_id": b.Data})
		}
		rows = append(rows, map[string]any{"type": 1, "components": row})
	}
	return rows
}

// shows reports whether a bot without the intent sees a message's content. The caller holds mu.
func (s *Server) shows(m *Message) bool {
	mentions, _ := m.Members["mentions"].([]any)
	return m.Author == Self || s.place(m.Channel).guild == "" ||
		slices.ContainsFunc(mentions, func(u any) bool { who, _ := u.(map[string]any); return who["id"] == Self })
}

// Mention returns the members of a message that mentions the bot.
func Mention(text string) map[string]any {
	return map[string]any{"content": "<@" + Self + "> " + text,
		"mentions": []any{map[string]any{"id": Self, "username": "perlica", "bot": true}}}
}

// AddFile adds a file and returns the attachment for a message's members.
func (s *Server) AddFile(id string, f File) map[string]any {
	s.update(func() { s.files[id] = f })
	return map[string]any{"id": id, "filename": f.Name, "size": len(f.Data), "content_type": "text/plain"}
}

// Messages returns the bot's messages in the order of sending.
func (s *Server) Messages() (list []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.sent {
		channel, id, _ := strings.Cut(id, ":")
		m := *s.find(channel, id)
		m.Edits, m.Buttons = slices.Clone(m.Edits), slices.Clone(m.Buttons)
		list = append(list, m)
	}
	return list
}

// Message returns a message by its id.
func (s *Server) Message(channel, id string) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(channel, id); m != nil {
		return *m
	}
	return Message{}
}

// Calls returns how often a route was called.
func (s *Server) Calls(route string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[route]
}

// Acknowledged returns the ids of the acknowledged presses in order.
func (s *Server) Acknowledged() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pressed)
}

// Revoke makes the bot's token invalid, and closes its connections to the gateway.
func (s *Server) Revoke() {
	s.update(func() { s.token = "" })
	s.CloseAll(4004)
}

// SetFlags sets the flags of the application. 0 means without the Message Content intent.
func (s *Server) SetFlags(flags int) { s.update(func() { s.flags = flags }) }

// SetEndpoint sets the address to which Discord sends interactions instead of the gateway.
func (s *Server) SetEndpoint(url string) { s.update(func() { s.endpoint = url }) }

// SetRight sets the bot's permissions in the guild. A bot that has left the guild has none.
func (s *Server) SetRight(right uint64, in bool) {
	s.update(func() {
		delete(s.guilds, "700")
		if in {
			s.guilds["700"] = &guild{"Workshop", right}
		}
	})
}

// SetStarts sets how many sessions the bot may begin today.
func (s *Server) SetStarts(n int) { s.update(func() { s.starts = n }) }

// SetSkew moves the server's clock.
func (s *Server) SetSkew(by time.Duration) { s.update(func() { s.skew = by }) }

// SetLimit gives each bucket this number of requests in a window of time.
func (s *Server) SetLimit(n int, window time.Duration) {
	s.update(func() { s.limit, s.window = n, window })
}

// number returns the number of an id.
func number(id string) uint64 {
	n, _ := strconv.ParseUint(id, 10, 64) // 0 if it is not an id
	return n
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("discordtest: %v", err)) // the test must not continue
	}
	return b
}
