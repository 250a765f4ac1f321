package telegram

import "encoding/json"

// These are limits of the Bot API, in UTF-16 code units and bytes.
const (
	maxText    = 4096
	maxCaption = 1024
	maxData    = 64
)

// answer is the result of every method.
type answer struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Description string          `json:"description"`
	ErrorCode   int             `json:"error_code"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// update is one event. The objects here name only the used members of the Bot API, so later
// additions of Telegram cause no failure.
type update struct {
	ID       int64     `json:"update_id"`
	Message  *message  `json:"message"`
	Edited   *message  `json:"edited_message"`
	Callback *callback `json:"callback_query"`
}

type message struct {
	ID       int64     `json:"message_id"`
	From     *user     `json:"from"`
	Sender   *chat     `json:"sender_chat"` // the speaker is hidden behind a chat
	Chat     chat      `json:"chat"`
	Date     int64     `json:"date"`
	Text     string    `json:"text"`
	Caption  string    `json:"caption"`
	ReplyTo  *message  `json:"reply_to_message"`
	External *struct{} `json:"external_reply"` // a reply to a message of another chat
	Story    *struct{} `json:"reply_to_story"`
	Quote    *struct{} `json:"quote"`
	Via      *struct{} `json:"via_bot"`         // a bot has written the words
	Offline  bool      `json:"is_from_offline"` // written earlier and sent automatically
	Forward  *struct{} `json:"forward_origin"`  // set for a forwarded message
	Forward6 int64     `json:"forward_date"`    // the same before version 7 of the Bot API
	Document *file     `json:"document"`
	Photo    []file    `json:"photo"` // one picture in several sizes
	Voice    *file     `json:"voice"`
	Audio    *file     `json:"audio"`
	Video    *file     `json:"video"`
	Note     *file     `json:"video_note"`
	Keyboard *keyboard `json:"reply_markup"`
	Thread   int64     `json:"message_thread_id"`
	Topic    bool      `json:"is_topic_message"` // otherwise Thread is a row of replies
	Album    string    `json:"media_group_id"`   // the same for all messages of one album
	Changed  int64     `json:"edit_date"`

	// These members are neither a text nor a file.
	Sticker  *struct{} `json:"sticker"`
	Location *struct{} `json:"location"`
	Contact  *struct{} `json:"contact"`
	Poll     *struct{} `json:"poll"`
	Dice     *struct{} `json:"dice"`
}

type user struct {
	ID        int64  `json:"id"`
	Bot       bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
}

type chat struct {
	ID   int64  `json:"id"`
	Type string `json:"type"` // "private", "group", "supergroup", "channel"
}

type file struct {
	ID   string `json:"file_id"`
	Name string `json:"file_name"`
	MIME string `json:"mime_type"`
	Size int64  `json:"file_size"`
	Path string `json:"file_path"` // in the answer to getFile
}

type callback struct {
	ID      string   `json:"id"`
	From    user     `json:"from"`
	Message *message `json:"message"`
	Data    string   `json:"data"`
}

type keyboard struct {
	Rows [][]button `json:"inline_keyboard"`
}

type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

// outgoing holds the parameters of sendMessage and editMessageText.
type outgoing struct {
	Chat      string    `json:"chat_id"`
	Thread    int64     `json:"message_thread_id,omitempty"` // the topic of a forum
	Message   int64     `json:"message_id,omitempty"`        // the edited message
	Text      string    `json:"text"`
	ParseMode string    `json:"parse_mode,omitempty"`
	ReplyTo   *reply    `json:"reply_parameters,omitempty"`
	Keyboard  *keyboard `json:"reply_markup,omitempty"`
	Preview   preview   `json:"link_preview_options"`
	Silent    bool      `json:"disable_notification,omitempty"`
}

type reply struct {
	Message int64 `json:"message_id"`
	// Anyway lets a reply go even if its message was deleted in the meantime.
	Anyway bool `json:"allow_sending_without_reply"`
}

// preview turns off link previews, because a link in an agent's words must not make Telegram's
// servers fetch it.
type preview struct {
	Disabled bool `json:"is_disabled"`
}
