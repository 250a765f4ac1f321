package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// event holds the used members of an event.
type event struct {
	ID      string          `json:"event_id"`
	Type    string          `json:"type"`
	Sender  string          `json:"sender"`
	State   *string         `json:"state_key"`
	Time    int64           `json:"origin_server_ts"`
	Content json.RawMessage `json:"content"`
	More    struct {
		Before struct {
			Membership string `json:"membership"`
		} `json:"prev_content"`
	} `json:"unsigned"`
}

// timeline is a part of a room's events in their order.
type timeline struct {
	Events  []event `json:"events"`
	Limited bool    `json:"limited"` // events between the cursor and the first event are missing
	Before  string  `json:"prev_batch"`
}

// answer is the answer to /sync.
type answer struct {
	Next  string `json:"next_batch"`
	Rooms struct {
		Join map[string]struct {
			Timeline timeline `json:"timeline"`
			State    struct {
				Events []event `json:"events"`
			} `json:"state"`
		} `json:"join"`
		Invite map[string]struct {
			State struct {
				Events []event `json:"events"`
			} `json:"invite_state"`
		} `json:"invite"`
	} `json:"rooms"`
}

// These are types of events.
const (
	memberType     = "m.room.member"
	encryptionType = "m.room.encryption"
	messageType    = "m.room.message"
	reactionType   = "m.reaction"
)

// events lists the types of events in timelines that the channel reads.
var events = []string{messageType, reactionType, "m.sticker", "m.poll.start", "org.matrix.msc3381.poll.start",
	memberType, encryptionType, "m.room.join_rules"}

// timelineLimit is the number of events of a room in one answer.
const timelineLimit = 50

func roomFilter() map[string]any {
	return map[string]any{"limit": timelineLimit, "types": events, "lazy_load_members": true,
		"include_redundant_members": true}
}

// pollSlack is the tolerated delay of the server's answer.
const pollSlack = 30 * time.Second

// Poll returns the messages of people. It follows and declines invitations. With the empty cursor it returns only the
// last messages of each room, because earlier messages were not written to the bridge.
func (c *Channel) Poll(ctx context.Context, cursor string) (list []channel.Inbound, next string, err error) {
	self, err := c.whoAmI(ctx)
	if err != nil {
		return nil, cursor, err
	}
	a, err := c.sync(ctx, cursor)
	if err != nil {
		return nil, cursor, err
	}
	for _, room := range slices.Sorted(maps.Keys(a.Rooms.Invite)) {
		if err := c.invited(ctx, self, room, a.Rooms.Invite[room].State.Events); err != nil {
			return nil, cursor, err
		}
	}
	for _, room := range slices.Sorted(maps.Keys(a.Rooms.Join)) {
		r := a.Rooms.Join[room]
		all := r.Timeline.Events
		if r.Timeline.Limited && cursor != "" {
			end := cursor
			if slices.ContainsFunc(all, func(e event) bool { return e.isJoin(self) }) || c.hasEntered(room) {
				end = "" // messages to the account may be older than the cursor
			}
			earlier, err := c.gap(ctx, self, room, r.Timeline.Before, end)
			if err != nil {
				return nil, cursor, err
			}
			all = append(earlier, all...)
		}
		names := map[string]string{}
		for _, e := range slices.Concat(r.State.Events, all) {
			c.learn(room, e, names)
		}
		messages, err := c.read(ctx, self, room, all, names)
		if err != nil {
			return nil, cursor, err
		}
		list = append(list, messages...)
	}
	return list, a.Next, nil
}

// sync waits for events after the cursor.
func (c *Channel) sync(ctx context.Context, cursor string) (a answer, err error) {
	none := map[string]any{"types": []string{}}
	room := roomFilter()
	filter, err := json.Marshal(map[string]any{
		"presence": none, "account_data": none,
		"room": map[string]any{"account_data": none, "ephemeral": none, "timeline": room,
			"state": map[string]any{"types": []string{memberType, encryptionType, "m.room.join_rules"},
				"lazy_load_members": true, "include_redundant_members": true}},
	})
	if err != nil {
		return a, err
	}
	query := url.Values{"filter": {string(filter)}}
	if cursor != "" {
		query.Set("since", cursor)
		query.Set("timeout", strconv.FormatInt(c.opt.PollFor.Milliseconds(), 10))
	}
	ctx, cancel := context.WithTimeout(ctx, c.opt.PollFor+pollSlack)
	defer cancel()
	err = c.send(ctx, request{http.MethodGet, "/_matrix/client/v3/sync", query, "", nil, -1}, &a)
	if err == nil && a.Next == "" {
		err = errors.New("matrix: the answer has no next_batch")
	}
	return a, err
}

// gap returns the events of a room between the tokens "end" and "before", oldest first. It begins at the latest with
// the account's invitation.
func (c *Channel) gap(ctx context.Context, self, room, before, end string) (list []event, err error) {
	filter, err := json.Marshal(roomFilter())
	if err != nil {
		return nil, err
	}
	for before != "" {
		var page struct {
			Chunk []event `json:"chunk"` // newest first
			State []event `json:"state"`
			End   string  `json:"end"`
		}
		query := url.Values{"dir": {"b"}, "from": {before}, "limit": {strconv.Itoa(timelineLimit)},
			"filter": {string(filter)}}
		if end != "" {
			query.Set("to", end)
		}
		if err := c.call(ctx, http.MethodGet, at("/_matrix/client/v3/rooms/%s/messages", room), query, nil,
			&page); err != nil {
			return nil, err
		}
		list = append(list, page.Chunk...)
		if len(page.Chunk) == 0 || page.End == before || slices.ContainsFunc(page.Chunk, func(e event) bool {
			return e.entrance(self) || c.known(room, e)
		}) {
			break
		}
		before = page.End
	}
	slices.Reverse(list)
	return list, nil
}

// entrance reports whether an event begins the membership of the account in its room: an invitation, or a join
// without an invitation.
func (e event) entrance(self string) bool {
	if e.Type != memberType || e.State == nil || *e.State != self {
		return false
	}
	switch membership(e) {
	case "invite":
		return true
	case "join":
		return e.More.Before.Membership != "invite" && e.More.Before.Membership != "join"
	}
	return false
}

// isJoin reports whether the account has joined with this event.
func (e event) isJoin(self string) bool {
	return e.Type == memberType && e.State != nil && *e.State == self && membership(e) == "join"
}

// hasEntered reports whether this process has joined a room. A gap then ends at events that this process knows.
func (c *Channel) hasEntered(room string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entered[room]
}

func membership(e event) string {
	var content struct {
		Membership string `json:"membership"`
	}
	_ = json.Unmarshal(e.Content, &content) // an invalid content has no membership
	return content.Membership
}

// known reports whether this process has placed the event before.
func (c *Channel) known(room string, e event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.places.Get(messageID(room, e.ID))
	return ok
}

// learn remembers the changes of a room that the channel depends on. It adds the name of a member to names.
func (c *Channel) learn(room string, e event, names map[string]string) {
	if e.State == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Type {
	case encryptionType:
		c.encrypted[room] = true // a room stays encrypted for ever
	case memberType:
		var content struct {
			Name string `json:"displayname"`
		}
		if json.Unmarshal(e.Content, &content) == nil && content.Name != "" {
			names[*e.State] = content.Name
		}
		delete(c.shared, room)
	case "m.room.join_rules":
		delete(c.shared, room)
	}
}

// read returns the messages of people among the events of a room.
func (c *Channel) read(ctx context.Context, self, room string, all []event,
	names map[string]string) (list []channel.Inbound, err error) {
	for _, e := range all {
		if e.ID == "" || e.Type == memberType {
			continue
		}
		c.place(room, e, self)
		if e.Sender == self {
			continue
		}
		m, ok, err := c.inbound(ctx, room, e)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		secret, err := c.isEncrypted(ctx, room)
		if err != nil {
			return nil, err
		}
		if secret { // an unencrypted message in an encrypted room is not answered, either
			return nil, nil
		}
		m.ID, m.Chat, m.Contact = messageID(room, e.ID), room, e.Sender
		m.Name, m.Sent = names[e.Sender], time.UnixMilli(e.Time)
		if m.Name == "" {
			m.Name, _, _ = strings.Cut(strings.TrimPrefix(e.Sender, "@"), ":")
		}
		if m.Shared, err = c.isShared(ctx, room); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// place remembers the place of an event in its room, and the account's own messages.
func (c *Channel) place(room string, e event, self string) {
	id := messageID(room, e.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Sender == self {
		c.own.Put(id, struct{}{})
	}
	if _, known := c.places.Get(id); !known {
		c.seen++
		c.places.Put(id, placement{room, c.seen})
	}
}

// relation holds the used members of m.relates_to.
type relation struct {
	Type  string `json:"rel_type"`
	Event string `json:"event_id"`
	Key   string `json:"key"`
	Reply struct {
		Event string `json:"event_id"`
	} `json:"m.in_reply_to"`
	Fallback bool `json:"is_falling_back"`
}

// content holds the used members of a message.
type content struct {
	Type string `json:"msgtype"`
	Body string `json:"body"`
	Name string `json:"filename"`
	URL  string `json:"url"`
	Info struct {
		MIME string `json:"mimetype"`
		Size int64  `json:"size"`
	} `json:"info"`
	Relation relation `json:"m.relates_to"`
}

// inbound returns the message of an event. ok is false if the event is no message of a person.
func (c *Channel) inbound(ctx context.Context, room string, e event) (m channel.Inbound, ok bool, err error) {
	var said content
	if strict.UnmarshalRepaired(e.Content, &said) != nil {
		return m, false, nil // an invalid event must not stop the next ones
	}
	switch e.Type {
	case reactionType:
		number := optionNumber(said.Relation.Key)
		if said.Relation.Type != "m.annotation" || number == "" {
			return m, false, nil
		}
		m = channel.Inbound{Text: said.Relation.Key, Button: number, ReplyTo: messageID(room, said.Relation.Event)}
		ok, err = c.isOwn(ctx, room, said.Relation.Event)
		return m, ok, err
	case "m.sticker":
		m.Unread = "a sticker"
	case "m.poll.start", "org.matrix.msc3381.poll.start":
		m.Unread = "a poll"
	case messageType:
		m = said.inbound(room)
	}
	return m, m.Text != "" || len(m.Files) > 0 || m.Unread != "", nil
}

// inbound returns a written message. It is empty if no person wrote the content, or the content was deleted.
func (said content) inbound(room string) (m channel.Inbound) {
	if said.Relation.Type == "m.replace" {
		return channel.Inbound{Unread: "an edited message"}
	}
	if reply := said.Relation.Reply.Event; reply != "" && !(said.Relation.Type == "m.thread" && said.Relation.Fallback) {
		m.ReplyTo = messageID(room, reply)
	}
	switch said.Type {
	case "m.text", "m.emote":
		m.Text = withoutFallback(said.Body, said.Relation.Reply.Event != "")
	case "m.image", "m.file", "m.audio", "m.video":
		if said.URL == "" {
			m.Unread = "an encrypted file"
			break
		}
		name := said.Name
		if name == "" {
			name = said.Body
		} else if said.Body != name {
			m.Text = withoutFallback(said.Body, said.Relation.Reply.Event != "")
		}
		m.Files = []channel.File{{Name: attachment.Name(name), MIME: said.Info.MIME, Remote: said.URL,
			Size: said.Info.Size}}
	case "m.location":
		m.Unread = "a location"
	}
	return m
}

// withoutFallback removes the quoted lines with which older clients begin a reply.
func withoutFallback(body string, reply bool) string {
	if !reply || !strings.HasPrefix(body, "> ") {
		return body
	}
	lines := strings.Split(body, "\n")
	n := 0
	for n < len(lines) && strings.HasPrefix(lines[n], ">") {
		n++
	}
	if n < len(lines) && lines[n] == "" {
		n++
	}
	return strings.Join(lines[n:], "\n")
}

// optionNumber returns the number that a reaction shows, or "".
func optionNumber(key string) string {
	key = strings.ReplaceAll(key, "\ufe0f", "") // the mark that asks for a colored picture
	if key == "🔟" {
		return "10"
	}
	digit := strings.TrimSuffix(key, "\u20e3") // the frame of a key
	if len(digit) == 1 && digit[0] >= '1' && digit[0] <= '9' {
		return digit
	}
	return ""
}

// isOwn reports whether the account has sent an event.
func (c *Channel) isOwn(ctx context.Context, room, id string) (bool, error) {
	c.mu.Lock()
	_, own := c.own.Get(messageID(room, id))
	self := c.self
	c.mu.Unlock()
	if own {
		return true, nil
	}
	var e event
	err := c.call(ctx, http.MethodGet, at("/_matrix/client/v3/rooms/%s/event/%s", room, id), nil, nil, &e)
	if refused(err) {
		return false, nil
	}
	return err == nil && e.Sender == self, err
}

// refused reports whether the server refuses a request for good.
func refused(err error) bool {
	var rejected *channel.RejectedError
	return errors.As(err, &rejected)
}

// isEncrypted reports whether a room is encrypted.
func (c *Channel) isEncrypted(ctx context.Context, room string) (bool, error) {
	c.mu.Lock()
	encrypted, known := c.encrypted[room]
	c.mu.Unlock()
	if known {
		return encrypted, nil
	}
	err := c.call(ctx, http.MethodGet, at("/_matrix/client/v3/rooms/%s/state/m.room.encryption/", room), nil, nil, nil)
	if err != nil && codeOf(err) != "M_NOT_FOUND" {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.encrypted[room] = c.encrypted[room] || err == nil
	return c.encrypted[room], nil
}

// isShared reports whether more than one person can read a room.
func (c *Channel) isShared(ctx context.Context, room string) (bool, error) {
	c.mu.Lock()
	shared, known := c.shared[room]
	c.mu.Unlock()
	if known {
		return shared, nil
	}
	var members struct {
		Joined map[string]struct{} `json:"joined"`
	}
	var rules struct {
		Rule string `json:"join_rule"`
	}
	err := c.call(ctx, http.MethodGet, at("/_matrix/client/v3/rooms/%s/joined_members", room), nil, nil, &members)
	if err == nil {
		err = c.call(ctx, http.MethodGet, at("/_matrix/client/v3/rooms/%s/state/m.room.join_rules/", room), nil, nil,
			&rules)
	}
	if refused(err) { // the account has left, or the room has no such rule
		return true, nil
	}
	if err != nil {
		return false, err
	}
	const two = 2 // the person and the account
	shared = len(members.Joined) > two || rules.Rule == "public"
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shared[room] = shared
	return shared, nil
}

// invited joins a room if an allowed person invites the account to it, and declines an encrypted room.
func (c *Channel) invited(ctx context.Context, self, room string, state []event) error {
	inviter, encrypted := "", false
	for _, e := range state {
		switch {
		case e.Type == memberType && e.State != nil && *e.State == self && membership(e) == "invite":
			inviter = e.Sender
		case e.Type == encryptionType:
			encrypted = true
		}
	}
	if !c.mayInvite(inviter) {
		return nil
	}
	if encrypted {
		return c.decline(ctx, room)
	}
	err := c.call(ctx, http.MethodPost, at("/_matrix/client/v3/join/%s", room), nil, struct{}{}, nil)
	if err == nil {
		c.mu.Lock()
		c.entered[room] = true
		c.mu.Unlock()
		encrypted, err = c.isEncrypted(ctx, room) // an invitation may show no state
	}
	if err == nil && encrypted {
		err = c.decline(ctx, room)
	}
	return lasting(fmt.Sprintf("the invitation to %s", room), err)
}

// decline leaves an encrypted room. The server shows the reason to the people in the room.
func (c *Channel) decline(ctx context.Context, room string) error {
	err := c.call(ctx, http.MethodPost, at("/_matrix/client/v3/rooms/%s/leave", room), nil,
		map[string]string{"reason": c.opt.Refusal}, nil)
	return lasting(fmt.Sprintf("leaving %s", room), err)
}

// lasting returns an error only if a later attempt can succeed. A permanent error of one room must not stop the
// other rooms. The person can invite the account again.
func lasting(what string, err error) error {
	var r *refusal
	if err == nil || errors.As(err, &r) && !errors.Is(err, channel.ErrNotSent) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
