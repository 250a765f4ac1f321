// Package telegramtest is a Bot API server for tests, with real HTTP and without Telegram.
//
// It has the properties that the bridge depends on. Updates are numbered and kept until a larger
// offset confirms them. A poll is held open. Wrong formatting is refused. Sent messages are
// remembered. A journal preserves this state after any end of the process. The server refuses the
// same requests as Telegram, as far as the bridge makes them. It misbehaves on request, see
// [Fault].
package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/perlica/perlica/service/channel/channeltest"
)

// Server is a Bot API server with one bot. It is an http.Handler. Its methods may be called from
// several goroutines.
type Server struct {
	// Fault is called before each call with the method and the number of its earlier calls. It must
	// be set before the first request and be safe for several goroutines.
	Fault func(method string, n int) Fault
	// MaxFile is the largest file that the server returns. 0 means 20 MiB.
	MaxFile int64

	token   string
	journal *os.File // nil means that the state is not stored

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	calls   map[string]int
	gone    []int64 // deleted chats
	record
}

// record is the content of the journal: each line is a whole state or a change.
type record struct {
	Updates   []update        `json:"updates,omitempty"`
	Confirmed int64           `json:"confirmed,omitempty"` // the first unconfirmed update
	Sent      []Sent          `json:"sent,omitempty"`
	Files     map[string]File `json:"files,omitempty"`
	Last      int64           `json:"last,omitempty"` // the last message's number
	Reactions []Reaction      `json:"reactions,omitempty"`

	Menus map[string][]Command `json:"menus,omitempty"` // by language code
}

// Command is a command that the platform shows.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// Reaction is an emoji of the bot on a person's message.
type Reaction struct {
	Chat    int64  `json:"chat"`
	Message int64  `json:"message"`
	Emoji   string `json:"emoji"`
}

// update is an update as the bot gets it.
type update struct {
	ID   int64           `json:"update_id"`
	Body json.RawMessage `json:"body"` // the other members
}

// Sent is a message of the bot.
type Sent struct {
	ID        int64    `json:"id"`
	Chat      int64    `json:"chat"`
	Thread    int64    `json:"thread,omitempty"` // the topic of a forum
	Text      string   `json:"text"`             // the caption of a file
	ParseMode string   `json:"parse_mode,omitempty"`
	ReplyTo   int64    `json:"reply_to,omitempty"`
	Buttons   []Button `json:"buttons,omitempty"`
	Silent    bool     `json:"silent,omitempty"`
	File      *File    `json:"file,omitempty"`
	Edits     []string `json:"edits,omitempty"` // its earlier texts
	Removed   bool     `json:"removed,omitempty"`
}

// Button is a button below a message.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

// File is a file in either direction.
type File struct {
	Name  string `json:"name"`
	Data  []byte `json:"data"`
	Photo bool   `json:"photo,omitempty"` // of the bot; shown as a photo
}

// New returns a server that stores nothing.
func New(token string) *Server {
	return &Server{token: token, changed: make(chan struct{}), calls: map[string]int{},
		record: record{Files: map[string]File{}, Confirmed: 1}}
}

// Open returns a server that continues at the end of the journal, or a new one.
func Open(token, journal string) (*Server, error) {
	s := New(token)
	b, err := os.ReadFile(journal)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1] // an interrupted last change was never acknowledged
	for line := range bytes.Lines(b) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("telegramtest: %s: %w", journal, err)
		}
		s.applyChange(r)
	}
	if s.journal, err = os.OpenFile(journal, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	return s, s.journal.Truncate(int64(len(b)))
}

// Close closes the journal.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}

// applyChange applies a change.
func (s *Server) applyChange(r record) {
	for _, u := range r.Updates {
		if !slices.ContainsFunc(s.Updates, func(old update) bool { return old.ID == u.ID }) {
			s.Updates = append(s.Updates, u)
		}
	}
	for _, m := range r.Sent {
		if i := slices.IndexFunc(s.Sent, func(old Sent) bool { return old.ID == m.ID }); i >= 0 {
			s.Sent[i] = m
		} else {
			s.Sent = append(s.Sent, m)
		}
	}
	for id, f := range r.Files {
		s.Files[id] = f
	}
	s.Confirmed = max(s.Confirmed, r.Confirmed)
	s.Last = max(s.Last, r.Last)
	s.Reactions = append(s.Reactions, r.Reactions...)
	if s.Menus == nil {
		s.Menus = map[string][]Command{}
	}
	maps.Copy(s.Menus, r.Menus)
}

// change applies and stores a change. The caller holds mu.
func (s *Server) change(r record) {
	s.applyChange(r)
	close(s.changed)
	s.changed = make(chan struct{})
	if s.journal == nil {
		return
	}
	b, err := json.Marshal(r)
	if err == nil {
		_, err = s.journal.Write(append(b, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("telegramtest: the journal: %v", err)) // the test must not continue with a wrong state
	}
}

// Say adds a message of a person. It returns the message's number in its chat.
func (s *Server) Say(chat, contact int64, name, text string) (message int64) {
	return s.SayMore(chat, contact, name, map[string]any{"text": text})
}

// SayMore adds a message of a person with members of the Bot API's Message.
func (s *Server) SayMore(chat, contact int64, name string, members map[string]any) (message int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := map[string]any{
		"message_id": s.Last + 1, "date": 1700000000 + s.Last, "chat": map[string]any{"id": chat, "type": "private"},
		"from": map[string]any{"id": contact, "first_name": name},
	}
	for k, v := range members {
		m[k] = v
	}
	s.push(map[string]any{"message": m}, record{Last: s.Last + 1})
	return s.Last
}

// Press adds a person's press of a button below a message of the bot.
func (s *Server) Press(contact int64, name string, message int64, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.Sent {
		if m.ID != message {
			continue
		}
		var rows [][]Button
		for _, b := range m.Buttons {
			rows = append(rows, []Button{b})
		}
		s.push(map[string]any{"callback_query": map[string]any{
			"id": strconv.Itoa(len(s.Updates) + 1000), "from": map[string]any{"id": contact, "first_name": name}, "data": data,
			"message": map[string]any{
				"message_id": m.ID, "date": 1700000000, "chat": map[string]any{"id": m.Chat},
				"reply_markup": map[string]any{"inline_keyboard": rows},
			},
		}}, record{})
	}
}

// Push adds any update. body holds its members except the id.
func (s *Server) Push(body map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push(body, record{})
}

func (s *Server) push(body map[string]any, r record) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	r.Updates = []update{{ID: int64(len(s.Updates)) + 1, Body: b}}
	s.change(r)
}

// AddFile adds a file that getFile finds by id.
func (s *Server) AddFile(id string, f File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(record{Files: map[string]File{id: f}})
}

// Messages returns the bot's messages in the order of sending.
func (s *Server) Messages() []Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Sent)
}

// Reacted returns the bot's reactions in order.
func (s *Server) Reacted() []Reaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.record.Reactions)
}

// Menu returns the commands that are shown in a language.
func (s *Server) Menu(language string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.record.Menus[language])
}

// Unconfirmed returns the number of updates that the bot has not confirmed.
func (s *Server) Unconfirmed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.Updates) + 1 - int(s.Confirmed)
}

// Calls returns how often a method was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Wait returns nil when ok returns true, and ctx's error when ctx ends first. It calls ok after every change and every
// call.
func (s *Server) Wait(ctx context.Context, ok func() bool) error {
	return channeltest.Await(ctx, func() <-chan struct{} {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.changed
	}, ok)
}
