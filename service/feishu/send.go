package feishu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// These are limits of cards.
const (
	mostButtons = 20
	maxLabel    = 60 // characters; a longer label would not fit on a phone
	maxData     = 64 // bytes
	maxCard     = 30_000
)

// emojis has Feishu's names for the emojis of reactions.
var emojis = map[string]string{"🫡": "SALUTE", "👀": "GLANCE", "👍": "THUMBSUP", "✅": "DONE", "👌": "OK"}

// card is a card of version 2.0.
type card struct {
	Schema string `json:"schema"`
	Config struct {
		Shared bool `json:"update_multi"` // only such a card can be edited
	} `json:"config"`
	Body struct {
		Elements []component `json:"elements"`
	} `json:"body"`
}

// component is a part of a card.
type component struct {
	Tag       string     `json:"tag"`
	Content   string     `json:"content,omitempty"`
	Text      *component `json:"text,omitempty"`
	Behaviors []behavior `json:"behaviors,omitempty"`
}

// behavior is the effect of a press.
type behavior struct {
	Type  string `json:"type"`
	Value value  `json:"value"`
}

// message is a request to send a message.
type message struct {
	Receiver string `json:"receive_id,omitempty"`
	Type     string `json:"msg_type"`
	Content  string `json:"content"`
	InThread bool   `json:"reply_in_thread,omitempty"`
	Key      string `json:"uuid,omitempty"`
}

// Send sends a text as a card, or a file, or both in two messages. The file is uploaded before the text is sent, so
// most failures send neither. If only the text arrives, the error does not wrap channel.ErrNotSent.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (id string, err error) {
	at, err := parseChat(m.Chat)
	if err != nil {
		return "", err
	}
	var file message
	if m.File != nil {
		if file, err = c.upload(ctx, *m.File); err != nil {
			return "", err
		}
		file.Key = keyOf(m.Key, "file")
	}
	if m.Text != "" || m.File == nil {
		content, err := compose(m)
		if err != nil {
			return "", err
		}
		id, err = c.post(ctx, at, m.ReplyTo, message{Type: "interactive", Content: content, Key: keyOf(m.Key, "text")})
		if err != nil || m.File == nil {
			return id, err
		}
	}
	fileID, err := c.post(ctx, at, m.ReplyTo, file)
	switch {
	case id == "":
		return fileID, err
	case err != nil: // not wrapped, because the text was sent
		return "", fmt.Errorf("feishu: the text was sent, but not its file: %s", err.Error())
	}
	return id, nil
}

// keyOf returns the key of a message for Feishu, which takes at most 50 characters.
func keyOf(key, part string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(part + "\x00" + key))
	return hex.EncodeToString(sum[:16])
}

// post sends a message and returns its id. A message in a topic is an answer to the topic's first message. If the
// answered message is gone, the answer names no message.
func (c *Channel) post(ctx context.Context, at place, replyTo string, m message) (string, error) {
	var a struct {
		ID string `json:"message_id"`
	}
	if !isID(replyTo, "om_") {
		replyTo = at.thread
	}
	m.InThread = at.thread != ""
	if replyTo != "" {
		err := c.call(ctx, request{method: http.MethodPost, path: "/open-apis/im/v1/messages/" + replyTo + "/reply",
			body: m}, &a)
		if said(err, gone...) && m.InThread && replyTo != at.thread { // the topic may still be there
			return c.post(ctx, at, "", m)
		}
		if !said(err, gone...) || m.InThread {
			return checkID(a.ID, err)
		}
	}
	kind := "chat_id"
	if m.Receiver = at.group; at.person != "" {
		kind, m.Receiver = "open_id", at.person
	}
	err := c.call(ctx, request{method: http.MethodPost, path: "/open-apis/im/v1/messages",
		query: url.Values{"receive_id_type": {kind}}, body: m}, &a)
	return checkID(a.ID, err)
}

// checkID returns the id of a sent message.
func checkID(id string, err error) (string, error) {
	if err == nil && !isID(id, "om_") {
		err = errors.New("feishu: the answer has no id of the message")
	}
	if err != nil {
		return "", err
	}
	return id, nil
}

// compose checks a text as far as possible without Feishu, and returns its card.
func compose(m channel.Outbound) (string, error) {
	if n := channel.Units(m.Text); n > maxText {
		return "", &channel.RejectedError{Why: fmt.Sprintf("its text has %d characters, and %d are allowed", n, maxText)}
	}
	k := card{Schema: "2.0"}
	k.Config.Shared = true
	text := component{Tag: "markdown", Content: m.Text}
	if m.Plain {
		text = component{Tag: "div", Text: &component{Tag: "plain_text", Content: m.Text}}
	}
	k.Body.Elements = append(k.Body.Elements, text)
	for _, b := range m.Buttons {
		if b.Data == "" || len(b.Data) > maxData || b.Label == "" {
			return "", &channel.RejectedError{Why: fmt.Sprintf("the button %.40q has no label, or not 1 to %d bytes of data",
				b.Label, maxData)}
		}
		label := short(b.Label)
		k.Body.Elements = append(k.Body.Elements, component{Tag: "button",
			Text:      &component{Tag: "plain_text", Content: label},
			Behaviors: []behavior{{"callback", value{Chat: m.Chat, Data: b.Data, Label: label}}}})
	}
	content := asJSON(k)
	if len(content) > maxCard || len(m.Buttons) > mostButtons {
		return "", &channel.RejectedError{Why: fmt.Sprintf("its card has %d bytes and %d buttons; %d and %d are allowed",
			len(content), len(m.Buttons), maxCard, mostButtons)}
	}
	return content, nil
}

// short cuts a label.
func short(label string) string {
	r := []rune(label)
	if len(r) <= maxLabel {
		return label
	}
	return string(r[:maxLabel-1]) + "…"
}

// Edit changes the text and the buttons of a message with an id from Send.
func (c *Channel) Edit(ctx context.Context, id string, m channel.Outbound) error {
	if err := checkMessage(id); err != nil {
		return err
	}
	content, err := compose(m)
	if err != nil {
		return err
	}
	c.awaitAcknowledged(ctx, id)
	return c.call(ctx, request{method: http.MethodPatch, path: "/open-apis/im/v1/messages/" + id,
		body: map[string]string{"content": content}}, nil)
}

// checkMessage refuses an id that is no id of a message.
func checkMessage(id string) error {
	if !isID(id, "om_") {
		return &channel.RejectedError{Why: fmt.Sprintf("%.40q is no id of a message", id)}
	}
	return nil
}

// Remove withdraws a message of the bot.
func (c *Channel) Remove(ctx context.Context, id string) error {
	if err := checkMessage(id); err != nil {
		return err
	}
	return c.call(ctx, request{method: http.MethodDelete, path: "/open-apis/im/v1/messages/" + id}, nil)
}

// Pace leaves room for other messages. Feishu allows five edits of a message and five messages to a chat in a second.
func (c *Channel) Pace(string) time.Duration { return time.Second }

// React puts an emoji on a person's message.
func (c *Channel) React(ctx context.Context, message, emoji string) error {
	if err := checkMessage(message); err != nil {
		return err
	}
	name, ok := emojis[emoji]
	if !ok {
		return &channel.RejectedError{Why: fmt.Sprintf("Feishu's name of the emoji %q is not known", emoji)}
	}
	return c.call(ctx, request{method: http.MethodPost, path: "/open-apis/im/v1/messages/" + message + "/reactions",
		body: map[string]any{"reaction_type": map[string]string{"emoji_type": name}}}, nil)
}
