package fact

// This file has the payloads of the messaging bridge. After a restart, the bridge's whole state follows from them.

import (
	"encoding/json"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// Peer is a person or a program on a channel. Peer alone is the payload of service.contact_session.
type Peer struct {
	Channel string `json:"channel"`
	// Contact is the platform's id.
	Contact string `json:"contact"`
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
	// Message is the platform's id of the message with the code.
	Message string `json:"message,omitempty"`
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
	// Follows says that the contact gets news of other users' sessions.
	Follows *bool  `json:"follows,omitempty"`
	By      string `json:"by"`
}

// StrangerIgnored is the payload of service.stranger_ignored.
type StrangerIgnored struct {
	Peer
	// Since counts the messages ignored without an event before this one.
	Since int `json:"unrecorded"`
}

// MessageKind is the kind of a contact's message.
type MessageKind string

// BridgeReceived is the payload of service.message_received.
type BridgeReceived struct {
	Peer
	Chat string `json:"chat"`
	Name string `json:"name,omitempty"`
	// Message is the platform's id.
	Message string       `json:"message"`
	Text    string       `json:"text"`
	Files   []string     `json:"files,omitempty"`  // paths
	Remote  []RemoteFile `json:"remote,omitempty"` // still on the platform
	Sent    time.Time    `json:"sent"`
	Kind    MessageKind  `json:"kind"`
	// Question is the question that the message answers.
	Question event.InteractionID `json:"question,omitempty"`
	// Option is the option that the message picks.
	Option string `json:"option,omitempty"`
	Word   string `json:"word,omitempty"`
	Always bool   `json:"always,omitempty"`
	// Digest is the digest of the input, the same as in llm.requested.
	Digest string `json:"input_sha256,omitempty"`
	// Held says that the input waits for its sender's confirmation.
	Held bool `json:"held,omitempty"`
	// About is the message that this one confirms or takes back.
	About event.InputID `json:"about,omitempty"`
}

// RemoteFile is a file of a message that is still on the platform.
type RemoteFile struct {
	// ID is the platform's id.
	ID   string `json:"id"`
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
	Data  string // at most 64 bytes, which the channel returns when the button is pressed
}

// BridgeQueued is the payload of service.message_queued.
type BridgeQueued struct {
	Peer
	ID      string   `json:"id"`
	Chat    string   `json:"chat"`
	Kind    OutKind  `json:"kind"`
	Text    string   `json:"text"` // in the channel's format
	Buttons []Button `json:"buttons,omitempty"`
	ReplyTo string   `json:"reply_to,omitempty"`
	// React is the emoji that replaces the text on a channel with reactions.
	React string `json:"react,omitempty"`
	// File is the name of the file that holds the whole answer or the whole question.
	File string `json:"file,omitempty"`
	// Part is the number of the answer's piece in the file, from 1.
	Part int `json:"part,omitempty"`
	// Target is the id of the queued message that this message edits.
	Target   string              `json:"target,omitempty"`
	Question event.InteractionID `json:"question,omitempty"`
}

// Delivery is the payload of service.send_started, service.message_sent and service.send_failed.
type Delivery struct {
	ID       string `json:"id"`
	Platform string `json:"platform_id,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Error    string `json:"error,omitempty"`
	// Unknown says that the platform may have accepted the message.
	Unknown bool `json:"unknown,omitempty"`
	// Final says that Perlica stops trying to send the message.
	Final bool `json:"final,omitempty"`
}

// CardClosed is the payload of service.question_closed.
type CardClosed struct {
	How string `json:"how"`
}

// TeamQuestion is the payload of service.team_question.
type TeamQuestion struct {
	Worker string `json:"worker"`
	Input  string `json:"input"`
	// Sender is the input's sender. It is empty if no valid signature names one.
	Sender string `json:"sender,omitempty"`
	// Project is empty if no valid signature names one.
	Project string `json:"project,omitempty"`
	// ID is the worker's id of the question.
	ID       string          `json:"id"`
	Question json.RawMessage `json:"question"`
	Asked    time.Time       `json:"asked"` // by the hub's clock
}

// ServedProject is the payload of service.project_added and service.project_removed.
type ServedProject struct {
	// Home is the log of the project whose bot serves Project.
	Home string `json:"home"`
	// Project is a folder.
	Project string `json:"project"`
	Context string `json:"context"`
	Log     string `json:"log"`
	By      string `json:"by"`
}

// ProjectChosen is the payload of service.project_chosen.
type ProjectChosen struct {
	Home string `json:"home"`
	Peer
	// Log is the log of the project.
	Log string `json:"log"`
}

// MessageRouted is the payload of service.message_routed.
type MessageRouted struct {
	Home    string `json:"home"`
	Channel string `json:"channel"`
	// Message is the platform's id.
	Message string `json:"message"`
	// Log is the log of the project.
	Log string `json:"log"`
}

// ChannelRead is the payload of service.channel_read.
type ChannelRead struct {
	Home    string `json:"home"`
	Channel string `json:"channel"`
	Cursor  string `json:"cursor"`
}
