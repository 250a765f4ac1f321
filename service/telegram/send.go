package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/perlica/perlica/service/channel"
)

// Send sends a text with buttons, a file, or a file with a text. A text that is too long for a
// caption goes ahead of its file; where only the text arrives, the error is of no kind that says
// that nothing was sent.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	o, err := compose(m)
	if err != nil {
		return "", err
	}
	switch {
	case m.File == nil:
		return c.formatted(ctx, o, "sendMessage")
	case channel.Units(o.Text) <= maxCaption:
		return c.document(ctx, m, o)
	}
	id, err := c.formatted(ctx, o, "sendMessage")
	if err != nil {
		return "", err
	}
	// The text's message has the buttons.
	if _, err := c.document(ctx, m, outgoing{Chat: o.Chat}); err != nil {
		return "", fmt.Errorf("telegram: the text was sent, but not its file: %s", err.Error())
	}
	return id, nil
}

// Edit changes the text and the buttons of a message that Send has returned the id of.
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
		o.Keyboard = &keyboard{Rows: [][]button{}} // buttons that are gone must not be pressed
	}
	_, err = c.formatted(ctx, o, "editMessageText")
	if said(err, "message is not modified") {
		return nil
	}
	return err
}

// Typing shows for some seconds that somebody is typing.
func (c *Channel) Typing(ctx context.Context, chat string) error {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	return c.call(ctx, "sendChatAction", map[string]string{"chat_id": chat, "action": "typing"}, nil)
}

// compose checks what can be checked without the server.
func compose(m channel.Outbound) (o outgoing, err error) {
	if _, err := strconv.ParseInt(m.Chat, 10, 64); err != nil {
		return o, &channel.RejectedError{Why: fmt.Sprintf("%.40q is no chat", m.Chat)}
	}
	if channel.Units(m.Text) > maxText { // Telegram counts without the tags; with them is on the safe side
		return o, &channel.RejectedError{Why: fmt.Sprintf("its text is longer than %d", maxText)}
	}
	o = outgoing{Chat: m.Chat, Text: m.Text, ParseMode: "HTML", Preview: preview{true}}
	if m.ReplyTo != "" {
		chat, number, err := parseID(m.ReplyTo)
		if err == nil && chat == m.Chat { // a press has no message; elsewhere there is none to answer
			o.ReplyTo = &reply{number, true}
		}
	}
	for _, b := range m.Buttons {
		if len(b.Data) > maxData || b.Data == "" || b.Label == "" {
			return o, &channel.RejectedError{Why: fmt.Sprintf("the button %.40q has no label, or not 1 to %d bytes of data", b.Label, maxData)}
		}
		if o.Keyboard == nil {
			o.Keyboard = &keyboard{}
		}
		o.Keyboard.Rows = append(o.Keyboard.Rows, []button{{b.Label, b.Data}})
	}
	return o, nil
}

// formatted sends or edits a text, as plain text if the server does not take its formatting.
func (c *Channel) formatted(ctx context.Context, o outgoing, method string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var sent message
	err := c.call(ctx, method, o, &sent)
	if said(err, "can't parse") {
		err = c.call(ctx, method, o.plain(), &sent)
	}
	if err != nil {
		return "", err
	}
	return messageID(&sent), nil
}

func (c *Channel) document(ctx context.Context, m channel.Outbound, o outgoing) (string, error) {
	id, err := c.sendDocument(ctx, m, o)
	if said(err, "can't parse") {
		return c.sendDocument(ctx, m, o.plain())
	}
	return id, err
}

var tag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`</?(?:b|strong|i|em|u|s|a|code|pre|blockquote)(?:\s[^<>]*)?>`)
})

// plain is o without its formatting.
func (o outgoing) plain() outgoing {
	o.ParseMode = ""
	o.Text = html.UnescapeString(tag().ReplaceAllString(o.Text, ""))
	return o
}

// said reports whether an error is an answer 400 with these words. Telegram has no other sign.
func said(err error, words string) bool {
	var bad *badRequest
	return errors.As(err, &bad) && strings.Contains(bad.Why, words)
}

// asJSON is a value for a form's field; none for nil.
func asJSON[T any](v *T) string {
	if v == nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil { // a struct of strings and numbers
		return ""
	}
	return string(b)
}
