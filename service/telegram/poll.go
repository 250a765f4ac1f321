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

	"github.com/perlica/perlica/service/channel"
)

// staleAfter is when an offset is not used any more: a week without an update, and Telegram
// numbers them anew. An offset from before could confirm what no one has seen.
const staleAfter = 6 * 24 * time.Hour

// pollSlack is how much later than the server promises its answer may come.
const pollSlack = 15 * time.Second

// tries is how often something that goes with an update is tried before it goes without.
const tries = 3

// press is a button that was pressed and shows that it waits.
type press struct {
	id     string
	update int64
	tried  int
}

// Poll returns what people wrote and pressed. It confirms to the server what lies before the
// cursor and nothing else. Their files have been fetched when it returns; one that cannot be had
// is named in the text instead.
func (c *Channel) Poll(ctx context.Context, cursor string) (list []channel.Inbound, next string, err error) {
	offset, err := c.offset(cursor)
	if err != nil {
		return nil, cursor, err
	}
	params := struct {
		Offset  int64    `json:"offset,omitempty"`
		Timeout int      `json:"timeout"`
		Allowed []string `json:"allowed_updates"`
	}{offset, int(c.opt.PollFor / time.Second), []string{"message", "callback_query"}}
	var raw []json.RawMessage
	release := c.answerPresses(ctx, offset)
	pctx, cancel := context.WithTimeout(ctx, c.opt.PollFor+pollSlack)
	err = c.call(pctx, "getUpdates", params, &raw)
	cancel()
	release()
	if err != nil {
		return nil, cursor, err
	}
	next = cursor
	for _, r := range raw {
		var id struct {
			ID int64 `json:"update_id"`
		}
		if err := json.Unmarshal(r, &id); err != nil {
			return list, next, fmt.Errorf("telegram: getUpdates: an update without an id: %w", err)
		}
		m, ok, err := c.inbound(ctx, r, id.ID)
		if err != nil && next != cursor {
			return list, next, nil // what came before it is not held up
		}
		if err != nil {
			return nil, cursor, err
		}
		if ok {
			list = append(list, m)
		}
		next = fmt.Sprintf("%d@%d", id.ID+1, c.now().Unix())
	}
	return list, next, nil
}

// offset is what a cursor says: the next update's number, and when the last one came.
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
		return 0, nil // taken updates may come again; the caller knows their ids
	}
	return n, nil
}

// answerPresses ends the sign of waiting on the buttons that the caller has taken, beside the
// poll. It is no more than politeness: it is given up when the poll is over, and tried again
// with the next. The function that it returns waits for its goroutine.
func (c *Channel) answerPresses(ctx context.Context, offset int64) (release func()) {
	var taken []press
	for _, p := range c.presses {
		if p.update < offset && p.tried < tries {
			p.tried++
			taken = append(taken, p)
		}
	}
	c.presses = nil // what was not taken comes again, and is noted then
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	var left []press
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, p := range taken {
			params := map[string]string{"callback_query_id": p.id}
			var refused *channel.RejectedError // too old, which is as good
			if err := c.call(ctx, "answerCallbackQuery", params, nil); err != nil && !errors.As(err, &refused) {
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

// inbound is what an update says, if it is a message of a person.
func (c *Channel) inbound(ctx context.Context, raw json.RawMessage, id int64) (m channel.Inbound, ok bool, err error) {
	var u update
	if json.Unmarshal(raw, &u) != nil {
		return m, false, nil // of a form that is not known: it must not stop those behind it
	}
	switch {
	case u.Callback != nil && u.Callback.Message != nil && !u.Callback.From.Bot:
		c.presses = append(c.presses, press{id: u.Callback.ID, update: id})
		return c.pressed(u.Callback), true, nil
	case u.Message != nil && u.Message.From != nil && u.Message.Sender == nil && (!u.Message.From.Bot || decimal(u.Message.From.ID) == c.self):
		// Behind a chat anybody may hide: an anonymous administrator has the same id in every
		// group. Rights belong to people.
		return c.written(ctx, u.Message, id)
	}
	return m, false, nil
}

func (c *Channel) pressed(b *callback) channel.Inbound {
	m := channel.Inbound{
		ID: "press:" + b.ID, Chat: decimal(b.Message.Chat.ID), Contact: decimal(b.From.ID), Name: name(&b.From),
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

func (c *Channel) written(ctx context.Context, msg *message, id int64) (channel.Inbound, bool, error) {
	m := channel.Inbound{
		ID: messageID(msg), Chat: decimal(msg.Chat.ID), Contact: decimal(msg.From.ID), Name: name(msg.From),
		Text: msg.Text + msg.Caption, Sent: time.Unix(msg.Date, 0), Own: decimal(msg.From.ID) == c.self,
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
	files := msg.files()
	if m.Text == "" && len(files) == 0 {
		return m, false, nil // a sticker, somebody who joined a group
	}
	if m.Own || c.opt.Files == "" || c.opt.Accept != nil && !c.opt.Accept(m.Contact) {
		return m, true, nil
	}
	for i, f := range files {
		path, err := c.fetch(ctx, m.ID, i, f)
		if err != nil && ctx.Err() != nil {
			return m, false, err
		}
		if err != nil && !final(err) {
			if c.failures[id]++; c.failures[id] < tries {
				return m, false, err
			}
		}
		if err != nil {
			m.Text = strings.TrimSpace(fmt.Sprintf("%s\n\n[%s could not be fetched: %s]", m.Text, f.Name, why(err)))
			continue
		}
		m.Files = append(m.Files, channel.File{Name: f.Name, Path: path, MIME: f.MIME})
	}
	delete(c.failures, id)
	return m, true, nil
}

// elsewhere is what a message answers that is not in its chat, or cannot be named.
const elsewhere = "elsewhere"

// After reports whether a message came behind one that was sent: Telegram numbers the messages of a
// chat in their order.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	chat, number, err := parseID(m.ID)
	chat2, number2, err2 := parseID(sent)
	return err == nil && err2 == nil && chat == chat2 && number2 > 0 && number > number2
}

// messageID names a message in its channel; Telegram numbers them in each chat.
func messageID(m *message) string { return decimal(m.Chat.ID) + ":" + decimal(m.ID) }

// parseID is the chat and the number of a message.
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
