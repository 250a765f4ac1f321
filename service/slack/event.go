package slack

import (
	"cmp"
	"encoding/json"
	"html"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// message is an event "message" or "app_mention". The objects here name only the used members, so later additions of
// Slack cause no failure.
type message struct {
	Type     string   `json:"type"`
	Subtype  string   `json:"subtype"`
	Channel  string   `json:"channel"`
	Kind     string   `json:"channel_type"` // "im" for a direct message
	User     string   `json:"user"`
	Bot      string   `json:"bot_id"`
	Text     string   `json:"text"`
	TS       string   `json:"ts"`
	Thread   string   `json:"thread_ts"`
	Parent   string   `json:"parent_user_id"` // the author of the thread's first message
	Files    []file   `json:"files"`
	Edited   *edit    `json:"edited"`
	Changed  *message `json:"message"`          // the new form of an edited message
	Previous *message `json:"previous_message"` // its earlier form
	// Shares are forwarded messages and previews of links.
	Shares []struct {
		Shared bool `json:"is_share"`
	} `json:"attachments"`
}

type edit struct {
	TS string `json:"ts"`
}

type file struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	MIME string `json:"mimetype"`
	Size int64  `json:"size"`
	URL  string `json:"url_private_download"` // in the answer to files.info
	Mode string `json:"mode"`
}

// press is a payload "block_actions".
type press struct {
	Type      string    `json:"type"`
	User      person    `json:"user"`
	Container container `json:"container"`
	Message   struct {
		Thread string `json:"thread_ts"`
	} `json:"message"`
	Actions []struct {
		Type  string `json:"type"`
		Value string `json:"value"`
		TS    string `json:"action_ts"`
		Text  struct {
			Text string `json:"text"`
		} `json:"text"`
	} `json:"actions"`
}

type person struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type container struct {
	Channel string `json:"channel_id"`
	Message string `json:"message_ts"`
}

// command is a payload of a slash command.
type command struct {
	Text    string `json:"text"`
	Channel string `json:"channel_id"`
	User    string `json:"user_id"`
	Trigger string `json:"trigger_id"`
}

// inbound returns the message of an envelope. ok is false if no person sent it to the bot.
func (c *Channel) inbound(f frame) (m channel.Inbound, ok bool) {
	switch f.Type {
	case "events_api":
		var p struct {
			Event json.RawMessage `json:"event"`
		}
		var e message
		if strict.Unmarshal(f.Payload, &p) != nil || strict.Unmarshal(p.Event, &e) != nil {
			return m, false
		}
		return c.event(e)
	case "interactive":
		var p press
		if strict.Unmarshal(f.Payload, &p) != nil || p.Type != "block_actions" || len(p.Actions) != 1 {
			return m, false
		}
		return pressed(p)
	case "slash_commands":
		var s command
		if strict.Unmarshal(f.Payload, &s) != nil || !isID(s.Channel) || s.User == "" || s.Trigger == "" {
			return m, false
		}
		text := strings.TrimPrefix(strings.TrimSpace(html.UnescapeString(s.Text)), "/")
		if text == "" {
			text = "help"
		}
		return channel.Inbound{ID: "command:" + s.Trigger, Chat: s.Channel, Contact: s.User, Text: "/" + text,
			Sent: time.Now(), Shared: isShared(s.Channel)}, true
	}
	return m, false
}

// isShared reports whether several people read a channel. Only the ids of direct messages begin with D.
func isShared(channelID string) bool { return !strings.HasPrefix(channelID, "D") }

// event returns the message of an event.
func (c *Channel) event(e message) (m channel.Inbound, ok bool) {
	direct := e.Type == "message" && e.Kind == "im"
	if !direct && e.Type != "app_mention" || !isID(e.Channel) {
		return m, false
	}
	switch e.Subtype {
	case "message_changed":
		return c.edited(e)
	case "", "file_share", "thread_broadcast", "bot_message", "me_message":
		return c.written(e)
	}
	return m, false // a change of the channel, or a deleted message
}

// edited reports an edited message as unread. It ignores a change that no person made, such as a preview that Slack
// adds.
func (c *Channel) edited(e message) (m channel.Inbound, ok bool) {
	now, old := e.Changed, e.Previous
	if now == nil || old == nil || now.Edited == nil || now.Text == old.Text {
		return m, false
	}
	now.Channel, now.Kind, now.Type = e.Channel, e.Kind, e.Type
	if m, ok = c.written(*now); !ok || m.Own {
		return m, false
	}
	m.ID += ":" + now.Edited.TS
	m.Text, m.Files, m.Unread = "", nil, "an edited message"
	return m, true
}

// written returns a message of a person or of this bot.
func (c *Channel) written(e message) (m channel.Inbound, ok bool) {
	c.mu.Lock()
	self := c.self
	c.mu.Unlock()
	own := e.User == self.User && self.User != "" || e.Bot == self.Bot && self.Bot != ""
	if !isTime(e.TS) || !own && (e.Bot != "" || e.User == "") {
		return m, false // another bot is no person
	}
	thread := e.Thread
	if isShared(e.Channel) && thread == "" {
		thread = e.TS // the answer begins a thread
	}
	m = channel.Inbound{ID: messageID(e.Channel, e.TS), Contact: e.User, Text: plainText(e.Text, self.User),
		Sent: timeOf(e.TS), Own: own, Shared: isShared(e.Channel)}
	if e.Thread != "" && e.Parent == self.User && self.User != "" {
		m.ReplyTo = messageID(e.Channel, e.Thread)
		if !m.Shared {
			thread = "" // a reply to a message that the bot sent outside of threads
		}
	}
	m.Chat = chatOf(e.Channel, thread)
	for _, s := range e.Shares {
		m.Quoted = m.Quoted || s.Shared
	}
	for _, f := range e.Files {
		m.Files = append(m.Files, channel.File{Name: attachment.Name(f.Name), MIME: f.MIME, Remote: f.ID, Size: f.Size})
	}
	return m, m.Text != "" || len(m.Files) > 0 || own
}

// timeOf returns the time of a message.
func timeOf(ts string) time.Time {
	seconds, _, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0)
}

// object matches a mention, a link or another object in a text.
var object = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<([^<>]*)>`) })

// plainText returns a text without Slack's notation of mentions and links. A mention of the bot vanishes.
func plainText(text, self string) string {
	text = object().ReplaceAllStringFunc(text, func(s string) string {
		target, label, _ := strings.Cut(s[1:len(s)-1], "|")
		switch {
		case target == "@"+self:
			return ""
		case strings.HasPrefix(target, "@"), strings.HasPrefix(target, "!"), strings.HasPrefix(target, "#"):
			sign := strings.Replace(target[:1], "!", "@", 1)
			return sign + strings.TrimLeft(cmp.Or(label, target[1:]), "@#")
		case label == "" || strings.HasSuffix(target, label): // Slack has found the address in the text
			if label != "" {
				return label
			}
			return strings.TrimPrefix(target, "mailto:")
		}
		return label + " (" + target + ")"
	})
	return strings.TrimSpace(html.UnescapeString(text))
}

// pressed returns a press of a button.
func pressed(p press) (m channel.Inbound, ok bool) {
	a := p.Actions[0]
	if !isID(p.Container.Channel) || !isTime(p.Container.Message) || p.User.ID == "" || a.Value == "" || a.TS == "" {
		return m, false
	}
	id := messageID(p.Container.Channel, p.Container.Message)
	thread := p.Message.Thread
	return channel.Inbound{ID: "press:" + id + ":" + a.TS, Chat: chatOf(p.Container.Channel, thread), Contact: p.User.ID,
		Name: p.User.Name, Text: html.UnescapeString(a.Text.Text), Button: a.Value, ReplyTo: id, Sent: timeOf(a.TS),
		Shared: isShared(p.Container.Channel)}, true
}
