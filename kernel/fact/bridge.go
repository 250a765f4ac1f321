package fact

// This file has the payloads that the messaging bridge writes. Everything that the bridge knows after a
// restart follows from them.

import (
	"encoding/json"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// Peer is a person or a program on a channel. Peer alone is the payload of service.contact_session.
type Peer struct {
	Channel string `json:"channel"`
	Contact string `json:"contact"` // the platform's id
}

// ServiceStarted is the payload of service.started.
type ServiceStarted struct {
	PID      int      `json:"pid"`
	Version  string   `json:"version"`
	Channels []string `json:"channels"`
}

// ServiceStopped is the payload of service.stopped.
type ServiceStopped struct {
	Why string `json:"why"`
}

// ChannelState is the payload of service.channel_failed and service.channel_restored.
type ChannelState struct {
	Channel string `json:"channel"`
	Error   string `json:"error,omitempty"`
}

// CursorMoved is the payload of service.cursor_moved.
type CursorMoved struct {
	Channel string `json:"channel"`
	Cursor  string `json:"cursor"`
}

// Right is something that a contact may do.
type Right string

// Pairing is the payload of service.pairing_opened.
type Pairing struct {
	ID      string    `json:"id"`
	Salt    []byte    `json:"salt"`
	Hash    []byte    `json:"hash"` // SHA-256 of salt and code
	Rights  []Right   `json:"rights"`
	Expires time.Time `json:"expires"`
	By      string    `json:"by"`
}

// PairingAttempted is the payload of service.pairing_attempted.
type PairingAttempted struct {
	Pairing string `json:"pairing"`
	Peer
}

// ContactPaired is the payload of service.contact_paired.
type ContactPaired struct {
	Peer
	Chat    string  `json:"chat"`
	Name    string  `json:"name,omitempty"`
	Rights  []Right `json:"rights"`
	Pairing string  `json:"pairing,omitempty"`
	Message string  `json:"message,omitempty"` // the platform's id of the one with the code
}

// ContactUnpaired is the payload of service.contact_unpaired.
type ContactUnpaired struct {
	Peer
	By string `json:"by"`
}

// ContactChanged is the payload of service.contact_changed. An absent field stays unchanged.
type ContactChanged struct {
	Peer
	Rights   []Right `json:"rights,omitempty"`
	Language string  `json:"language,omitempty"`
	Follows  *bool   `json:"follows,omitempty"` // the contact hears of the sessions of others
	By       string  `json:"by"`
}

// StrangerIgnored is the payload of service.stranger_ignored.
type StrangerIgnored struct {
	Peer
	Since int `json:"unrecorded"` // messages ignored without an event before this one
}

// MessageKind is the kind of a contact's message.
type MessageKind string

// BridgeReceived is the payload of service.message_received.
type BridgeReceived struct {
	Peer
	Chat     string              `json:"chat"`
	Name     string              `json:"name,omitempty"`
	Message  string              `json:"message"` // the platform's id
	Text     string              `json:"text"`
	Files    []string            `json:"files,omitempty"`  // paths
	Remote   []RemoteFile        `json:"remote,omitempty"` // files that are still on the platform
	Sent     time.Time           `json:"sent"`
	Kind     MessageKind         `json:"kind"`
	Question event.InteractionID `json:"question,omitempty"` // the question that the message answers
	Option   string              `json:"option,omitempty"`   // the option that the message picks
	Word     string              `json:"word,omitempty"`
	Always   bool                `json:"always,omitempty"`
	Digest   string              `json:"input_sha256,omitempty"` // of the input, as llm.requested has it
	Held     bool                `json:"held,omitempty"`         // the input waits for its sender's confirmation
	About    event.InputID       `json:"about,omitempty"`        // the message that this one confirms or takes back
}

// RemoteFile is a file of a message that is still on the platform.
type RemoteFile struct {
	ID   string `json:"id"` // the platform's
	Name string `json:"name"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// FilesFetched is the payload of service.files_fetched. It replaces the files and the text of
// service.message_received. Its text names the files that could not be fetched.
type FilesFetched struct {
	Text  string   `json:"text"`
	Files []string `json:"files,omitempty"` // paths
}

// MessageEnding is the result of a contact's message.
type MessageEnding string

// BridgeFinished is the payload of service.message_finished.
type BridgeFinished struct {
	How    MessageEnding `json:"how"`
	Detail string        `json:"detail,omitempty"`
}

// OutKind is the kind of a message to a contact.
type OutKind string

// Button is a choice that a channel shows below a message.
type Button struct {
	Label string
	Data  string // the channel sends it back when the button is pressed; at most 64 bytes
}

// BridgeQueued is the payload of service.message_queued.
type BridgeQueued struct {
	Peer
	ID       string              `json:"id"`
	Chat     string              `json:"chat"`
	Kind     OutKind             `json:"kind"`
	Text     string              `json:"text"` // in the channel's format
	Buttons  []Button            `json:"buttons,omitempty"`
	ReplyTo  string              `json:"reply_to,omitempty"`
	React    string              `json:"react,omitempty"`  // the emoji that replaces the text on a channel with reactions
	File     string              `json:"file,omitempty"`   // the name of the file that holds the whole answer or the whole question
	Part     int                 `json:"part,omitempty"`   // the number of the answer's piece that the file holds, from 1
	Target   string              `json:"target,omitempty"` // the id of the queued message that this message edits
	Question event.InteractionID `json:"question,omitempty"`
}

// Delivery is the payload of service.send_started, service.message_sent and service.send_failed.
type Delivery struct {
	ID       string `json:"id"`
	Platform string `json:"platform_id,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Error    string `json:"error,omitempty"`
	Unknown  bool   `json:"unknown,omitempty"` // the platform may have accepted the message
	Final    bool   `json:"final,omitempty"`   // Perlica gives the message up
}

// CardClosed is the payload of service.question_closed.
type CardClosed struct {
	How string `json:"how"`
}

// TeamQuestion is the payload of service.team_question.
type TeamQuestion struct {
	Worker   string          `json:"worker"`
	Input    string          `json:"input"`
	Sender   string          `json:"sender,omitempty"`  // the input's sender; empty when no valid signature names one
	Project  string          `json:"project,omitempty"` // empty when no valid signature names one
	ID       string          `json:"id"`                // the worker's id of the question
	Question json.RawMessage `json:"question"`
	Asked    time.Time       `json:"asked"` // by the hub's clock
}

// ServedProject is the payload of service.project_added and service.project_removed.
type ServedProject struct {
	Home    string `json:"home"`    // the log of the project whose bot it is
	Project string `json:"project"` // its folder
	Context string `json:"context"`
	Log     string `json:"log"`
	By      string `json:"by"`
}

// ProjectChosen is the payload of service.project_chosen.
type ProjectChosen struct {
	Home string `json:"home"`
	Peer
	Log string `json:"log"` // of the project
}

// MessageRouted is the payload of service.message_routed.
type MessageRouted struct {
	Home    string `json:"home"`
	Channel string `json:"channel"`
	Message string `json:"message"` // the platform's id
	Log     string `json:"log"`     // of the project
}

// ChannelRead is the payload of service.channel_read.
type ChannelRead struct {
	Home    string `json:"home"`
	Channel string `json:"channel"`
	Cursor  string `json:"cursor"`
}
