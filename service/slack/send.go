package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// These are limits of blocks.
const (
	maxButtons = 25 // of one block
	maxLabel   = 75 // characters
	maxData    = 2000
)

// moment is the pause if Slack names none.
const moment = 5 * time.Second

// emojis has Slack's names for the emojis of reactions.
var emojis = map[string]string{
	"🫡": "saluting_face", "👀": "eyes", "👍": "+1", "✅": "white_check_mark", "👌": "ok_hand",
}

// text is an object of a block.
type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// block is a part of a message with buttons.
type block struct {
	Type     string   `json:"type"`
	ID       string   `json:"block_id,omitempty"`
	Text     *text    `json:"text,omitempty"`
	Elements []button `json:"elements,omitempty"`
}

type button struct {
	Type   string `json:"type"`
	Action string `json:"action_id"` // unique in its block
	Text   text   `json:"text"`
	Value  string `json:"value"`
}

// Send sends a text with buttons, a file, or a file with a text. A text with buttons is sent before its file. If only
// the text arrives, the error does not wrap channel.ErrNotSent.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	params, err := compose(m)
	if err != nil {
		return "", err
	}
	if m.File == nil {
		return c.post(ctx, "chat.postMessage", params)
	}
	if len(m.Buttons) == 0 {
		return c.sendFile(ctx, m, true)
	}
	id, err := c.post(ctx, "chat.postMessage", params)
	if err != nil {
		return "", err
	}
	if _, err := c.sendFile(ctx, m, false); err != nil {
		return "", fmt.Errorf("slack: the text was sent, but not its file: %s", err.Error())
	}
	return id, nil
}

// Edit changes the text and the buttons of a message with an id from Send.
func (c *Channel) Edit(ctx context.Context, id string, m channel.Outbound) error {
	channelID, ts, err := parseID(id)
	if err != nil {
		return err
	}
	m.Chat, m.ReplyTo, m.File = channelID, "", nil
	params, err := compose(m)
	if err != nil {
		return err
	}
	params.Set("ts", ts)
	if len(m.Buttons) == 0 {
		params.Set("blocks", "[]") // remove earlier buttons, so that nobody presses them
	}
	_, err = c.post(ctx, "chat.update", params)
	return err
}

// post sends or edits a message and returns its id.
func (c *Channel) post(ctx context.Context, method string, params url.Values) (string, error) {
	var a struct {
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	}
	if err := c.call(ctx, method, params, &a); err != nil {
		return "", err
	}
	return messageID(a.Channel, a.TS), nil
}

// compose checks a message as far as possible without Slack, and returns the parameters of its method.
func compose(m channel.Outbound) (url.Values, error) {
	channelID, thread, err := place(m.Chat)
	if err != nil {
		return nil, err
	}
	if n := channel.Units(m.Text); n > maxText {
		return nil, &channel.RejectedError{Why: fmt.Sprintf("its text has %d characters, and %d are allowed", n, maxText)}
	}
	params := url.Values{"channel": {channelID}, "text": {written(m)}, "unfurl_links": {"false"},
		"unfurl_media": {"false"}, "mrkdwn": {fmt.Sprint(!m.Plain)}}
	if thread != "" {
		params.Set("thread_ts", thread)
	}
	if m.ReplyTo != "" {
		// Slack shows no answered message outside of threads. Other programs find it here.
		params.Set("metadata", asJSON(map[string]any{"event_type": "perlica_reply",
			"event_payload": map[string]string{"reply_to": m.ReplyTo}}))
	}
	if len(m.Buttons) > 0 {
		blocks, err := withButtons(m)
		if err != nil {
			return nil, err
		}
		params.Set("blocks", asJSON(blocks))
	}
	return params, nil
}

// written returns the text of a message in Slack's notation.
func written(m channel.Outbound) string {
	if m.Plain {
		return channel.EscapeMrkdwn(m.Text)
	}
	return m.Text
}

// withButtons returns the blocks of a message with buttons.
func withButtons(m channel.Outbound) ([]block, error) {
	section := block{Type: "section", Text: &text{"mrkdwn", written(m)}}
	if m.Plain {
		section.Text = &text{"plain_text", m.Text}
	}
	blocks := []block{section}
	for i, b := range m.Buttons {
		if len(b.Data) > maxData || b.Data == "" || b.Label == "" {
			return nil, &channel.RejectedError{Why: fmt.Sprintf("the button %.40q has no label, or not 1 to %d bytes of data",
				b.Label, maxData)}
		}
		if i%maxButtons == 0 {
			blocks = append(blocks, block{Type: "actions", ID: fmt.Sprint("options", i)})
		}
		last := &blocks[len(blocks)-1]
		last.Elements = append(last.Elements, button{"button", fmt.Sprint("option", i), text{"plain_text", short(b.Label)},
			b.Data})
	}
	return blocks, nil
}

// short cuts a label to Slack's limit.
func short(label string) string {
	r := []rune(label)
	if len(r) <= maxLabel {
		return label
	}
	return string(r[:maxLabel-1]) + "…"
}

// Remove deletes a message of the bot.
func (c *Channel) Remove(ctx context.Context, id string) error {
	channelID, ts, err := parseID(id)
	if err != nil {
		return err
	}
	return c.call(ctx, "chat.delete", url.Values{"channel": {channelID}, "ts": {ts}}, nil)
}

// Pace leaves room for other messages. https://docs.slack.dev/apis/web-api/rate-limits allows about fifty edits a
// minute and one message a second in a channel.
func (c *Channel) Pace(string) time.Duration { return 3 * time.Second }

// React puts an emoji on a person's message.
func (c *Channel) React(ctx context.Context, message, emoji string) error {
	channelID, ts, err := parseID(message)
	if err != nil {
		return err
	}
	name, ok := emojis[emoji]
	if !ok {
		return &channel.RejectedError{Why: fmt.Sprintf("Slack's name of the emoji %q is not known", emoji)}
	}
	err = c.call(ctx, "reactions.add", url.Values{"channel": {channelID}, "timestamp": {ts}, "name": {name}}, nil)
	if said(err, "already_reacted") {
		return nil
	}
	return err
}

// asJSON returns a value as a parameter.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // strings and numbers always encode
		return ""
	}
	return string(b)
}
