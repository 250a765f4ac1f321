package matrix

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/perlica/perlica/service/channel"
)

// object is a JSON object of an event.
type object = map[string]any

// Send sends a text, a file, or a file with a text. The key makes the transaction id.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	if err := c.writable(ctx, m.Chat); err != nil {
		return "", err
	}
	body, err := written(m)
	if err != nil {
		return "", err
	}
	if m.File != nil {
		if err := c.attach(ctx, m, body); err != nil {
			return "", err
		}
	}
	if room, event, err := parseID(m.ReplyTo); err == nil && room == m.Chat {
		body["m.relates_to"] = object{"m.in_reply_to": object{"event_id": event}}
	}
	return c.put(ctx, m.Chat, messageType, transaction("send", m.Chat, m.Key), body)
}

// writable returns an error if the account may not write to the room.
func (c *Channel) writable(ctx context.Context, room string) error {
	if !strings.HasPrefix(room, "!") {
		return &channel.RejectedError{Why: fmt.Sprintf("%.80q is no room", room)}
	}
	encrypted, err := c.isEncrypted(ctx, room)
	switch {
	case err != nil && !refused(err):
		return fmt.Errorf("%w: %w", channel.ErrNotSent, err) // only a question was asked
	case err != nil:
		return err
	case encrypted:
		return &channel.RejectedError{Why: "the room is encrypted"}
	}
	return nil
}

// Edit replaces the text of a message with an id from Send.
func (c *Channel) Edit(ctx context.Context, id string, m channel.Outbound) error {
	room, event, err := parseID(id)
	if err != nil {
		return err
	}
	if err := c.writable(ctx, room); err != nil {
		return err
	}
	body, err := written(m)
	if err != nil {
		return err
	}
	// Clients that know no edits show the beginning of the new text. The whole text stands in the event once, because
	// an event has a limited size.
	const shown = 200
	short := []rune("* " + body["body"].(string))
	_, err = c.put(ctx, room, messageType, transaction("edit", id, m.Key, m.Text), object{
		"msgtype": body["msgtype"], "body": string(short[:min(len(short), shown)]), "m.new_content": body,
		"m.relates_to": object{"rel_type": "m.replace", "event_id": event},
	})
	return err
}

// React puts an emoji on a person's message.
func (c *Channel) React(ctx context.Context, message, emoji string) error {
	room, event, err := parseID(message)
	if err != nil {
		return err
	}
	if err := c.writable(ctx, room); err != nil {
		return err
	}
	_, err = c.put(ctx, room, reactionType, transaction("react", message, emoji),
		object{"m.relates_to": object{"rel_type": "m.annotation", "event_id": event, "key": emoji}})
	return err
}

// Typing shows a typing sign for some seconds.
func (c *Channel) Typing(ctx context.Context, chat string) error {
	self, err := c.whoAmI(ctx)
	if err != nil {
		return err
	}
	if err := c.writable(ctx, chat); err != nil {
		return err
	}
	const milliseconds = 10_000
	return c.call(ctx, http.MethodPut, at("/_matrix/client/v3/rooms/%s/typing/%s", chat, self), nil,
		object{"typing": true, "timeout": milliseconds}, nil)
}

// put sends an event and returns the id of its message.
func (c *Channel) put(ctx context.Context, room, kind, transaction string, body object) (string, error) {
	var sent struct {
		Event string `json:"event_id"`
	}
	path := at("/_matrix/client/v3/rooms/%s/send/%s/%s", room, kind, transaction)
	if err := c.call(ctx, http.MethodPut, path, nil, body, &sent); err != nil {
		return "", err
	}
	id := messageID(room, sent.Event)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own.Put(id, struct{}{})
	return id, nil
}

// transaction returns the transaction id of a request. The server recognises the repetition of a request by it.
func transaction(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "perlica-" + hex.EncodeToString(sum[:16])
}

// written returns the content of a text.
func written(m channel.Outbound) (object, error) {
	if channel.Units(m.Text) > maxText {
		return nil, &channel.RejectedError{Why: fmt.Sprintf("its text is longer than %d", maxText)}
	}
	// Empty mentions tell clients to notify nobody because of words in the text.
	body := object{"msgtype": "m.text", "body": m.Text, "m.mentions": object{}}
	if m.Plain {
		return body, nil
	}
	plain := channel.Unformatted(m.Text, channel.HTML)
	body["body"] = plain
	if formatted := withBreaks(m.Text); formatted != plain {
		body["format"], body["formatted_body"] = "org.matrix.custom.html", formatted
	}
	return body, nil
}

var code = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)<pre>.*?</pre>\n?`) })

// withBreaks writes the ends of lines as tags, except in blocks of code.
func withBreaks(html string) string {
	var b strings.Builder
	lines := func(text string) { b.WriteString(strings.ReplaceAll(text, "\n", "<br>")) }
	done := 0
	for _, at := range code().FindAllStringIndex(html, -1) {
		lines(html[done:at[0]])
		b.WriteString(strings.TrimSuffix(html[at[0]:at[1]], "\n"))
		done = at[1]
	}
	lines(html[done:])
	return b.String()
}
