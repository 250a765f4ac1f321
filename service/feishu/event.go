package feishu

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/channel"
)

// event is the payload of a frame. The objects here name only the used members, so later additions of Feishu cause no
// failure.
type event struct {
	Header struct {
		ID   string `json:"event_id"`
		Type string `json:"event_type"`
	} `json:"header"`
	Event json.RawMessage `json:"event"`
}

type person struct {
	ID string `json:"open_id"`
}

// received is an event "im.message.receive_v1".
type received struct {
	Sender struct {
		ID   person `json:"sender_id"`
		Type string `json:"sender_type"`
	} `json:"sender"`
	Message struct {
		ID       string    `json:"message_id"`
		Root     string    `json:"root_id"`
		Parent   string    `json:"parent_id"` // the answered message
		Thread   string    `json:"thread_id"`
		Created  string    `json:"create_time"` // milliseconds
		Chat     string    `json:"chat_id"`
		Kind     string    `json:"chat_type"` // "p2p" for a private chat
		Type     string    `json:"message_type"`
		Content  string    `json:"content"`
		Mentions []mention `json:"mentions"`
	} `json:"message"`
}

type mention struct {
	Key  string `json:"key"` // its place in the text
	ID   person `json:"id"`
	Name string `json:"name"`
}

// press is an event "card.action.trigger".
type press struct {
	Operator person `json:"operator"`
	Action   struct {
		Value value `json:"value"`
	} `json:"action"`
	Context struct {
		Message string `json:"open_message_id"`
		Chat    string `json:"open_chat_id"`
	} `json:"context"`
}

// value is the value of a button. Feishu returns it with the press.
type value struct {
	Chat  string `json:"chat"`
	Data  string `json:"data"`
	Label string `json:"label"`
}

// content is the content of a message of any type.
type content struct {
	Text     string      `json:"text"`
	Title    string      `json:"title"`
	Body     [][]element `json:"content"`
	Image    string      `json:"image_key"`
	File     string      `json:"file_key"`
	FileName string      `json:"file_name"`
}

// element is a part of a line of a message of the type "post".
type element struct {
	Tag      string `json:"tag"`
	Text     string `json:"text"`
	Link     string `json:"href"`
	User     string `json:"user_id"` // the key of a mention
	UserName string `json:"user_name"`
	Image    string `json:"image_key"`
	File     string `json:"file_key"`
	Emoji    string `json:"emoji_type"`
	Language string `json:"language"`
}

// unread names the contents that are not read.
var unread = map[string]string{"sticker": "a sticker", "location": "a location", "share_user": "a contact",
	"vote": "a poll", "merge_forward": "forwarded messages"}

// inbound returns the message of an event. ok is false if no person sent it to the bot.
func (c *Channel) inbound(payload []byte) (m channel.Inbound, ok bool) {
	var e event
	if strict.UnmarshalRepaired(payload, &e) != nil {
		return m, false
	}
	switch e.Header.Type {
	case "im.message.receive_v1":
		var r received
		if strict.Unmarshal(e.Event, &r) != nil {
			return m, false
		}
		return c.written(r)
	case "card.action.trigger":
		var p press
		if strict.Unmarshal(e.Event, &p) != nil || e.Header.ID == "" {
			return m, false
		}
		return pressed(e.Header.ID, p)
	}
	return m, false
}

// written returns a message of a person. In a group it must mention the bot.
func (c *Channel) written(r received) (m channel.Inbound, ok bool) {
	c.mu.Lock()
	self := c.self.ID
	c.mu.Unlock()
	w := r.Message
	if r.Sender.Type != "user" || !isID(r.Sender.ID.ID, "ou_") || !isID(w.ID, "om_") || !isID(w.Chat, "oc_") {
		return m, false // an app is no person
	}
	m = channel.Inbound{ID: w.ID, Chat: w.Chat, Contact: r.Sender.ID.ID, Sent: timeOf(w.Created), ReplyTo: w.Parent,
		Shared: w.Kind != "p2p"}
	if !m.Shared {
		m.Chat = m.Contact
	} else if !slices.ContainsFunc(w.Mentions, func(n mention) bool { return n.ID.ID == self }) {
		return m, false
	}
	if first := cmp.Or(w.Root, w.ID); w.Thread != "" && isID(first, "om_") {
		m.Chat += "/" + first
	}
	var in content
	if strict.UnmarshalRepaired([]byte(w.Content), &in) != nil {
		m.Unread = "this content"
		return m, true
	}
	names := map[string]string{}
	for _, n := range w.Mentions {
		if names[n.Key] = "@" + n.Name; n.ID.ID == self {
			names[n.Key] = ""
		}
	}
	switch w.Type {
	case "text":
		m.Text = strings.TrimSpace(withNames(in.Text, names))
	case "post":
		m.Text, m.Files = in.post(names)
	case "image":
		m.Files = []channel.File{imageFile(in.Image)}
	case "file", "media":
		m.Files = []channel.File{plainFile(in.File, cmp.Or(in.FileName, "file"))}
	case "audio":
		m.Files = []channel.File{plainFile(in.File, "voice.opus")}
		m.Files[0].MIME = "audio/ogg"
	default:
		m.Unread = cmp.Or(unread[w.Type], "this content")
	}
	return m, m.Text != "" || len(m.Files) > 0 || m.Unread != ""
}

// imageFile returns an image of a message. Feishu names neither its type nor its size.
func imageFile(key string) channel.File {
	return channel.File{Name: "image.jpg", MIME: "image/jpeg", Remote: "image/" + key}
}

// plainFile returns a file of a message.
func plainFile(key, name string) channel.File {
	return channel.File{Name: attachment.Name(name), Remote: "file/" + key}
}

// timeOf returns a time in milliseconds.
func timeOf(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

// mentionKey matches the place of a mention in a text.
var mentionKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`@_(user_\d+|all)\b`) })

// withNames puts names into a text. The bot's own name is empty.
func withNames(text string, names map[string]string) string {
	return mentionKey().ReplaceAllStringFunc(text, func(key string) string {
		if name, ok := names[key]; ok {
			return name
		}
		return "@" + strings.TrimPrefix(key, "@_")
	})
}

// post returns the text and the files of a message of the type "post".
func (in content) post(names map[string]string) (text string, files []channel.File) {
	lines := []string{in.Title}
	for _, elements := range in.Body {
		var line strings.Builder
		for _, e := range elements {
			switch e.Tag {
			case "at":
				name, ok := names[e.User]
				if !ok {
					name = "@" + cmp.Or(e.UserName, strings.TrimPrefix(e.User, "@_"))
				}
				line.WriteString(name)
			case "a":
				line.WriteString(e.Text)
				if e.Link != e.Text {
					line.WriteString(" (" + e.Link + ")")
				}
			case "img":
				files = append(files, imageFile(e.Image))
			case "media":
				files = append(files, plainFile(e.File, "video.mp4"))
			case "emotion":
				line.WriteString(":" + e.Emoji + ":")
			case "code_block":
				line.WriteString("```" + strings.ToLower(e.Language) + "\n" + strings.TrimSuffix(e.Text, "\n") + "\n```")
			case "hr":
				line.WriteString("---")
			default:
				line.WriteString(e.Text)
			}
		}
		lines = append(lines, line.String())
	}
	return strings.TrimSpace(withNames(strings.Join(lines, "\n"), names)), files
}

// pressed returns a press of a button. A card that was forwarded to another chat does not count.
func pressed(id string, p press) (m channel.Inbound, ok bool) {
	v := p.Action.Value
	at, err := parseChat(v.Chat)
	if err != nil || v.Data == "" || !isID(p.Operator.ID, "ou_") || !isID(p.Context.Message, "om_") ||
		at.person != "" && at.person != p.Operator.ID || at.group != "" && at.group != p.Context.Chat {
		return m, false
	}
	return channel.Inbound{ID: "press:" + id, Chat: v.Chat, Contact: p.Operator.ID, Text: v.Label, Button: v.Data,
		ReplyTo: p.Context.Message, Sent: time.Now(), Shared: at.group != ""}, true
}
