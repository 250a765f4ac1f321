// Package event is what an event is: its ids, its types, its header and the leaf that the
// header hashes to, and its JSON.
//
// It promises that a leaf, once written, is computed the same way by every later version, and
// that all that depends on an event's type alone stands in one table, a row for each type:
// see [Row]. It refuses to interpret payloads.
package event

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// Seq is an event's place in its log. The first event has Seq 1; there are no gaps.
type Seq int64

// The identifiers that tie events together. All are opaque; Perlica makes UUIDs.
type (
	SessionID      string // Perlica's session
	ConversationID string // the agent's own session id
	RunID          string // one input on its way to one outcome
	TraceID        string // 32 hexadecimal digits, as OpenTelemetry has them
	InteractionID  string // one question
	InputID        string // one thing to be answered; never called twice
)

// Class says what an event is good for.
type Class string

const (
	Frame Class = "frame" // a line as it crossed the wire; the payload is the line
	Fact  Class = "fact"  // what a view may depend on; the payload is a JSON object
)

// Refs ties an event to what it is about; a field that does not apply is empty.
type Refs struct {
	Session      SessionID      `db:"session_id" json:"session_id,omitempty"`
	Conversation ConversationID `db:"conversation_id" json:"conversation_id,omitempty"`
	Run          RunID          `db:"run_id" json:"run_id,omitempty"`
	Trace        TraceID        `db:"trace_id" json:"trace_id,omitempty"`
	Interaction  InteractionID  `db:"interaction_id" json:"interaction_id,omitempty"`
	Input        InputID        `db:"input_id" json:"input_id,omitempty"`
}

// Event is one entry of the log. Type, Class, Actor, Refs and Payload are the
// caller's; the log fills in the rest when it writes the event.
type Event struct {
	Seq     Seq
	ID      string // UUIDv7
	Time    time.Time
	Type    Type
	Class   Class
	Actor   string // who caused it: "user", "agent", "perlica", "policy"
	Writer  string // the log handle that wrote it, one a process
	Context string
	Refs

	// Payload is nil if it is withheld; its length and hash stay. Withheld says why there is
	// none, in one of the words below, and is empty if there is one.
	Payload       []byte
	Withheld      string
	PayloadLen    int64
	PayloadSHA256 [sha256.Size]byte

	// LeafHash is the leaf as stored; compare it with Leaf to check the event.
	LeafHash tlog.Hash
}

// Why an event has no payload: see Event.Withheld.
const (
	Pruned = "pruned" // removed from the log
	Masked = "masked" // left out of an export, because it seemed to hold a secret

	Missing = "missing" // nothing says why
	Damaged = "damaged" // the event does not have its recorded hashes; see DamagedError
)

// A DamagedError says that an event is not the event that was recorded.
type DamagedError struct {
	Seq    Seq
	Header bool // its header is another one; otherwise its payload
}

func (e *DamagedError) Error() string {
	part := "payload"
	if e.Header {
		part = "header"
	}
	return fmt.Sprintf("the %s of event %d does not have its recorded hash", part, e.Seq)
}

// Row is the line that stands in the place of a damaged event wherever the log is shown.
func (e *DamagedError) Row() string { return "DAMAGED: " + e.Error() + "; perlica log verify" }

// Check compares the header with the stored leaf, and the payload with the hash in the header.
// It returns nil if both match.
func (e *Event) Check() *DamagedError {
	switch {
	case e.Leaf() != e.LeafHash:
		return &DamagedError{Seq: e.Seq, Header: true}
	case e.Payload != nil && !e.PayloadMatches():
		return &DamagedError{Seq: e.Seq}
	}
	return nil
}

// Hide takes the payload from an event that Check found to be damaged, and marks the event.
func (e *Event) Hide() { e.Payload, e.Withheld = nil, Damaged }

// Damage returns the damage of an event that Hide marked, otherwise nil.
func (e *Event) Damage() *DamagedError {
	if e.Withheld != Damaged {
		return nil
	}
	return &DamagedError{Seq: e.Seq, Header: e.Leaf() != e.LeafHash}
}

// NewFact returns a fact whose payload is v as JSON. It panics if v cannot be
// encoded, which is a mistake in the program: payloads are structs of plain fields.
func NewFact(t Type, actor string, refs Refs, v any) Event {
	payload, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("eventlog: payload of %s: %v", t, err))
	}
	return Event{Type: t, Class: Fact, Actor: actor, Refs: refs, Payload: payload}
}

// Decode stores the payload of a fact in v.
func (e Event) Decode(v any) error {
	if damage := e.Damage(); damage != nil {
		return damage
	}
	if e.Payload == nil {
		return fmt.Errorf("eventlog: event %d (%s): payload withheld", e.Seq, e.Type)
	}
	if err := json.Unmarshal(e.Payload, v); err != nil {
		return fmt.Errorf("eventlog: event %d (%s): %w", e.Seq, e.Type, err)
	}
	return nil
}

// leafFormat is the first field of every leaf, so that no other structure can
// ever hash to one.
const leafFormat = "perlica event 1"

// Leaf returns the RFC 6962 leaf hash of the event's header:
//
//	SHA-256(0x00 || header)
//
// where header is the concatenation of these fields, each as a four-byte big-endian
// length followed by that many bytes: the text "perlica event 1"; seq in decimal;
// event_id; time in nanoseconds since the Unix epoch, in decimal; type; class; actor;
// writer; context_id; session_id; conversation_id; run_id; trace_id; interaction_id;
// input_id; the payload's length in decimal; the payload's SHA-256, raw.
func (e *Event) Leaf() tlog.Hash {
	var scratch [512]byte
	return tlog.RecordHash(e.AppendHeader(scratch[:0]))
}

// PayloadMatches reports whether the payload has the length and the hash that the header names.
func (e *Event) PayloadMatches() bool {
	return int64(len(e.Payload)) == e.PayloadLen && sha256.Sum256(e.Payload) == e.PayloadSHA256
}

// AppendHeader appends the header, which Leaf hashes, to b.
func (e *Event) AppendHeader(b []byte) []byte {
	b = appendField(b, leafFormat)
	b = appendInt(b, int64(e.Seq))
	b = appendField(b, e.ID)
	b = appendInt(b, e.Time.UnixNano())
	b = appendField(b, string(e.Type))
	b = appendField(b, string(e.Class))
	b = appendField(b, e.Actor)
	b = appendField(b, e.Writer)
	b = appendField(b, e.Context)
	b = appendField(b, string(e.Session))
	b = appendField(b, string(e.Conversation))
	b = appendField(b, string(e.Run))
	b = appendField(b, string(e.Trace))
	b = appendField(b, string(e.Interaction))
	b = appendField(b, string(e.Input))
	b = appendInt(b, e.PayloadLen)
	b = binary.BigEndian.AppendUint32(b, sha256.Size)
	return append(b, e.PayloadSHA256[:]...)
}

// appendField appends a text as a field of a header.
func appendField(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

// appendInt appends a number as a field of a header.
func appendInt(b []byte, n int64) []byte {
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], n, 10)
	b = binary.BigEndian.AppendUint32(b, uint32(len(d)))
	return append(b, d...)
}

// Reader reads the events of a log, wherever it is kept: in a file of this machine's, or as a copy on a team's hub. Its
// methods may be called from several goroutines.
type Reader interface {
	// Events yields the events that the query selects, the oldest first unless it asks for the newest. The first error is
	// the last that is yielded.
	Events(ctx context.Context, q Query) iter.Seq2[Event, error]
	// Last returns the newest event that the query selects; ok is false if there is none.
	Last(ctx context.Context, q Query) (e Event, ok bool, err error)
}

// Query selects events. A field that is zero selects everything.
type Query struct {
	After       Seq // events behind this one
	Until       Seq // up to and including this one
	ID          string
	Types       []Type
	Class       Class
	Session     SessionID
	Run         RunID
	Interaction InteractionID
	Input       InputID
	Since       time.Time // not older than
	Before      time.Time // older than
	Gone        bool      // whose payload is not there any more
	Limit       int
	Newest      bool // newest first
}

// OnlyFacts reports whether q selects nothing but facts, by its class or its types. A type that
// is not known counts as a fact's.
func (q Query) OnlyFacts() bool {
	if q.Class != "" {
		return q.Class == Fact
	}
	for _, t := range q.Types {
		if t.Class() == Frame {
			return false
		}
	}
	return len(q.Types) > 0
}

// Selects reports whether q selects e, but for its Limit.
func (q Query) Selects(e *Event) bool {
	switch {
	case e.Seq <= q.After, q.Until > 0 && e.Seq > q.Until:
	case q.ID != "" && e.ID != q.ID, q.Class != "" && e.Class != q.Class, len(q.Types) > 0 && !slices.Contains(q.Types, e.Type):
	case !q.Since.IsZero() && e.Time.Before(q.Since), !q.Before.IsZero() && !e.Time.Before(q.Before):
	case q.Gone && e.Withheld == "":
	default:
		return q.selects(e.Refs)
	}
	return false
}

// selects is Selects as to what an event is about.
func (q Query) selects(r Refs) bool {
	return (q.Session == "" || r.Session == q.Session) && (q.Run == "" || r.Run == q.Run) &&
		(q.Interaction == "" || r.Interaction == q.Interaction) && (q.Input == "" || r.Input == q.Input)
}
