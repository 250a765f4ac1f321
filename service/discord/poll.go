package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/channel"
)

// poller is the state of Poll.
type poller struct {
	link    *link // nil means not connected
	ready   bool  // the gateway has accepted the session of link
	refused error // Discord forbids a new attempt

	gateway    string    // the address for a new session
	identified time.Time // the last attempt to begin a session
	content    bool      // the gateway shows the content of all messages

	at      position
	started bool // at is taken from a cursor or from the gateway
	behind  bool // the history of the known chats must be read
	idle    int  // events since the last returned cursor

	items   []item // messages that the caller has not yet recorded
	last    int64  // the number of the last item
	seen    channel.Recent[struct{}]
	threads channel.Recent[bool] // whether a channel is a thread
}

// item is a message or a press in this process.
type item struct {
	number int64
	in     channel.Inbound
	press  *interaction // the press to acknowledge
}

// position is the content of a cursor.
type position struct {
	Epoch   string `json:"epoch"`  // the process
	Number  int64  `json:"number"` // the last item before the cursor, in this process
	Session string `json:"session,omitempty"`
	Resume  string `json:"resume,omitempty"` // the address for resuming the session
	Seq     int64  `json:"seq,omitempty"`
	// Chats has the chats in which paired contacts have written to the bot.
	Chats map[string]chat `json:"chats,omitempty"`
}

// chat is a known chat.
type chat struct {
	First string   `json:"first"` // the id of the message that made the chat known
	Last  string   `json:"last"`  // the id of its last message
	Kind  chatKind `json:"kind,omitempty"`
}

type chatKind string

const (
	private chatKind = ""
	shared  chatKind = "shared"
	thread  chatKind = "thread"
)

// mostChats limits the number of known chats. The chat with the oldest last message is forgotten first.
const mostChats = 100

// mostIdle is a number of events without a message for the bot. After so many events Poll moves the cursor, so that
// a later process has fewer events to read again.
const mostIdle = 500

// overlap is the distance from the beginning of a history to the last known message of the chat. Discord may deliver
// two messages of the same moment in another order.
const overlap = 10 * time.Second

// Poll returns the messages to the bot and the presses of its buttons. It acknowledges a press after its message lies
// before the cursor. It names the files of messages for [Channel.Fetch].
func (c *Channel) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	return c.life.Poll(ctx, cursor, c.pollOnce)
}

func (c *Channel) pollOnce(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	p := &c.poll
	if err := c.confirm(ctx, cursor); err != nil {
		return nil, cursor, err
	}
	for fresh := false; ; {
		if p.refused != nil {
			return nil, cursor, p.refused
		}
		if p.link == nil {
			if err := c.connect(ctx); err != nil {
				return nil, cursor, err
			}
			fresh = true
		}
		if p.ready && p.behind {
			if err := c.readHistory(ctx); err != nil {
				return nil, cursor, err
			}
		}
		ended := p.ready && c.takeWaiting(ctx)
		if !ended && p.ready && (fresh || len(p.items) > 0 || p.idle >= mostIdle) {
			return c.page()
		}
		if err := c.await(ctx, ended); err != nil {
			return nil, cursor, err
		}
	}
}

// await waits for an event, or for the end of the connection.
func (c *Channel) await(ctx context.Context, ended bool) error {
	p := &c.poll
	if ended {
		return c.ended()
	}
	var late <-chan time.Time
	if !p.ready {
		timer := time.NewTimer(c.opt.Timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case f, ok := <-p.link.frames:
		if !ok {
			return c.ended()
		}
		c.take(ctx, f)
	case <-late:
		_ = p.link.conn.CloseNow() // its goroutine then ends
		p.link = nil
		return errors.New("discord: the gateway does not accept the session in time")
	case <-ctx.Done():
		return fmt.Errorf("discord: %w", ctx.Err())
	}
	return nil
}

// mostItems is the number of messages that the caller has not yet recorded. Further events stay in the connection.
const mostItems = 1000

// takeWaiting takes the events that wait. It reports whether the connection has ended.
func (c *Channel) takeWaiting(ctx context.Context) (ended bool) {
	for len(c.poll.items) < mostItems {
		select {
		case f, ok := <-c.poll.link.frames:
			if !ok {
				return true
			}
			c.take(ctx, f)
		default:
			return false
		}
	}
	return false
}

// page returns all messages that the caller has not yet recorded.
func (c *Channel) page() (list []channel.Inbound, next string, err error) {
	p := &c.poll
	for _, it := range p.items {
		list = append(list, it.in)
	}
	p.idle = 0
	at := p.at
	at.Epoch, at.Number = c.epoch, p.last
	b, err := json.Marshal(at)
	return list, string(b), err
}

// confirm reads a cursor. The caller has recorded the messages before it.
func (c *Channel) confirm(ctx context.Context, cursor string) error {
	p := &c.poll
	var at position
	if cursor != "" && json.Unmarshal([]byte(cursor), &at) != nil {
		return fmt.Errorf("discord: %.40q is no cursor of this channel", cursor)
	}
	if at.Epoch != c.epoch { // the cursor of another process, or none
		if !p.started {
			p.at, p.started = at, true
			if p.at.Chats == nil {
				p.at.Chats = map[string]chat{}
			}
		}
		return nil
	}
	n := sort.Search(len(p.items), func(i int) bool { return p.items[i].number > at.Number })
	for _, it := range slices.Backward(p.items[:n]) { // the earlier messages may be those of a stranger
		c.remember(ctx, it.in)
		if it.press != nil {
			c.life.Go(func() { c.acknowledge(it.press) })
		}
	}
	p.items = p.items[n:]
	return nil
}

// pressTime is the time in which Discord waits for the acknowledgement of a press.
const pressTime = 3 * time.Second

// acknowledge makes Discord remove the waiting sign from a pressed button. It makes one attempt, because Discord
// shows a failure after three seconds and then refuses the acknowledgement. The press counts in any case.
func (c *Channel) acknowledge(i *interaction) {
	ctx, cancel := context.WithTimeout(c.life.Context(), pressTime)
	defer cancel()
	b, err := jsonBody(map[string]int{"type": deferredUpdate})
	if err == nil {
		_ = c.call(ctx, acknowledge, b, nil, i.ID, i.Token)
	}
}

// remember adds the chat of a paired contact to the known chats. A later cursor has it.
func (c *Channel) remember(ctx context.Context, m channel.Inbound) {
	p := &c.poll
	if _, known := p.at.Chats[m.Chat]; known || !c.opt.Paired(m.Contact) {
		return
	}
	kind := private
	if m.Shared {
		kind = shared
		if c.isThread(ctx, m.Chat) {
			kind = thread
		}
	}
	_, id, _ := strings.Cut(m.ID, ":")
	if m.Button != "" {
		id = lastPart(m.ReplyTo)
	}
	p.at.Chats[m.Chat] = chat{id, id, kind}
	p.idle = mostIdle // the next Poll returns a cursor with this chat at once
	if len(p.at.Chats) > mostChats {
		oldest := m.Chat
		for id, known := range p.at.Chats {
			if number(known.Last) < number(p.at.Chats[oldest].Last) {
				oldest = id
			}
		}
		delete(p.at.Chats, oldest)
	}
}

// isThread reports whether a channel is a thread. Without an answer of Discord it returns false.
func (c *Channel) isThread(ctx context.Context, id string) bool {
	if is, known := c.poll.threads.Get(id); known {
		return is
	}
	var at struct {
		Type int `json:"type"`
	}
	if c.call(ctx, getChannel, body{}, &at, id) != nil {
		return false
	}
	is := at.Type >= announcementThread && at.Type <= privateThread
	c.poll.threads.Put(id, is)
	return is
}

// take takes an event of the gateway.
func (c *Channel) take(ctx context.Context, f frame) {
	p := &c.poll
	p.idle++
	switch f.Type {
	case "READY":
		var r struct {
			Session string `json:"session_id"`
			Resume  string `json:"resume_gateway_url"`
		}
		if json.Unmarshal(f.Data, &r) == nil {
			p.at.Session, p.at.Resume = r.Session, r.Resume
		}
		p.ready, p.behind = true, true
	case "RESUMED":
		p.ready = true
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		var m message
		if strict.UnmarshalRepaired(f.Data, &m) == nil { // an ambiguous message must not stop the next ones
			kind := shared
			if m.Guild == "" {
				kind = private
			}
			c.takeMessage(ctx, &m, kind, f.Type == "MESSAGE_UPDATE")
		}
	case "INTERACTION_CREATE":
		var i interaction
		if strict.UnmarshalRepaired(f.Data, &i) == nil && i.Type == componentInteraction {
			c.takePress(ctx, &i)
		}
	}
	p.at.Seq = max(f.Seq, p.at.Seq)
}

// readHistory reads the messages that came into the known chats while there was no session.
func (c *Channel) readHistory(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(c.poll.at.Chats)) {
		err := c.readChat(ctx, id)
		var refused *channel.RejectedError
		if errors.As(err, &refused) { // the chat was deleted, or the bot may not read it any more
			delete(c.poll.at.Chats, id)
			continue
		}
		if err != nil {
			return err
		}
	}
	c.poll.behind = false
	return nil
}

func (c *Channel) readChat(ctx context.Context, id string) error {
	known := c.poll.at.Chats[id]
	after := number(known.Last)
	after -= min(after, uint64(overlap/time.Millisecond)*snowflakeMillis)
	after = max(after, number(known.First)-1)
	for {
		var raw []json.RawMessage
		query := fmt.Sprintf("?limit=%d&after=%d", maxHistory, after)
		if err := c.callWith(ctx, getMessages, query, body{}, &raw, id); err != nil {
			return err
		}
		var list []message
		for _, r := range raw {
			var m message
			if strict.UnmarshalRepaired(r, &m) == nil {
				list = append(list, m)
			}
		}
		// Discord sends the newest message first.
		sort.Slice(list, func(i, j int) bool { return number(list[i].ID) < number(list[j].ID) })
		for i := range list {
			c.takeMessage(ctx, &list[i], known.Kind, false)
			after = max(after, number(list[i].ID))
		}
		if len(raw) < maxHistory || len(list) == 0 {
			return nil
		}
	}
}

// takeMessage adds a person's message to the bot. kind is the kind of its chat if the chat is not known.
func (c *Channel) takeMessage(ctx context.Context, m *message, kind chatKind, edited bool) {
	p := &c.poll
	known, ok := p.at.Chats[m.Channel]
	if ok {
		kind = known.Kind
		if number(m.ID) > number(known.Last) {
			known.Last = m.ID
			p.at.Chats[m.Channel] = known
		}
	}
	if !isPersons(m) || m.Type != plainMessage && m.Type != replyMessage || edited && m.Edited == nil ||
		!c.isAddressed(m, kind) {
		return
	}
	in, ok := c.inbound(m, kind)
	if edited {
		in.ID += ":" + strconv.FormatInt(m.Edited.UnixMilli(), 10)
		in.Text, in.Files, in.Unread, ok = "", nil, "an edited message", true
	}
	if ok {
		c.add(ctx, in, nil)
	}
}

// add adds a message unless this process has it already.
func (c *Channel) add(ctx context.Context, in channel.Inbound, press *interaction) {
	p := &c.poll
	if _, seen := p.seen.Get(in.ID); seen {
		return
	}
	p.seen.Put(in.ID, struct{}{})
	p.last++
	p.items = append(p.items, item{p.last, in, press})
	c.remember(ctx, in)
}

// isPersons reports whether a person has written a message. Rights belong to people, so bots and webhooks do not count.
func isPersons(m *message) bool {
	return m.Author != nil && !m.Author.Bot && m.Webhook == "" && m.Interaction == nil
}

// isAddressed reports whether a message is for the bot. In a server, it mentions the bot, replies to the bot, or stands
// in a thread in which a paired contact has mentioned the bot.
func (c *Channel) isAddressed(m *message, kind chatKind) bool {
	return kind == private || kind == thread || m.Referenced != nil && m.Referenced.Author != nil &&
		m.Referenced.Author.ID == c.self || slices.ContainsFunc(m.Mentions, func(u user) bool { return u.ID == c.self })
}

// elsewhere is the value of ReplyTo if the answered message is in another chat.
const elsewhere = "elsewhere"

// inbound returns the content of a message. ok is false if the message has no content.
func (c *Channel) inbound(m *message, kind chatKind) (in channel.Inbound, ok bool) {
	in = channel.Inbound{
		ID: m.Channel + ":" + m.ID, Chat: m.Channel, Shared: kind != private, Contact: m.Author.ID,
		Name: m.Author.label(), Sent: m.Sent,
	}
	text := m.Content
	for _, s := range m.Snapshots {
		text = strings.Trim(text+"\n"+s.Message.Content, "\n")
	}
	for _, mention := range []string{"<@" + c.self + ">", "<@!" + c.self + ">"} {
		text = strings.ReplaceAll(text, mention, "")
	}
	in.Text = strings.TrimSpace(text)
	for _, f := range m.files() {
		in.Files = append(in.Files, inboundFile(f))
	}
	if r := m.Reference; r != nil {
		in.Quoted = r.Type == forwardReference
		in.ReplyTo = elsewhere
		if r.Channel == m.Channel && !in.Quoted {
			in.ReplyTo = m.Channel + ":" + r.Message
		}
	}
	if in.Text == "" && len(in.Files) == 0 {
		in.Unread = c.unread(m, kind)
	}
	return in, in.Text != "" || len(in.Files) > 0 || in.Unread != ""
}

// unread names the content of a message that has neither a text nor a file.
func (c *Channel) unread(m *message, kind chatKind) string {
	switch {
	case len(m.Stickers) > 0:
		return "a sticker"
	case m.Poll != nil:
		return "a poll"
	case m.Content == "" && kind != private && !c.poll.content:
		return "a message without a mention"
	}
	return ""
}

func (c *Channel) takePress(ctx context.Context, i *interaction) {
	who := i.User
	if i.Member != nil {
		who = &i.Member.User
	}
	if who == nil || who.Bot {
		return
	}
	in := channel.Inbound{
		ID: "press:" + i.ID, Chat: i.Channel, Shared: i.Guild != "", Contact: who.ID, Name: who.label(),
		Sent: madeAt(i.ID), ReplyTo: i.Channel + ":" + i.Message.ID, Button: i.Data.Data,
	}
	for _, row := range i.Message.Components {
		for _, b := range row.Components {
			if b.Data == i.Data.Data {
				in.Text = b.Label
			}
		}
	}
	c.add(ctx, in, i)
}

// After reports whether a message came after a sent one. Discord's ids grow with the time of its own clock.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	chat, id, err := parseID(m.ID)
	chat2, id2, err2 := parseID(sent)
	return err == nil && err2 == nil && chat == chat2 && number(id) > number(id2)
}

// parseID returns the chat and the id of a message. The id of an edited message also has the time of the edit.
func parseID(text string) (chat, id string, err error) {
	chat, rest, _ := strings.Cut(text, ":")
	id, _, _ = strings.Cut(rest, ":")
	if !isID(chat) || !isID(id) {
		return "", "", &channel.RejectedError{Why: fmt.Sprintf("%.40q is no id of a message", text)}
	}
	return chat, id, nil
}

func lastPart(id string) string { return id[strings.LastIndexByte(id, ':')+1:] }
