package fact

// This file has the payloads of the messaging bridge's events. After a restart, the bridge's whole state follows from
// these events.

import (
	"encoding/json"
	"github.com/perlica/perlica/eventlog/message"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// Peer is a person or a program on a channel.
type Peer struct {
	Channel string `json:"channel"`
	// Contact is the platform's id of the person or program.
	Contact string `json:"contact"`
}

// ServiceStarted is the payload of service.started: the bridge has begun to serve these channels.
type ServiceStarted struct {
	PID      int      `json:"pid"`
	Version  string   `json:"version"`
	Channels []string `json:"channels"`
}

// ServiceStopped is the payload of service.stopped: the bridge has ended.
type ServiceStopped struct {
	Why string `json:"why"`
}

// ChannelState is the payload of service.channel_failed and service.channel_restored: a channel has stopped working, or
// works again.
type ChannelState struct {
	Channel string `json:"channel"`
	Error   string `json:"error,omitempty"`
}

// CursorMoved is the payload of service.cursor_moved: the bridge has read the channel up to the position Cursor.
type CursorMoved struct {
	Channel string `json:"channel"`
	Cursor  string `json:"cursor"`
}

// Right is a permission of a contact, a browser or a member, such as reading or answering questions.
type Right string

// Pairing is the payload of service.pairing_opened: a code can be used until Expires, and gives a contact the Rights.
type Pairing struct {
	ID      string    `json:"id"`
	Salt    []byte    `json:"salt"`
	Hash    []byte    `json:"hash"` // SHA-256 of salt and code
	Rights  []Right   `json:"rights"`
	Expires time.Time `json:"expires"`
	By      string    `json:"by"`
}

// PairingAttempted is the payload of service.pairing_attempted: a contact sent six digits while a code was open.
type PairingAttempted struct {
	Pairing string `json:"pairing"`
	Peer
}

// ContactPaired is the payload of service.contact_paired: a contact is paired now and has these Rights.
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

// ContactSession is the payload of service.contact_session: the contact continues in another session in this chat. An
// absent chat means the chat of the pairing.
type ContactSession struct {
	Peer
	Chat string `json:"chat,omitempty"`
}

// ContactChanged is the payload of service.contact_changed. An absent field stays unchanged.
type ContactChanged struct {
	Peer
	Rights   []Right `json:"rights,omitempty"`
	Language string  `json:"language,omitempty"`
	// Follows means that the contact gets news about other users' sessions.
	Follows *bool  `json:"follows,omitempty"`
	By      string `json:"by"`
}

// StrangerIgnored is the payload of service.stranger_ignored: a contact that is not paired has sent a message.
type StrangerIgnored struct {
	Peer
	// Since is the number of ignored messages after the previous event of this type. These messages have no event of
	// their own.
	Since int `json:"unrecorded"`
}

// MessageKind is the kind of a contact's message.
type MessageKind string

// BridgeReceived is the payload of service.message_received: a message of a contact.
type BridgeReceived struct {
	Peer
	Chat string `json:"chat"`
	Name string `json:"name,omitempty"`
	// Message is the platform's id of the message.
	Message string       `json:"message"`
	Text    string       `json:"text"`
	Files   []string     `json:"files,omitempty"`  // paths of the downloaded files
	Remote  []RemoteFile `json:"remote,omitempty"` // files that are still on the platform
	Sent    time.Time    `json:"sent"`
	Kind    MessageKind  `json:"kind"`
	// Question is the id of the question that the message answers.
	Question event.InteractionID `json:"question,omitempty"`
	// Option is the id of the option that the message chooses.
	Option string `json:"option,omitempty"`
	Word   string `json:"word,omitempty"`
	Always bool   `json:"always,omitempty"`
	// Digest is the digest of the input, the same as in llm.requested.
	Digest string `json:"input_sha256,omitempty"`
	// Held means that the input waits for its sender's confirmation.
	Held bool `json:"held,omitempty"`
	// About is the id of the earlier input that this message confirms or withdraws.
	About event.InputID `json:"about,omitempty"`
}

// RemoteFile is an attachment that is still on the platform.
type RemoteFile struct {
	// ID is the platform's id of the file.
	ID   string `json:"id"`
	Name string `json:"name"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// FilesFetched is the payload of service.files_fetched. It replaces the files and the text in service.message_received.
// The new text names the files that could not be fetched.
type FilesFetched struct {
	Text  string   `json:"text"`
	Files []string `json:"files,omitempty"` // paths
}

// MessageEnding is the final state of a contact's message.
type MessageEnding string

// BridgeFinished is the payload of service.message_finished: the final state of a contact's message.
type BridgeFinished struct {
	How           MessageEnding `json:"how"`
	Detail        string        `json:"detail,omitempty"`
	message.Coded               // the code of Detail, with the inserted values
}

// NewBridgeFinished returns the end of a message with an error as its detail.
func NewBridgeFinished(how MessageEnding, err error) BridgeFinished {
	t := message.Of(err)
	return BridgeFinished{How: how, Detail: t.Text, Coded: t.Coded}
}

// OutKind is the kind of a message to a contact.
type OutKind string

// Button is a choice that a channel shows below a message.
type Button struct {
	Label string
	Data  string // at most 64 bytes; the channel returns them when a person presses the button
}

// BridgeQueued is the payload of service.message_queued: a message that the bridge will send to a contact.
type BridgeQueued struct {
	Peer
	ID      string   `json:"id"`
	Chat    string   `json:"chat"`
	Kind    OutKind  `json:"kind"`
	Text    string   `json:"text"` // in the channel's format
	Buttons []Button `json:"buttons,omitempty"`
	ReplyTo string   `json:"reply_to,omitempty"`
	// React is the emoji that the bridge sends instead of the text, if the channel has reactions.
	React string `json:"react,omitempty"`
	// File is the name of the file with the whole answer or the whole question.
	File string `json:"file,omitempty"`
	// Part is the number of the answer's content block that the file contains, from 1. 0 means the whole text.
	Part int `json:"part,omitempty"`
	// Picture is the number of the picture in the results of the tools that the file contains, from 1. 0 means no such
	// picture.
	Picture int `json:"picture,omitempty"`
	// Target is the id of the queued message that this message edits.
	Target   string              `json:"target,omitempty"`
	Question event.InteractionID `json:"question,omitempty"`
}

// Delivery is the payload of service.send_started, service.message_sent and service.send_failed. It describes one
// attempt to send a queued message.
type Delivery struct {
	ID       string `json:"id"`
	Platform string `json:"platform_id,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Error    string `json:"error,omitempty"`
	// Unknown means that the platform may have accepted the message.
	Unknown bool `json:"unknown,omitempty"`
	// Final means that Perlica no longer tries to send the message.
	Final bool `json:"final,omitempty"`
}

// CardClosed is the payload of service.question_closed: the asked contacts are told how the question ended.
type CardClosed struct {
	How string `json:"how"`
}

// TeamQuestion is the payload of service.team_question: a question of a team's worker that the bridge will show to its
// contacts.
type TeamQuestion struct {
	Worker string `json:"worker"`
	Input  string `json:"input"`
	// Sender is the sender of the input. It is empty if the input has no valid signature of its sender.
	Sender string `json:"sender,omitempty"`
	// Project is the project of the input. It is empty if the input has no valid signature of its sender.
	Project string `json:"project,omitempty"`
	// ID is the id that the worker uses for the question.
	ID       string          `json:"id"`
	Question json.RawMessage `json:"question"`
	Asked    time.Time       `json:"asked"` // by the hub's clock
}

// Notified is the payload of notify.started, notify.sent and notify.failed. It describes one attempt to deliver a
// notification.
type Notified struct {
	// Cause is the number of the event that caused the notification.
	Cause event.Seq `json:"cause"`
	// Kind is the kind of the cause, such as "question".
	Kind string `json:"kind"`
	// Target is the digest of the target's address. To names the target without its secret parts.
	Target  string `json:"target"`
	To      string `json:"to"`
	Attempt int    `json:"attempt"`
	Error   string `json:"error,omitempty"`
	// Unknown means that the target may have accepted the notification.
	Unknown bool `json:"unknown,omitempty"`
	// Final means that Perlica no longer tries to send the notification.
	Final bool `json:"final,omitempty"`
	// Next is the time of the next attempt after a failed one.
	Next time.Time `json:"next_attempt,omitzero"`
}

// ServedProject is the payload of service.project_added and service.project_removed: a bot serves a further project, or
// serves it no longer.
type ServedProject struct {
	// Home is the path of the log of the project with the bot. This bot also serves Project.
	Home string `json:"home"`
	// Project is the path of the project's folder.
	Project string `json:"project"`
	Context string `json:"context"`
	Log     string `json:"log"`
	By      string `json:"by"`
}

// ProjectChosen is the payload of service.project_chosen: a contact has chosen the project that gets its messages.
type ProjectChosen struct {
	Home string `json:"home"`
	Peer
	// Log is the path of the chosen project's log.
	Log string `json:"log"`
}

// MessageRouted is the payload of service.message_routed. It names the project of a message, before that project has
// the message.
type MessageRouted struct {
	Home    string `json:"home"`
	Channel string `json:"channel"`
	// Message is the platform's id of the message.
	Message string `json:"message"`
	// Log is the path of the log of the project that gets the message.
	Log string `json:"log"`
}

// ChannelRead is the payload of service.channel_read: the bot has read the channel up to the position Cursor, for all
// its projects.
type ChannelRead struct {
	Home    string `json:"home"`
	Channel string `json:"channel"`
	Cursor  string `json:"cursor"`
}
