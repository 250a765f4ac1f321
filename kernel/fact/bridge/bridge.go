// Package bridge is what the facts of the messaging bridge say: for each type of event that
// package service writes, the struct that is its payload. Everything that the bridge knows follows
// from them.
//
// It promises what package fact promises: a field, once written, keeps its name in JSON and its
// meaning. It decides nothing and writes nothing.
package bridge

import (
	"encoding/json"
	"time"

	"github.com/perlica/perlica/eventlog/event"
)

// Peer is somebody on a channel. Alone it is the payload of service.contact_session.
type Peer struct {
	Channel string `json:"channel"`
	Contact string `json:"contact"` // the platform's id
}

// Started is the payload of service.started.
type Started struct {
	PID      int      `json:"pid"`
	Version  string   `json:"version"`
	Channels []string `json:"channels"`
}

// Stopped is the payload of service.stopped.
type Stopped struct {
	Why string `json:"why"`
}

// Channel is the payload of service.channel_failed and service.channel_restored.
type Channel struct {
	Channel string `json:"channel"`
	Error   string `json:"error,omitempty"`
}

// Cursor is the payload of service.cursor_moved.
type Cursor struct {
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

// Attempt is the payload of service.pairing_attempted.
type Attempt struct {
	Pairing string `json:"pairing"`
	Peer
}

// Paired is the payload of service.contact_paired.
type Paired struct {
	Peer
	Chat    string  `json:"chat"`
	Name    string  `json:"name,omitempty"`
	Rights  []Right `json:"rights"`
	Pairing string  `json:"pairing,omitempty"`
	Message string  `json:"message,omitempty"` // the platform's id of the one with the code
}

// Unpaired is the payload of service.contact_unpaired.
type Unpaired struct {
	Peer
	By string `json:"by"`
}

// Changed is the payload of service.contact_changed. What is absent stays as it was.
type Changed struct {
	Peer
	Rights   []Right `json:"rights,omitempty"`
	Language string  `json:"language,omitempty"`
	Follows  *bool   `json:"follows,omitempty"` // it is told what happens in the sessions of others
	By       string  `json:"by"`
}

// Stranger is the payload of service.stranger_ignored.
type Stranger struct {
	Peer
	Since int `json:"unrecorded"` // how many were ignored without an event before this one
}

// Kind is what a message of a contact is.
type Kind string

// Received is the payload of service.message_received.
type Received struct {
	Peer
	Chat     string              `json:"chat"`
	Name     string              `json:"name,omitempty"`
	Message  string              `json:"message"` // the platform's id
	Text     string              `json:"text"`
	Files    []string            `json:"files,omitempty"`  // paths
	Remote   []File              `json:"remote,omitempty"` // that are still on the platform
	Sent     time.Time           `json:"sent"`
	Kind     Kind                `json:"kind"`
	Question event.InteractionID `json:"question,omitempty"` // that it answers
	Option   string              `json:"option,omitempty"`   // with this one
	Word     string              `json:"word,omitempty"`
	Always   bool                `json:"always,omitempty"`
	Digest   string              `json:"input_sha256,omitempty"` // of the input, as llm.requested has it
	Held     bool                `json:"held,omitempty"`         // it is not called before its sender confirms it
	About    event.InputID       `json:"about,omitempty"`        // the message that this one confirms or takes back
}

// File is a file of a message that is still on the platform.
type File struct {
	ID   string `json:"id"` // the platform's
	Name string `json:"name"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// Fetched is the payload of service.files_fetched. It takes the place of what service.message_received
// says of the files, and of the text: that names the files that will not be had.
type Fetched struct {
	Text  string   `json:"text"`
	Files []string `json:"files,omitempty"` // paths
}

// Ending is what became of a message of a contact.
type Ending string

// Finished is the payload of service.message_finished.
type Finished struct {
	How    Ending `json:"how"`
	Detail string `json:"detail,omitempty"`
}

// OutKind is what a message to a contact is.
type OutKind string

// Button is a choice that a channel shows below a message.
type Button struct {
	Label string
	Data  string // comes back when it is pressed; at most 64 bytes
}

// Queued is the payload of service.message_queued.
type Queued struct {
	Peer
	ID       string              `json:"id"`
	Chat     string              `json:"chat"`
	Kind     OutKind             `json:"kind"`
	Text     string              `json:"text"` // in the channel's format
	Buttons  []Button            `json:"buttons,omitempty"`
	ReplyTo  string              `json:"reply_to,omitempty"`
	React    string              `json:"react,omitempty"`  // the emoji on the message ReplyTo that stands for the text where it can
	File     string              `json:"file,omitempty"`   // the whole answer, or, of a card, the whole question, under this name
	Part     int                 `json:"part,omitempty"`   // the file is this piece of the answer that is no text, from 1
	Target   string              `json:"target,omitempty"` // the id of the queued message that this one edits
	Question event.InteractionID `json:"question,omitempty"`
}

// Send is the payload of service.send_started, service.message_sent and service.send_failed.
type Send struct {
	ID       string `json:"id"`
	Platform string `json:"platform_id,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Error    string `json:"error,omitempty"`
	Unknown  bool   `json:"unknown,omitempty"` // the platform may have taken it
	Final    bool   `json:"final,omitempty"`   // it is given up
}

// CardClosed is the payload of service.question_closed.
type CardClosed struct {
	How string `json:"how"`
}

// TeamQuestion is the payload of service.team_question.
type TeamQuestion struct {
	Worker   string          `json:"worker"`
	Input    string          `json:"input"`
	Sender   string          `json:"sender,omitempty"`  // of the input; empty: it is not signed by whom it names
	Project  string          `json:"project,omitempty"` // likewise
	ID       string          `json:"id"`                // as its worker has it
	Question json.RawMessage `json:"question"`
	Asked    time.Time       `json:"asked"` // by the hub's clock
}

// Served is the payload of service.project_added and service.project_removed.
type Served struct {
	Home    string `json:"home"`    // the log of the project whose bot it is
	Project string `json:"project"` // its folder
	Context string `json:"context"`
	Log     string `json:"log"`
	By      string `json:"by"`
}

// Chosen is the payload of service.project_chosen.
type Chosen struct {
	Home string `json:"home"`
	Peer
	Log string `json:"log"` // of the project
}

// Routed is the payload of service.message_routed.
type Routed struct {
	Home    string `json:"home"`
	Channel string `json:"channel"`
	Message string `json:"message"` // the platform's id
	Log     string `json:"log"`     // of the project
}

// Read is the payload of service.channel_read.
type Read struct {
	Home    string `json:"home"`
	Channel string `json:"channel"`
	Cursor  string `json:"cursor"`
}
