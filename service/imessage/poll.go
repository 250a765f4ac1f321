package imessage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// If a chat has changed, Poll also reads the unchanged chats with a last message within these durations. It does so
// because a message that arrives late may leave the last date of its chat unchanged.
const (
	active = 24 * time.Hour     // before the newest message
	past   = 7 * 24 * time.Hour // before the cursor, for newly listed chats
)

const (
	firstChats   = 50
	mostChats    = 10_000
	firstHistory = 50
	mostHistory  = 50_000
)

// chat and message hold the used members of imsg's output.
type chat struct {
	ID      int64     `json:"id"`
	Service string    `json:"service"`
	Last    time.Time `json:"last_message_at"`
}

type message struct {
	ID          int64        `json:"id"` // the row
	Chat        int64        `json:"chat_id"`
	GUID        string       `json:"guid"`
	ReplyTo     string       `json:"reply_to_guid"`
	Thread      string       `json:"thread_originator_guid"`
	Sender      string       `json:"sender"`
	SenderName  string       `json:"sender_name"`
	FromMe      bool         `json:"is_from_me"`
	Text        string       `json:"text"`
	Created     time.Time    `json:"created_at"`
	Reaction    bool         `json:"is_reaction"`
	Attachments []attachment `json:"attachments"`
}

type attachment struct {
	Name    string `json:"transfer_name"`
	MIME    string `json:"mime_type"`
	Missing bool   `json:"missing"`
	Path    string `json:"original_path"`
	Path2   string `json:"path"` // another name in imsg's documentation
}

// Poll waits for messages after the cursor and returns them. The empty cursor means now, because earlier messages were
// not written to the bridge.
func (c *Channel) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	row, since, err := parse(cursor)
	if err != nil {
		return nil, cursor, fmt.Errorf("imessage: %w", err)
	}
	for {
		list, end, newest, err := c.look(ctx, row, since)
		if err != nil {
			return nil, cursor, fmt.Errorf("imessage: %w", err)
		}
		if cursor == "" {
			return nil, fmt.Sprintf("%d@%d", end, newest.Unix()), nil
		}
		if end > row {
			return c.inbound(list), fmt.Sprintf("%d@%d", end, newest.Unix()), nil
		}
		if !channel.Wait(ctx, c.opt.Every) {
			return nil, cursor, fmt.Errorf("imessage: %w", ctx.Err())
		}
	}
}

// parse returns the last row of a cursor, and the time of the newest message at that cursor.
func parse(cursor string) (row int64, since time.Time, err error) {
	if cursor == "" {
		return 0, time.Time{}, nil
	}
	a, b, ok := strings.Cut(cursor, "@")
	row, err = strconv.ParseInt(a, 10, 64)
	unix, err2 := strconv.ParseInt(b, 10, 64)
	if !ok || err != nil || err2 != nil || row < 0 {
		return 0, since, fmt.Errorf("%.40q is no cursor of this channel", cursor)
	}
	return row, time.Unix(unix, 0), nil
}

// look returns all messages after the given row, in order. The result "end" is the row of the last of them. Without new
// messages it is the given row. newest is the time of the newest of all messages.
func (c *Channel) look(ctx context.Context, row int64, since time.Time) (list []message, end int64, newest time.Time,
	err error) {
	chats, err := c.chats(ctx, since)
	if err != nil || len(chats) == 0 {
		return nil, row, since, err
	}
	newest = slices.MaxFunc(chats, func(a, b chat) int { return a.Last.Compare(b.Last) }).Last
	if !slices.ContainsFunc(chats, c.changed) {
		return nil, row, newest, nil
	}
	found := map[int64]message{}
	if err := c.readChats(ctx, chats, row, since, newest, found); err != nil {
		return nil, row, newest, err
	}
	end = row
	for id := range found {
		end = max(end, id)
	}
	if end > row && !since.IsZero() {
		// During the first reading, Messages may have stored a message in a chat that this reading had already left.
		// All rows up to end exist now, so a second reading finds them. It also finds corrections, which Messages makes
		// within moments.
		if !channel.Wait(ctx, c.opt.Settle) {
			return nil, row, newest, ctx.Err()
		}
		again, err := c.chats(ctx, since)
		if err != nil {
			return nil, row, newest, err
		}
		if err := c.readChats(ctx, again, row, since, newest, found); err != nil {
			return nil, row, newest, err
		}
	}
	// The first list of chats is remembered, so the next Poll reads the chats that changed later.
	for _, ch := range chats {
		c.seen[ch.ID] = ch.Last
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if id > row && id <= end {
			list = append(list, found[id])
		}
	}
	return list, end, newest, nil
}

func (c *Channel) changed(ch chat) bool {
	last, ok := c.seen[ch.ID]
	return !ok || !last.Equal(ch.Last)
}

// chats lists the relevant chats, newest first.
func (c *Channel) chats(ctx context.Context, since time.Time) ([]chat, error) {
	for limit := firstChats; ; limit *= 4 {
		out, err := c.runCommand(ctx, nil, "chats", "--limit", strconv.Itoa(limit), "--json")
		if err != nil {
			return nil, err
		}
		list, err := lines[chat](out)
		if err != nil {
			return nil, err
		}
		if len(list) < limit || limit >= mostChats || since.IsZero() || list[len(list)-1].Last.Before(since.Add(-past)) {
			return list, nil
		}
	}
}

// readChats adds the messages of the relevant chats after the given row to the slice "found".
func (c *Channel) readChats(ctx context.Context, chats []chat, row int64, since, newest time.Time,
	found map[int64]message) error {
	for _, ch := range chats {
		_, known := c.seen[ch.ID]
		moves := !ch.Last.Before(newest.Add(-active)) || known && c.changed(ch) || !known && !ch.Last.Before(since.Add(-past))
		if !moves || !c.opt.SMS && !strings.EqualFold(ch.Service, "iMessage") {
			continue
		}
		list, err := c.history(ctx, ch.ID, row, since)
		if err != nil {
			return err
		}
		for _, m := range list {
			m.Chat = ch.ID
			found[m.ID] = m
		}
	}
	return nil
}

// history reads a chat's messages back to the given row.
func (c *Channel) history(ctx context.Context, id, row int64, since time.Time) ([]message, error) {
	for limit := firstHistory; ; limit *= 4 {
		out, err := c.runCommand(ctx, nil, "history", "--chat-id", strconv.FormatInt(id, 10), "--limit", strconv.Itoa(limit),
			"--attachments", "--json")
		if err != nil {
			return nil, err
		}
		list, err := lines[message](out)
		if err != nil {
			return nil, err
		}
		reaches := len(list) < limit || slices.MinFunc(list, func(a,
			b message) int {
			return cmp.Compare(a.ID, b.ID)
		}).ID <= row
		if reaches || limit >= mostHistory || since.IsZero() {
			return list, nil
		}
	}
}

// nameOf returns the id of a message: the id that Messages gave it, or otherwise the number of its row.
func nameOf(guid string, row int64) string {
	if guid == "" && row > 0 {
		return fmt.Sprintf("row:%d", row)
	}
	return guid
}

// inbound returns the bridge's form of messages.
func (c *Channel) inbound(list []message) (in []channel.Inbound) {
	for _, m := range list {
		one := channel.Inbound{
			ID: m.GUID, Chat: strconv.FormatInt(m.Chat, 10), Contact: m.Sender, Name: m.SenderName,
			ReplyTo: cmp.Or(m.ReplyTo, m.Thread),
			Text:    strings.TrimSpace(strings.ReplaceAll(m.Text, "\ufffc", "")), // without the placeholders of files
			Sent:    m.Created, Own: m.FromMe || c.isMine(m.GUID),
		}
		one.ID = nameOf(m.GUID, m.ID)
		c.place(one.ID, m.ID)
		for _, a := range m.Attachments {
			path := cmp.Or(a.Path, a.Path2)
			if a.Missing || path == "" {
				one.Text = strings.TrimSpace(fmt.Sprintf("%s\n\n[%s is not on this Mac]", one.Text, cmp.Or(a.Name, "a file")))
				continue
			}
			one.Files = append(one.Files, channel.File{Name: a.Name, Path: path, MIME: a.MIME})
		}
		if m.Reaction || m.Sender == "" && !one.Own || one.Text == "" && len(one.Files) == 0 {
			continue // a reaction, or a group's new name
		}
		in = append(in, one)
	}
	return in
}
