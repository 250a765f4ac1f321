// Package matrixtest is a homeserver for tests, from the public description of the client-server API, with real HTTP.
//
// It has the properties that the channel depends on. A sync is held open, limits its timelines and applies the filter.
// A transaction id makes one event. Invitations show a part of the state. The server misbehaves on request, see
// [Fault].
package matrixtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel/channeltest"
)

// Bot is the user id of the account with the token of a server.
const Bot = "@perlica:example.org"

// Object is a JSON object.
type Object = map[string]any

// Fault is the server's misbehaviour in one call.
type Fault struct {
	// Status is the HTTP status of an answer without any effect, and Say is its body. With Late, the effect happens
	// before this answer.
	Status int
	Say    string
	Late   bool
	// Drop cuts the connection before the effect, Lose after it, and Half in the middle of the answer.
	Drop, Lose, Half bool
}

// Event is an event in a room. The position is its place in the stream of all events.
type Event struct {
	Position int
	Room     string
	Body     Object
}

// Server is a homeserver with one account. It is an http.Handler.
type Server struct {
	// Fault is called before each call with its name, such as "sync" or "send". It must be set before the first request.
	Fault func(call string) Fault
	// OldMedia means that the server has only the paths of media without authentication.
	OldMedia bool
	// Limit is the largest number of events of a room in one answer. 0 means the number that the client asks for.
	Limit int

	token string

	mu       sync.Mutex
	changed  chan struct{}
	events   []Event
	members  map[string]map[string]string // membership by room and person
	invited  map[string][]Object          // the shown state of an invitation by room
	since    map[string]int               // position of the last change of the account's membership
	made     map[string]string            // event ids by transaction
	media    map[string]media
	Declined map[string]string // reasons by room
	replay   bool
}

type media struct {
	kind string
	data []byte
}

// New returns a server.
func New(token string) *Server {
	return &Server{token: token, changed: make(chan struct{}), members: map[string]map[string]string{},
		invited: map[string][]Object{}, since: map[string]int{}, made: map[string]string{}, media: map[string]media{},
		Declined: map[string]string{}}
}

// change tells all waiting calls about a change. The caller holds mu.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// add adds an event and returns its id. The caller holds mu.
func (s *Server) add(room string, body Object) string {
	n := len(s.events) + 1
	if body["event_id"] == nil {
		body["event_id"] = fmt.Sprintf("$event%d", n)
	}
	if body["origin_server_ts"] == nil {
		body["origin_server_ts"] = time.Now().UnixMilli()
	}
	s.events = append(s.events, Event{n, room, body})
	s.change()
	return body["event_id"].(string)
}

// Add adds an event of a person and returns its id.
func (s *Server) Add(room, sender, kind string, content Object) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(room, Object{"type": kind, "sender": sender, "content": content})
}

// SetState adds a state event.
func (s *Server) SetState(room, sender, kind, key string, content Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setState(room, sender, kind, key, content)
}

func (s *Server) setState(room, sender, kind, key string, content Object) {
	if kind == "m.room.member" {
		if s.members[room] == nil {
			s.members[room] = map[string]string{}
		}
		before := s.members[room][key]
		s.members[room][key], _ = content["membership"].(string)
		s.add(room, Object{"type": kind, "sender": sender, "state_key": key, "content": content,
			"unsigned": Object{"prev_content": Object{"membership": before}}})
		if key == Bot {
			s.since[room] = len(s.events)
		}
		return
	}
	s.add(room, Object{"type": kind, "sender": sender, "state_key": key, "content": content})
}

// Enter makes a person a member of a room.
func (s *Server) Enter(room, person, name string) {
	s.SetState(room, person, "m.room.member", person, Object{"membership": "join", "displayname": name})
}

// Invite invites the account to a room.
func (s *Server) Invite(room, person string, state ...Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invited[room] = append(state, Object{"type": "m.room.member", "sender": person, "state_key": Bot,
		"content": Object{"membership": "invite"}})
	s.setState(room, person, "m.room.member", Bot, Object{"membership": "invite"})
}

// Membership returns the membership of the account in a room.
func (s *Server) Membership(room string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[room][Bot]
}

// Events returns all events.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// AddMedia stores a file and returns its address.
func (s *Server) AddMedia(kind string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("media%d", len(s.media))
	s.media[id] = media{kind, data}
	return "mxc://example.org/" + id
}

// Media returns a stored file.
func (s *Server) Media(address string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.media[strings.TrimPrefix(address, "mxc://example.org/")].data
}

// Replay lets the next sync begin at the first event.
func (s *Server) Replay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replay = true
	s.change()
}

// Wait returns nil when ok returns true, and the error of ctx when ctx ends first. It calls ok after every change.
func (s *Server) Wait(ctx context.Context, ok func() bool) error {
	return channeltest.Await(ctx, func() <-chan struct{} {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.changed
	}, ok)
}

// problem is an answer that refuses a request.
type problem struct {
	status int
	code   string
	text   string
}

var (
	notFound  = &problem{http.StatusNotFound, "M_NOT_FOUND", "Not found"}
	forbidden = &problem{http.StatusForbidden, "M_FORBIDDEN", "You are not in this room"}
	unknown   = &problem{http.StatusNotFound, "M_UNRECOGNIZED", "Unrecognized request"}
)

// calls has the name of a call for the beginning and the end of its path.
func nameOf(path []string) string {
	switch {
	case len(path) > 2 && path[len(path)-3] == "send":
		return "send"
	case slices.Contains(path, "download"):
		return "download"
	case slices.Contains(path, "upload"):
		return "upload"
	case slices.Contains(path, "sync"), slices.Contains(path, "messages"):
		return "sync"
	}
	return path[len(path)-1]
}

// ServeHTTP serves the calls that the channel makes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/_matrix/"), "/")
	var f Fault
	if s.Fault != nil {
		f = s.Fault(nameOf(path))
	}
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil || f.Drop:
		panic(http.ErrAbortHandler) // net/http's way to cut a connection
	case f.Status != 0 && !f.Late:
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Say) // fails only if the client has disconnected
		return
	}
	var result any
	p := &problem{http.StatusUnauthorized, "M_UNKNOWN_TOKEN", "Unrecognised access token"}
	if r.Header.Get("Authorization") == "Bearer "+s.token || strings.HasSuffix(r.URL.Path, "/versions") {
		result, p = s.do(r, path, body)
	}
	switch {
	case f.Lose:
		panic(http.ErrAbortHandler)
	case f.Late:
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Say)
		return
	case f.Half:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"event_id": "$ev`)
		_ = http.NewResponseController(w).Flush() // an error does not matter, because the connection is cut next
		panic(http.ErrAbortHandler)
	}
	if p != nil {
		w.WriteHeader(p.status)
		result = Object{"errcode": p.code, "error": p.text}
	}
	if m, ok := result.(media); ok {
		w.Header().Set("Content-Type", m.kind)
		_, _ = w.Write(m.data)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(result) // fails only if the client has disconnected
}

func (s *Server) do(r *http.Request, path []string, body []byte) (any, *problem) {
	switch name := nameOf(path); {
	case path[0] == "client" && name == "versions":
		return Object{"versions": []string{"v1.10", "v1.11"}}, nil
	case path[0] == "media" || len(path) > 2 && path[2] == "media":
		return s.serveMedia(r, path, body)
	case len(path) < 3 || path[1] != "v3":
		return nil, unknown
	case path[2] == "sync":
		return s.sync(r)
	case name == "whoami":
		return Object{"user_id": Bot, "device_id": "DEVICE"}, nil
	case name == "joined_rooms":
		return s.joinedRooms(), nil
	case path[2] == "join":
		return s.join(path[3])
	case path[2] == "rooms" && len(path) > 4:
		return s.room(r, path[3], path[4:], body)
	}
	return nil, unknown
}

func (s *Server) serveMedia(r *http.Request, path []string, body []byte) (any, *problem) {
	if nameOf(path) == "upload" && r.Method == http.MethodPost {
		return Object{"content_uri": s.AddMedia(r.Header.Get("Content-Type"), body)}, nil
	}
	if old := path[0] == "media"; old != s.OldMedia {
		return nil, unknown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.media[path[len(path)-1]]
	if !ok {
		return nil, notFound
	}
	return m, nil
}

func (s *Server) joinedRooms() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []string{}
	for room, members := range s.members {
		if members[Bot] == "join" {
			list = append(list, room)
		}
	}
	slices.Sort(list)
	return Object{"joined_rooms": list}
}

func (s *Server) join(room string) (any, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[room][Bot] != "invite" {
		return nil, forbidden
	}
	delete(s.invited, room)
	s.setState(room, Bot, "m.room.member", Bot, Object{"membership": "join", "displayname": "Perlica"})
	return Object{"room_id": room}, nil
}

// room serves the calls about one room.
func (s *Server) room(r *http.Request, room string, path []string, body []byte) (any, *problem) {
	var content Object
	if len(body) > 0 && json.Unmarshal(body, &content) != nil {
		return nil, &problem{http.StatusBadRequest, "M_NOT_JSON", "Content not JSON"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if path[0] == "leave" {
		s.Declined[room], _ = content["reason"].(string)
		delete(s.invited, room)
		s.setState(room, Bot, "m.room.member", Bot, Object{"membership": "leave"})
		return Object{}, nil
	}
	if s.members[room][Bot] != "join" {
		return nil, forbidden
	}
	switch {
	case path[0] == "send" && len(path) == 3:
		const most = 65_000
		if len(body) > most {
			return nil, &problem{http.StatusRequestEntityTooLarge, "M_TOO_LARGE", "event too large"}
		}
		id, repeated := s.made[path[2]]
		if !repeated {
			id = s.add(room, Object{"type": path[1], "sender": Bot, "content": content})
			s.made[path[2]] = id
		}
		return Object{"event_id": id}, nil
	case path[0] == "typing":
		return Object{}, nil
	case path[0] == "joined_members":
		joined := Object{}
		for person, membership := range s.members[room] {
			if membership == "join" {
				joined[person] = Object{}
			}
		}
		return Object{"joined": joined}, nil
	case path[0] == "event" && len(path) == 2:
		return s.find(room, func(e Object) bool { return e["event_id"] == path[1] }, "")
	case path[0] == "state" && len(path) > 1:
		return s.find(room, func(e Object) bool { return e["type"] == path[1] && e["state_key"] == "" }, "content")
	case path[0] == "messages":
		return s.messages(r, room)
	}
	return nil, unknown
}

// find returns the last event of a room that the function "is" accepts, or a member of this event.
func (s *Server) find(room string, is func(Object) bool, member string) (any, *problem) {
	for _, e := range slices.Backward(s.events) {
		if e.Room != room || !is(e.Body) {
			continue
		}
		if member != "" {
			return e.Body[member], nil
		}
		return e.Body, nil
	}
	return nil, notFound
}

// filter holds the used members of a filter for the events of rooms.
type filter struct {
	Types []string `json:"types"`
	Limit int      `json:"limit"`
}

// matches reports whether an event of the room has a wanted type.
func (e Event) matches(room string, f filter) bool {
	kind, _ := e.Body["type"].(string)
	return e.Room == room && slices.Contains(f.Types, kind)
}

// messages returns a page of earlier events, newest first.
func (s *Server) messages(r *http.Request, room string) (any, *problem) {
	from, err := position(r.FormValue("from"))
	to, err2 := position(cmp.Or(r.FormValue("to"), token(0)))
	var f filter
	err3 := json.Unmarshal([]byte(r.FormValue("filter")), &f)
	if err != nil || err2 != nil || err3 != nil || r.FormValue("dir") != "b" {
		return nil, &problem{http.StatusBadRequest, "M_INVALID_PARAM", "invalid parameter"}
	}
	chunk, end := []Object{}, ""
	for _, e := range slices.Backward(s.events[:from]) {
		if e.Position <= to {
			break
		}
		if !e.matches(room, f) {
			continue
		}
		if chunk = append(chunk, e.Body); len(chunk) == s.most(f) {
			end = token(e.Position - 1)
			break
		}
	}
	answer := Object{"chunk": chunk, "start": r.FormValue("from")}
	if end != "" {
		answer["end"] = end
	}
	return answer, nil
}

func (s *Server) most(f filter) int {
	if s.Limit > 0 {
		return min(s.Limit, f.Limit)
	}
	return f.Limit
}

func token(position int) string { return "s" + strconv.Itoa(position) }

func position(token string) (int, error) { return strconv.Atoi(strings.TrimPrefix(token, "s")) }

// sync waits for events after the token.
func (s *Server) sync(r *http.Request) (any, *problem) {
	since, first := 0, r.FormValue("since") == ""
	var err error
	if !first {
		since, err = position(r.FormValue("since"))
	}
	var f struct {
		Room struct {
			Timeline filter `json:"timeline"`
			State    filter `json:"state"`
		} `json:"room"`
	}
	if json.Unmarshal([]byte(r.FormValue("filter")), &f) != nil || err != nil {
		return nil, &problem{http.StatusBadRequest, "M_INVALID_PARAM", "invalid parameter"}
	}
	wait, _ := strconv.Atoi(r.FormValue("timeout")) // no number means no wait
	late := time.NewTimer(time.Duration(wait) * time.Millisecond)
	defer late.Stop()
	for {
		s.mu.Lock()
		if s.replay && !first {
			s.replay, since = false, 0
		}
		join, invite := Object{}, Object{}
		for room, members := range s.members {
			switch members[Bot] {
			case "join":
				if news := s.news(room, since, f.Room.Timeline, f.Room.State); news != nil {
					join[room] = news
				}
			case "invite":
				if s.since[room] > since {
					invite[room] = Object{"invite_state": Object{"events": s.invited[room]}}
				}
			}
		}
		next, changed := token(len(s.events)), s.changed
		s.mu.Unlock()
		answer := Object{"next_batch": next, "rooms": Object{"join": join, "invite": invite}}
		if len(join)+len(invite) > 0 || wait == 0 {
			return answer, nil
		}
		select {
		case <-changed:
		case <-late.C:
			return answer, nil
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// news returns the part of a room in the answer of a sync, or nil.
func (s *Server) news(room string, since int, timeline, state filter) any {
	var list []Event
	if s.since[room] > since { // a room that the account has joined shows its past
		since = 0
	}
	for _, e := range s.events {
		if e.Position > since && e.matches(room, timeline) {
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return nil
	}
	most := s.most(timeline)
	limited := len(list) > most
	list = list[max(0, len(list)-most):]
	bodies, states := []Object{}, []Object{}
	for _, e := range list {
		bodies = append(bodies, e.Body)
	}
	for _, e := range s.events {
		if _, is := e.Body["state_key"]; is && e.Position < list[0].Position && e.matches(room, state) {
			states = append(states, e.Body)
		}
	}
	return Object{"state": Object{"events": states}, "timeline": Object{"events": bodies, "limited": limited,
		"prev_batch": token(list[0].Position - 1)}}
}
