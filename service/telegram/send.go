package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// Send sends a text with buttons, a file, or a file with a text. A text that is too long for a caption is sent before
// its file. If only the text arrives, the error does not wrap channel.ErrNotSent.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	o, err := compose(m)
	if err != nil {
		return "", err
	}
	switch {
	case m.File == nil:
		return c.formatted(ctx, o, "sendMessage")
	case channel.Units(o.Text) <= maxCaption:
		return c.file(ctx, m, o)
	}
	id, err := c.formatted(ctx, o, "sendMessage")
	if err != nil {
		return "", err
	}
	// The file gets no buttons, because the message with the text has them.
	if _, err := c.file(ctx, m, outgoing{Chat: o.Chat, Thread: o.Thread}); err != nil {
		return "", fmt.Errorf("telegram: the text was sent, but not its file: %s", err.Error())
	}
	return id, nil
}

// Edit changes the text and the buttons of a message with an id from Send.
func (c *Channel) Edit(ctx context.Context, id string, m channel.Outbound) error {
	chat, number, err := parseID(id)
	if err != nil {
		return err
	}
	m.Chat, m.ReplyTo, m.File = chat, "", nil
	o, err := compose(m)
	if err != nil {
		return err
	}
	o.Message = number
	if o.Keyboard == nil {
		o.Keyboard = &keyboard{Rows: [][]button{}} // remove earlier buttons, so that nobody presses them
	}
	_, err = c.formatted(ctx, o, "editMessageText")
	if said(err, "message is not modified") {
		return nil
	}
	return err
}

// Remove deletes a message of the bot. Telegram allows this for two days.
func (c *Channel) Remove(ctx context.Context, id string) error {
	chat, number, err := parseID(id)
	if err != nil {
		return err
	}
	params := struct {
		Chat    string `json:"chat_id"`
		Message int64  `json:"message_id"`
	}{chat, number}
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	return c.callMethod(ctx, "deleteMessage", params, nil)
}

// Pace leaves room for other messages. https://core.telegram.org/bots/faq allows a bot about one
// message a second in a chat, and twenty a minute in a group.
func (c *Channel) Pace(chat string) time.Duration {
	if strings.HasPrefix(chat, "-") { // a group
		return 10 * time.Second
	}
	return 3 * time.Second
}

// React puts an emoji on a person's message.
func (c *Channel) React(ctx context.Context, message, emoji string) error {
	chat, number, err := parseID(message)
	if err != nil {
		return err
	}
	type reaction struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	params := struct {
		Chat     string     `json:"chat_id"`
		Message  int64      `json:"message_id"`
		Reaction []reaction `json:"reaction"`
	}{chat, number, []reaction{{"emoji", emoji}}}
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	return c.callMethod(ctx, "setMessageReaction", params, nil)
}

// SetMenu sets the list that Telegram shows after a typed slash.
func (c *Channel) SetMenu(ctx context.Context, language string, commands iter.Seq2[string, string]) error {
	type item struct {
		Command string `json:"command"`
		Help    string `json:"description"`
	}
	params := struct {
		Commands []item `json:"commands"`
		Language string `json:"language_code,omitempty"`
	}{Language: language}
	for name, help := range commands {
		params.Commands = append(params.Commands, item{name, help})
	}
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	return c.callMethod(ctx, "setMyCommands", params, nil)
}

// Typing shows a typing sign for some seconds.
func (c *Channel) Typing(ctx context.Context, chat string) error {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	params := struct {
		Chat   string `json:"chat_id"`
		Thread int64  `json:"message_thread_id,omitempty"`
		Action string `json:"action"`
	}{Action: "typing"}
	params.Chat, params.Thread, _ = place(chat) // ignore the error, because the server refuses an invalid chat
	return c.callMethod(ctx, "sendChatAction", params, nil)
}

// place returns the chat of a message and, in a forum, the topic.
func place(chat string) (id string, thread int64, err error) {
	id, topic, forum := strings.Cut(chat, "/")
	if _, err = strconv.ParseInt(id, 10, 64); err == nil && forum {
		thread, err = strconv.ParseInt(topic, 10, 64)
	}
	if err != nil {
		return "", 0, &channel.RejectedError{Why: fmt.Sprintf("%.40q is no chat", chat)}
	}
	return id, thread, nil
}

// compose checks a message as far as possible without the server.
func compose(m channel.Outbound) (o outgoing, err error) {
	chat, thread, err := place(m.Chat)
	if err != nil {
		return o, err
	}
	if channel.Units(m.Text) > maxText { // Telegram counts without the tags, so counting them is safe
		return o, &channel.RejectedError{Why: fmt.Sprintf("its text is longer than %d", maxText)}
	}
	o = outgoing{Chat: chat, Thread: thread, Text: m.Text, ParseMode: "HTML", Preview: preview{true}, Silent: m.Silent}
	if m.Plain {
		o.ParseMode = ""
	}
	if m.ReplyTo != "" {
		in, number, err := parseID(m.ReplyTo)
		if err == nil && in == chat { // a press names no message, and another chat's cannot be answered
			o.ReplyTo = &reply{number, true}
		}
	}
	for _, b := range m.Buttons {
		if len(b.Data) > maxData || b.Data == "" || b.Label == "" {
			return o, &channel.RejectedError{Why: fmt.Sprintf("the button %.40q has no label, or not 1 to %d bytes of data",
				b.Label, maxData)}
		}
		if o.Keyboard == nil {
			o.Keyboard = &keyboard{}
		}
		o.Keyboard.Rows = append(o.Keyboard.Rows, []button{{b.Label, b.Data}})
	}
	return o, nil
}

// formatted sends or edits a text. If the server refuses the formatting, formatted sends plain text.
func (c *Channel) formatted(ctx context.Context, o outgoing, method string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var sent message
	err := c.callMethod(ctx, method, o, &sent)
	if chat := moved(err); chat != "" {
		o.Chat, o.ReplyTo = chat, nil // the messages of the old group have other numbers
		err = c.callMethod(ctx, method, o, &sent)
	}
	if said(err, "can't parse") {
		err = c.callMethod(ctx, method, o.plain(), &sent)
	}
	if err != nil {
		return "", err
	}
	return messageID(&sent), nil
}

// file sends m's file. Telegram refuses some pictures as photos, such as very long ones. They are sent as documents.
func (c *Channel) file(ctx context.Context, m channel.Outbound, o outgoing) (string, error) {
	kind := kindOf(m.File.Path)
	id, err := c.movedFile(ctx, kind, m, o)
	var refused *badRequest
	if kind == photo && errors.As(err, &refused) {
		return c.movedFile(ctx, document, m, o)
	}
	return id, err
}

// movedFile sends m's file, also to the new chat of a migrated group. If the server refuses the formatting of the
// text, movedFile sends plain text.
func (c *Channel) movedFile(ctx context.Context, kind fileKind, m channel.Outbound, o outgoing) (string, error) {
	id, err := c.sendFile(ctx, kind, m, o)
	if chat := moved(err); chat != "" {
		o.Chat, o.ReplyTo = chat, nil
		id, err = c.sendFile(ctx, kind, m, o)
	}
	if said(err, "can't parse") {
		return c.sendFile(ctx, kind, m, o.plain())
	}
	return id, err
}

// plain returns o without its formatting.
func (o outgoing) plain() outgoing {
	o.ParseMode = ""
	o.Text = channel.Unformatted(o.Text, channel.HTML)
	return o
}

// moved returns the new chat of a migrated group if the error names this chat. Telegram has then sent nothing.
func moved(err error) string {
	var bad *badRequest
	if !errors.As(err, &bad) || bad.moved == 0 {
		return ""
	}
	return strconv.FormatInt(bad.moved, 10)
}

// said reports whether an error is an answer 400 with these words. Telegram has no other sign of such a fault.
func said(err error, words string) bool {
	var bad *badRequest
	return errors.As(err, &bad) && strings.Contains(bad.Why, words)
}

// asJSON returns a value as a form's field, or "" for nil.
func asJSON[T any](v *T) string {
	if v == nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil { // strings and numbers always encode
		return ""
	}
	return string(b)
}
