package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/channel"
)

// staleAfter is the age at which an offset is no longer used. After a week without an update,
// Telegram restarts its numbers. An old offset could confirm unseen updates.
const staleAfter = 6 * 24 * time.Hour

// pollSlack is the tolerated delay of the server's answer.
const pollSlack = 15 * time.Second

// tries limits the attempts to end the waiting sign of a button.
const tries = 3

// press is a pressed button that shows a waiting sign.
type press struct {
	id     string
	update int64
	tried  int
}

// Poll returns the messages and button presses of people. It confirms only the updates before the cursor to the server.
// It names the files of messages for [Channel.Fetch].
func (c *Channel) Poll(ctx context.Context, cursor string) (list []channel.Inbound, next string, err error) {
	offset, err := c.offset(cursor)
	if err != nil {
		return nil, cursor, err
	}
	c.learnName(ctx)
	release := c.answerPresses(ctx, offset)
	raw, err := c.updates(ctx, offset, c.opt.PollFor)
	release()
	if err == nil && endsInAlbum(raw) && channel.Wait(ctx, c.albumWait) {
		var all []json.RawMessage // not yet confirmed: the updates come again with the rest
		if all, err = c.updates(ctx, offset, 0); len(all) >= len(raw) {
			raw = all
		}
	}
	if err != nil {
		return nil, cursor, err
	}
	next = cursor
	album := ""
	for _, r := range raw {
		var id struct {
			ID int64 `json:"update_id"`
		}
		if err := json.Unmarshal(r, &id); err != nil {
			return list, next, fmt.Errorf("telegram: getUpdates: an update without an id: %w", err)
		}
		if m, of, ok := c.inbound(r, id.ID); ok {
			if last := len(list) - 1; of != "" && of == album && last >= 0 {
				list[last].Files = append(list[last].Files, m.Files...)
				list[last].Text = strings.Trim(list[last].Text+"\n"+m.Text, "\n")
			} else {
				list = append(list, m)
			}
			album = of
		}
		next = fmt.Sprintf("%d@%d", id.ID+1, c.now().Unix())
		if id.ID+1 == offset { // the server has forgotten the confirmation, so the cursor stays
			next = cursor
		}
	}
	return list, next, nil
}

// updates asks the server for the events from the offset on. It waits for an event for at most the duration in the
// parameter "wait".
func (c *Channel) updates(ctx context.Context, offset int64, wait time.Duration) (raw []json.RawMessage, err error) {
	params := struct {
		Offset  int64    `json:"offset,omitempty"`
		Timeout int      `json:"timeout"`
		Allowed []string `json:"allowed_updates"`
	}{offset, int(wait / time.Second), []string{"message", "edited_message", "callback_query"}}
	ctx, cancel := context.WithTimeout(ctx, wait+pollSlack)
	defer cancel()
	err = c.callMethod(ctx, "getUpdates", params, &raw)
	return raw, err
}

// endsInAlbum reports whether the last update belongs to an album. Further messages of the album may come, because they
// arrive one after the other within a moment.
func endsInAlbum(raw []json.RawMessage) bool {
	var u update
	return len(raw) > 0 && strict.UnmarshalRepaired(raw[len(raw)-1], &u) == nil && u.Message != nil &&
		u.Message.Album != ""
}

// learnName asks for the bot's name, which commands in groups may contain. Without the name all
// commands count as commands for this bot.
func (c *Channel) learnName(ctx context.Context) {
	if c.username != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var me user
	if err := c.callMethod(ctx, "getMe", struct{}{}, &me); err == nil {
		c.username = me.Username
	}
}

// offset returns the number of the next update, which the cursor contains. It is 0 for a stale cursor.
func (c *Channel) offset(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	number, at, ok := strings.Cut(cursor, "@")
	n, err := strconv.ParseInt(number, 10, 64)
	unix, err2 := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || err2 != nil || n <= 0 {
		return 0, fmt.Errorf("telegram: %.40q is no cursor of this channel", cursor)
	}
	if c.now().Sub(time.Unix(unix, 0)) > staleAfter {
		return 0, nil // known updates may come again; the caller recognises their ids
	}
	return n, nil
}

// answerPresses ends the waiting sign of each pressed button after the caller has received the press. It works at the
// same time as the poll and is best effort: it stops with the poll and is repeated with the next one. The caller calls
// release to wait for its goroutine.
func (c *Channel) answerPresses(ctx context.Context, offset int64) (release func()) {
	var taken []press
	for _, p := range c.presses {
		if p.update < offset && p.tried < tries {
			p.tried++
			taken = append(taken, p)
		}
	}
	c.presses = nil // unreceived presses come again and are added then
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	var left []press
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, p := range taken {
			params := map[string]string{"callback_query_id": p.id}
			var refused *channel.RejectedError // the press is too old, which does no harm
			if err := c.callMethod(ctx, "answerCallbackQuery", params, nil); err != nil && !errors.As(err, &refused) {
				left = append(left, p)
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		c.presses = left
	}
}

// inbound returns the message of an update. ok is false if no person sent it. album is the id of the message's album.
func (c *Channel) inbound(raw json.RawMessage, id int64) (m channel.Inbound, album string, ok bool) {
	var u update
	if strict.UnmarshalRepaired(raw, &u) != nil {
		return m, "", false // an unknown or ambiguous update must not stop the next ones
	}
	switch {
	case u.Callback != nil && u.Callback.Message != nil && !u.Callback.From.Bot:
		c.presses = append(c.presses, press{id: u.Callback.ID, update: id})
		return c.pressed(u.Callback), "", true
	case u.Message != nil && c.isPersons(u.Message):
		m, ok = c.written(u.Message)
		return m, u.Message.Album, ok
	case u.Edited != nil && c.isPersons(u.Edited) && u.Edited.Text+u.Edited.Caption != "": // otherwise a moving location
		m, _ = c.written(u.Edited)
		m.ID += ":" + decimal(u.Edited.Changed)
		m.Text, m.Files, m.Unread = "", nil, "an edited message"
		return m, "", true
	}
	return m, "", false
}

// isPersons reports whether a message comes from a person or from this bot. Rights belong to people, so a message in
// the name of a chat does not count. It does not show its author, because an anonymous administrator has the same id in
// every group.
func (c *Channel) isPersons(m *message) bool {
	return m.From != nil && m.Sender == nil && (!m.From.Bot || decimal(m.From.ID) == c.self)
}

func (c *Channel) pressed(b *callback) channel.Inbound {
	m := channel.Inbound{
		ID: "press:" + b.ID, Chat: chatOf(b.Message), Shared: b.Message.Chat.isShared(), Contact: decimal(b.From.ID),
		Name: name(&b.From),
		Sent: c.now(), Own: decimal(b.From.ID) == c.self, ReplyTo: messageID(b.Message), Button: b.Data,
	}
	if b.Message.Keyboard != nil {
		for _, row := range b.Message.Keyboard.Rows {
			for _, k := range row {
				if k.Data == b.Data {
					m.Text = k.Text
				}
			}
		}
	}
	return m
}

// chatOf returns the chat for answers to a message, with the topic in a forum.
func chatOf(m *message) string {
	if m.Topic && m.Thread != 0 {
		return decimal(m.Chat.ID) + "/" + decimal(m.Thread)
	}
	return decimal(m.Chat.ID)
}

// isShared reports whether several people read a chat. Older servers do not report the type, but
// their groups have negative ids.
func (c chat) isShared() bool { return c.Type != "" && c.Type != "private" || c.ID < 0 }

func (c *Channel) written(msg *message) (m channel.Inbound, ok bool) {
	m = channel.Inbound{
		ID: messageID(msg), Chat: chatOf(msg), Shared: msg.Chat.isShared(), Contact: decimal(msg.From.ID),
		Name: name(msg.From),
		Sent: time.Unix(msg.Date, 0), Own: decimal(msg.From.ID) == c.self,
	}
	if m.Text, ok = c.addressed(msg.Text + msg.Caption); !ok {
		return m, false // to another bot
	}
	m.Quoted = msg.Forward != nil || msg.Forward6 != 0 || msg.Via != nil || msg.Offline
	switch {
	case msg.External != nil || msg.Story != nil:
		m.ReplyTo = elsewhere
	case msg.ReplyTo != nil:
		m.ReplyTo = messageID(msg.ReplyTo)
	case msg.Quote != nil:
		m.ReplyTo = elsewhere
	}
	if msg.Topic && msg.ReplyTo != nil && msg.ReplyTo.ID == msg.Thread {
		m.ReplyTo = "" // a message in a topic formally answers the message that made the topic
	}
	for _, f := range msg.files() {
		m.Files = append(m.Files, channel.File{Name: f.Name, MIME: f.MIME, Remote: f.ID, Size: f.Size})
	}
	if m.Text == "" && len(m.Files) == 0 {
		m.Unread = msg.unread()
	}
	return m, m.Text != "" || len(m.Files) > 0 || m.Unread != "" // otherwise a service message, such as a new member
}

// unread names the content of a person's message that has neither a text nor a file.
func (m *message) unread() string {
	for _, kind := range []struct {
		there *struct{}
		name  string
	}{
		{m.Sticker, "a sticker"}, {m.Location, "a location"}, {m.Contact, "a contact"}, {m.Poll, "a poll"},
		{m.Dice, "a roll of dice"},
	} {
		if kind.there != nil {
			return kind.name
		}
	}
	return ""
}

// addressed returns a text without the bot's name after a command, which commands in groups
// contain. ok is false for another bot's name.
func (c *Channel) addressed(text string) (string, bool) {
	if !strings.HasPrefix(text, "/") {
		return text, true
	}
	end := strings.IndexAny(text, " \n")
	if end < 0 {
		end = len(text)
	}
	command, name, named := strings.Cut(text[:end], "@")
	switch {
	case !named || strings.Contains(command[1:], "/"):
		return text, true
	case c.username != "" && !strings.EqualFold(name, c.username):
		return "", false
	}
	return command + text[end:], true
}

// elsewhere is the ReplyTo of a message that answers a message in another chat, or a story.
const elsewhere = "elsewhere"

// After reports whether a message came after a sent one. Telegram numbers the messages of a chat in
// order.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	chat, number, err := parseID(m.ID)
	chat2, number2, err2 := parseID(sent)
	return err == nil && err2 == nil && chat == chat2 && number2 > 0 && number > number2
}

// messageID names a message in its channel, because Telegram numbers the messages of each chat
// separately.
func messageID(m *message) string { return decimal(m.Chat.ID) + ":" + decimal(m.ID) }

// parseID returns the chat and the number of a message.
func parseID(id string) (chat string, number int64, err error) {
	chat, n, ok := strings.Cut(id, ":")
	number, err = strconv.ParseInt(n, 10, 64)
	if _, cerr := strconv.ParseInt(chat, 10, 64); !ok || err != nil || cerr != nil {
		return "", 0, &channel.RejectedError{Why: fmt.Sprintf("%.40q is no id of a message", id)}
	}
	return chat, number, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func name(u *user) string {
	n := strings.TrimSpace(u.FirstName + " " + u.LastName)
	if n == "" {
		n = u.Username
	}
	return n
}
