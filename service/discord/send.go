package discord

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// longestText leaves room for the marks around a text without formatting.
const longestText = maxText - maxFence

// Send sends a text with buttons and a file in one message.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	o, err := compose(m)
	if err != nil {
		return "", err
	}
	var sent message
	if m.File != nil {
		err = c.postFile(ctx, m, o, &sent)
	} else if b, berr := jsonBody(o); berr != nil {
		err = berr
	} else {
		err = c.call(ctx, postMessage, b, &sent, m.Chat)
	}
	if err != nil {
		return "", err
	}
	return m.Chat + ":" + sent.ID, nil
}

// Edit changes the text and the buttons of a message with an id from Send.
func (c *Channel) Edit(ctx context.Context, id string, m channel.Outbound) error {
	chat, message, err := parseID(id)
	if err != nil {
		return err
	}
	m.Chat, m.ReplyTo, m.Key, m.Silent = chat, "", "", false
	o, err := compose(m)
	if err != nil {
		return err
	}
	b, err := jsonBody(o)
	if err != nil {
		return err
	}
	return c.call(ctx, patchMessage, b, nil, chat, message)
}

// Remove deletes a message of the bot.
func (c *Channel) Remove(ctx context.Context, id string) error {
	chat, message, err := parseID(id)
	if err != nil {
		return err
	}
	err = c.call(ctx, deleteMessage, body{}, nil, chat, message)
	if hasCode(err, unknownMessage) { // a person has deleted the message
		return nil
	}
	return err
}

// Pace leaves room for other messages. Discord allows a bot about one edit a second in a channel.
func (c *Channel) Pace(string) time.Duration { return 3 * time.Second }

// React puts an emoji on a person's message.
func (c *Channel) React(ctx context.Context, message, emoji string) error {
	chat, id, err := parseID(message)
	if err != nil {
		return err
	}
	return c.call(ctx, putReaction, body{}, nil, chat, id, emoji)
}

// Typing shows a typing sign for ten seconds.
func (c *Channel) Typing(ctx context.Context, chat string) error {
	if !isID(chat) {
		return &channel.RejectedError{Why: fmt.Sprintf("%.40q is no chat", chat)}
	}
	return c.call(ctx, postTyping, body{}, nil, chat)
}

// compose checks a message as far as possible without the server.
func compose(m channel.Outbound) (o outgoing, err error) {
	switch {
	case !isID(m.Chat):
		return o, &channel.RejectedError{Why: fmt.Sprintf("%.40q is no chat", m.Chat)}
	case channel.Units(m.Text) > longestText:
		return o, &channel.RejectedError{Why: fmt.Sprintf("its text is longer than %d", longestText)}
	case len(m.Buttons) > maxButtons:
		return o, &channel.RejectedError{Why: fmt.Sprintf("it has more than %d buttons", maxButtons)}
	}
	o = outgoing{Content: m.Text, Components: []component{}, Mentions: mentions{Parse: []string{}},
		Flags: suppressEmbeds, Nonce: nonce(m.Key), Enforce: m.Key != ""}
	if m.Plain && m.Text != "" {
		o.Content = channel.DiscordLiteral(m.Text)
	}
	if m.Silent {
		o.Flags |= suppressNotifications
	}
	// The id of a press belongs to no message, and a message in another chat cannot be answered.
	if chat, id, err := parseID(m.ReplyTo); err == nil && chat == m.Chat {
		o.Reference = &reference{Message: id}
	}
	for i, b := range m.Buttons {
		if b.Data == "" || len(b.Data) > maxData || b.Label == "" {
			return o, &channel.RejectedError{Why: fmt.Sprintf("the button %.40q has no label, or not 1 to %d bytes of data",
				b.Label, maxData)}
		}
		if i%rowButtons == 0 {
			o.Components = append(o.Components, component{Type: actionRow})
		}
		row := &o.Components[len(o.Components)-1]
		row.Components = append(row.Components, component{Type: buttonComponent, Style: greyButton, Label: shorten(b.Label),
			Data: b.Data})
	}
	return o, nil
}

// shorten returns a label that fits on a button.
func shorten(label string) string {
	if r := []rune(label); len(r) > maxLabel {
		return string(r[:maxLabel-1]) + "…"
	}
	return label
}

// nonce returns a text of Discord's length that stands for a key.
func nonce(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:maxNonce]
}
