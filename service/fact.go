package service

import (
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service/channel"
)

// The payloads of the events service.*. Everything that the bridge knows follows from them.
type (
	startedFact struct {
		PID      int      `json:"pid"`
		Version  string   `json:"version"`
		Channels []string `json:"channels"`
	}
	stoppedFact struct {
		Why string `json:"why"`
	}
	channelFact struct {
		Channel string `json:"channel"`
		Error   string `json:"error,omitempty"`
	}
	cursorFact struct {
		Channel string `json:"channel"`
		Cursor  string `json:"cursor"`
	}
	pairingFact struct {
		ID      string    `json:"id"`
		Salt    []byte    `json:"salt"`
		Hash    []byte    `json:"hash"` // SHA-256 of salt and code
		Rights  Rights    `json:"rights"`
		Expires time.Time `json:"expires"`
		By      string    `json:"by"`
	}
	attemptFact struct {
		Pairing string `json:"pairing"`
		contactFact
	}
	contactFact struct {
		Channel string `json:"channel"`
		Contact string `json:"contact"`
	}
	pairedFact struct {
		contactFact
		Chat    string `json:"chat"`
		Name    string `json:"name,omitempty"`
		Rights  Rights `json:"rights"`
		Pairing string `json:"pairing,omitempty"`
		Message string `json:"message,omitempty"` // the platform's id of the one with the code
	}
	unpairedFact struct {
		contactFact
		By string `json:"by"`
	}
	strangerFact struct {
		contactFact
		Since int `json:"unrecorded"` // how many were ignored without an event before this one
	}
	receivedFact struct {
		contactFact
		Chat     string              `json:"chat"`
		Name     string              `json:"name,omitempty"`
		Message  string              `json:"message"` // the platform's id
		Text     string              `json:"text"`
		Files    []string            `json:"files,omitempty"` // paths
		Sent     time.Time           `json:"sent"`
		Kind     kind                `json:"kind"`
		Question event.InteractionID `json:"question,omitempty"` // that it answers
		Option   string              `json:"option,omitempty"`   // with this one
		Word     string              `json:"word,omitempty"`
		Always   bool                `json:"always,omitempty"`
		Digest   string              `json:"input_sha256,omitempty"` // see Bridge.digest
	}
	finishedFact struct {
		How    ending `json:"how"`
		Detail string `json:"detail,omitempty"`
	}
	queuedFact struct {
		contactFact
		ID       string              `json:"id"`
		Chat     string              `json:"chat"`
		Kind     outKind             `json:"kind"`
		Text     string              `json:"text"` // in the channel's format
		Buttons  []channel.Button    `json:"buttons,omitempty"`
		ReplyTo  string              `json:"reply_to,omitempty"`
		File     string              `json:"file,omitempty"`   // the whole answer under this name
		Target   string              `json:"target,omitempty"` // the id of the queued message that this one edits
		Question event.InteractionID `json:"question,omitempty"`
	}
	sendFact struct {
		ID       string `json:"id"`
		Platform string `json:"platform_id,omitempty"`
		Attempt  int    `json:"attempt,omitempty"`
		Error    string `json:"error,omitempty"`
		Unknown  bool   `json:"unknown,omitempty"` // the platform may have taken it
		Final    bool   `json:"final,omitempty"`   // it is given up
	}
	cardFact struct {
		How string `json:"how"`
	}
)

// kind is what a message is.
type kind string

const (
	kindInput   kind = "input"   // one call
	kindCommand kind = "command" // a slash command
	kindAnswer  kind = "answer"  // of a question
	kindRefused kind = "refused" // nothing is done but saying why; Word holds it
)

// ending is what became of a message.
type ending string

const (
	endAnswered ending = "answered"
	endFailed   ending = "failed"
	endUnknown  ending = "unknown" // it is not known what became of its call
	endDone     ending = "done"    // of a command, of an answer that counts
	endRefused  ending = "refused"
)

// outKind is what a message to a contact is.
type outKind string

const (
	outAck    outKind = "ack"
	outReply  outKind = "reply"
	outCard   outKind = "card"
	outNotice outKind = "note"
	outStatus outKind = "status"
	outEdit   outKind = "edit" // of a message that was sent
)

// once reports whether a message of this kind is better lost than sent twice.
func (k outKind) once() bool { return k == outAck || k == outStatus }
