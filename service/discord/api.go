package discord

import (
	"strconv"
	"time"
)

// These are limits of Discord's API.
const (
	maxText    = 2000 // characters of a message
	maxFence   = 8    // characters around a text without formatting
	maxData    = 100  // characters of a custom_id
	maxLabel   = 80   // characters of a button's label
	rowButtons = 5    // buttons in a row
	maxButtons = 25
	maxNonce   = 25
	maxHistory = 100 // messages in one answer
)

// These are intents: the kinds of events that the gateway sends.
const (
	guilds         = 1 << 0
	guildMessages  = 1 << 9
	directMessages = 1 << 12
	messageContent = 1 << 15
)

// contentFlags are the flags of an application with the Message Content intent: for a large bot or for a small one.
const contentFlags = 1<<18 | 1<<19

// These are types of messages, references, channels, components, and interactions.
const (
	plainMessage, replyMessage           = 0, 19
	forwardReference                     = 1
	announcementThread, privateThread    = 10, 12 // the type between them is a thread, too
	actionRow, buttonComponent           = 1, 2
	greyButton                           = 2
	componentInteraction, deferredUpdate = 3, 6
)

// These are flags of a message.
const (
	suppressEmbeds        = 1 << 2 // no previews, because Discord's servers would fetch the links of an agent
	suppressNotifications = 1 << 12
)

// These are error codes.
const (
	unknownChannel     = 10003
	unknownMessage     = 10008
	tooLargeBody       = 40005
	missingAccess      = 50001
	noDirectMessages   = 50007
	missingPermissions = 50013
	archivedThread     = 50083
)

// The objects here name only the used members of the API, so later additions of Discord cause no failure.

type user struct {
	ID     string `json:"id"`
	Name   string `json:"username"`
	Global string `json:"global_name"`
	Bot    bool   `json:"bot"`
}

func (u user) label() string {
	if u.Global != "" {
		return u.Global
	}
	return u.Name
}

type message struct {
	ID          string      `json:"id"`
	Channel     string      `json:"channel_id"`
	Guild       string      `json:"guild_id"` // only on the gateway
	Type        int         `json:"type"`
	Author      *user       `json:"author"`
	Webhook     string      `json:"webhook_id"`
	Content     string      `json:"content"`
	Sent        time.Time   `json:"timestamp"`
	Edited      *time.Time  `json:"edited_timestamp"`
	Mentions    []user      `json:"mentions"`
	Files       []file      `json:"attachments"`
	Reference   *reference  `json:"message_reference"`
	Referenced  *message    `json:"referenced_message"`
	Snapshots   []snapshot  `json:"message_snapshots"` // the content of a forwarded message
	Stickers    []struct{}  `json:"sticker_items"`
	Poll        *struct{}   `json:"poll"`
	Components  []component `json:"components"`
	Interaction *struct{}   `json:"interaction_metadata"`
}

type snapshot struct {
	Message struct {
		Content string `json:"content"`
		Files   []file `json:"attachments"`
	} `json:"message"`
}

type file struct {
	ID   string `json:"id"`
	Name string `json:"filename"`
	MIME string `json:"content_type"`
	Size int64  `json:"size"`
	URL  string `json:"url"` // expires
}

// files returns the files of a message and of the messages that it forwards.
func (m *message) files() []file {
	list := m.Files
	for _, s := range m.Snapshots {
		list = append(list, s.Message.Files...)
	}
	return list
}

type reference struct {
	Type    int    `json:"type,omitempty"`
	Message string `json:"message_id,omitempty"`
	Channel string `json:"channel_id,omitempty"`
	// Strict refuses a reply whose message was deleted in the meantime.
	Strict bool `json:"fail_if_not_exists"`
}

type component struct {
	Type       int         `json:"type"`
	Style      int         `json:"style,omitempty"`
	Label      string      `json:"label,omitempty"`
	Data       string      `json:"custom_id,omitempty"`
	Components []component `json:"components,omitempty"`
}

type interaction struct {
	ID      string  `json:"id"`
	Token   string  `json:"token"`
	Type    int     `json:"type"`
	Channel string  `json:"channel_id"`
	Guild   string  `json:"guild_id"`
	Message message `json:"message"`
	User    *user   `json:"user"` // in a direct message
	Member  *struct {
		User user `json:"user"`
	} `json:"member"` // in a guild
	Data struct {
		Data string `json:"custom_id"`
	} `json:"data"`
}

// outgoing has the parameters of Create Message and Edit Message.
type outgoing struct {
	Content    string      `json:"content"`
	Components []component `json:"components"` // an edit without buttons must send an empty list
	Reference  *reference  `json:"message_reference,omitempty"`
	Mentions   mentions    `json:"allowed_mentions"`
	Flags      int         `json:"flags,omitempty"`
	Nonce      string      `json:"nonce,omitempty"`
	// Enforce makes Discord return the first message if a second one has the same nonce within a few minutes.
	Enforce bool `json:"enforce_nonce,omitempty"`
}

// mentions lists the kinds of mentions that have an effect. The words of an agent must alert nobody.
type mentions struct {
	Parse   []string `json:"parse"`
	Replied bool     `json:"replied_user"`
}

// isID reports whether a text is a snowflake. All ids of Discord have this form.
func isID(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil && len(s) >= 2 && s[0] != '0' && s[0] != '+'
}

// number returns the number of an id. A later id has a larger number.
func number(id string) uint64 {
	n, _ := strconv.ParseUint(id, 10, 64) // 0 if it is not an id
	return n
}

// epochMillis is the beginning of Discord's time, in milliseconds since 1970.
const epochMillis = 1420070400000

// snowflakeMillis is one millisecond in an id.
const snowflakeMillis = 1 << 22

// madeAt returns the time of an id by Discord's clock.
func madeAt(id string) time.Time {
	return time.UnixMilli(int64(number(id)/snowflakeMillis) + epochMillis)
}
