// Package event defines an event: its ids, its type, its header, the leaf hash of the header, and
// its JSON.
//
// The package promises that every later version computes the leaf of a stored event in the same way. One table has a
// row for each type of event. The row contains all properties that depend on the type alone: see [Row]. The package
// does not interpret payloads.
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

	"github.com/perlica/perlica/eventlog/message"
)

// Seq is the number of an event in its log. The first event has Seq 1, and no number is missing.
type Seq int64

// These identifiers connect events with each other. All of them are opaque. Perlica uses UUIDs.
type (
	// SessionID identifies a session of Perlica.
	SessionID string
	// ConversationID is the id that the agent gave to its own session.
	ConversationID string
	// RunID identifies a run: one input and its one outcome.
	RunID string
	// TraceID identifies a trace of OpenTelemetry. It has 32 hexadecimal digits.
	TraceID string
	// InteractionID identifies one question.
	InteractionID string
	// InputID identifies one input. Perlica never calls the agent twice for the same InputID.
	InputID string
)

// Class says whether an event is a frame or a fact.
type Class string

const (
	// Frame is the class of a line that the agent or Perlica sent. The payload is the line itself.
	Frame Class = "frame"
	// Fact is the class of an event from which Perlica may build a view. The payload is a JSON object.
	Fact Class = "fact"
)

// Refs names the session, the run and the other objects that an event concerns. An empty field does
// not apply.
type Refs struct {
	Session      SessionID      `db:"session_id" json:"session_id,omitempty"`
	Conversation ConversationID `db:"conversation_id" json:"conversation_id,omitempty"`
	Run          RunID          `db:"run_id" json:"run_id,omitempty"`
	Trace        TraceID        `db:"trace_id" json:"trace_id,omitempty"`
	Interaction  InteractionID  `db:"interaction_id" json:"interaction_id,omitempty"`
	Input        InputID        `db:"input_id" json:"input_id,omitempty"`
}

// Texts returns the texts of the header, except the id, in the order of the header.
func (e *Event) Texts() [11]string {
	return [...]string{string(e.Type), string(e.Class), e.Actor, e.Writer, e.Context, string(e.Session),
		string(e.Conversation), string(e.Run), string(e.Trace), string(e.Interaction), string(e.Input)}
}

// SetTexts sets the fields that Texts returns.
func (e *Event) SetTexts(t [11]string) {
	e.Type, e.Class, e.Actor, e.Writer, e.Context = Type(t[0]), Class(t[1]), t[2], t[3], t[4]
	e.Refs = Refs{Session: SessionID(t[5]), Conversation: ConversationID(t[6]), Run: RunID(t[7]), Trace: TraceID(t[8]),
		Interaction: InteractionID(t[9]), Input: InputID(t[10])}
}

// Event is one entry of the log. The caller sets Type, Class, Actor, Refs and Payload. The log sets
// the other fields when it writes the event.
type Event struct {
	Seq   Seq
	ID    string // UUIDv7
	Time  time.Time
	Type  Type
	Class Class
	// Actor is the cause of the event: "user", "agent", "perlica" or "policy".
	Actor string
	// Writer identifies the open log through which the event was written. Each process that opens the log has its own
	// Writer.
	Writer  string
	Context string
	Refs

	// Payload is nil if this event was read without its payload. Withheld is then Pruned, Masked, Missing or Damaged.
	// Otherwise Withheld is empty. PayloadLen and PayloadSHA256 are always set.
	Payload       []byte
	Withheld      string
	PayloadLen    int64
	PayloadSHA256 [sha256.Size]byte

	// LeafHash is the stored leaf hash. To check the event, compare LeafHash with Leaf.
	LeafHash tlog.Hash
}

// These are the values of Event.Withheld.
const (
	// Pruned means that pruning removed the payload from the log.
	Pruned = "pruned"
	// Masked means that an export left the payload out because it seemed to contain a secret.
	Masked = "masked"

	// Missing means that the payload is absent, and no event explains why.
	Missing = "missing"
	// Damaged means that the event does not match its recorded hashes; see DamagedError.
	Damaged = "damaged"
)

// A DamagedError says that an event differs from the recorded event. If Header, Missing and Root are false, the
// payload differs.
type DamagedError struct {
	Seq Seq
	// Header is true if the header differs.
	Header bool
	// Missing is true if the event is absent, although the log or a checkpoint covers later events.
	Missing bool
	// Root is true if the root of the events up to Seq differs from the root in their checkpoint.
	Root bool
}

// These are the sentences about a damaged event.
var (
	errMissing = message.New("event.missing", "event %d is missing")
	errRoot    = message.New("event.other-root", "the hash of the events up to %d is not the one that their checkpoint signs")
	errPayload = message.New("event.payload-differs", "the payload of event %d does not have its recorded hash")
	errHeader  = message.New("event.header-differs", "the header of event %d does not have its recorded hash")
	damagedRow = message.New("event.damaged", "DAMAGED: %s; perlica log verify")
)

func (e *DamagedError) Error() string { return e.Tell().Text }

// Tell returns the error as a sentence.
func (e *DamagedError) Tell() *message.Text {
	form := errPayload
	switch {
	case e.Missing:
		form = errMissing
	case e.Root:
		form = errRoot
	case e.Header:
		form = errHeader
	}
	return form.With(int64(e.Seq))
}

// Row returns the line that Perlica shows instead of a damaged event.
func (e *DamagedError) Row() *message.Text { return damagedRow.With(e) }

// Check compares the header with the stored leaf, and the payload with the hash in the header. It
// returns nil if both match.
func (e *Event) Check() *DamagedError {
	switch {
	case e.Leaf() != e.LeafHash:
		return &DamagedError{Seq: e.Seq, Header: true}
	case e.Payload != nil && !e.PayloadMatches():
		return &DamagedError{Seq: e.Seq}
	}
	return nil
}

// Hide removes the payload from an event that Check found to be damaged, and sets Withheld to Damaged. If the header
// does not match the leaf, Hide also removes every field of the header except Seq.
func (e *Event) Hide() {
	if e.Leaf() != e.LeafHash {
		*e = Event{Seq: e.Seq, LeafHash: e.LeafHash}
	}
	e.Payload, e.Withheld = nil, Damaged
}

// Damage returns the damage of an event on which Hide was called, otherwise nil.
func (e *Event) Damage() *DamagedError {
	if e.Withheld != Damaged {
		return nil
	}
	return &DamagedError{Seq: e.Seq, Header: e.Leaf() != e.LeafHash}
}

// NewFact returns a fact. The payload is v as JSON. NewFact panics if v cannot be encoded. That is a programming
// error, because payloads are structs of plain fields.
func NewFact(t Type, actor string, refs Refs, v any) Event {
	payload, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("eventlog: payload of %s: %v", t, err))
	}
	return Event{Type: t, Class: Fact, Actor: actor, Refs: refs, Payload: payload}
}

// Decode decodes the payload of a fact into v.
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

// leafFormat is the first field of every leaf, so no other structure has the same hash.
const leafFormat = "perlica event 1"

// Leaf returns the RFC 6962 leaf hash of the event's header:
//
//	SHA-256(0x00 || header)
//
// The header is the concatenation of the fields below. Each field is a four-byte big-endian length
// followed by that many bytes. The fields are the text "perlica event 1"; seq in decimal; event_id;
// time in nanoseconds since the Unix epoch, in decimal; type; class; actor; writer; context_id;
// session_id; conversation_id; run_id; trace_id; interaction_id; input_id; the length of the
// payload in decimal; the SHA-256 of the payload, raw.
func (e *Event) Leaf() tlog.Hash {
	var scratch [512]byte
	return tlog.RecordHash(e.AppendHeader(scratch[:0]))
}

// PayloadMatches reports whether the payload has the length and the hash in the header.
func (e *Event) PayloadMatches() bool {
	return int64(len(e.Payload)) == e.PayloadLen && sha256.Sum256(e.Payload) == e.PayloadSHA256
}

// AppendHeader appends the header to b. Leaf hashes the header.
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

// appendField appends the text s as a field of a header.
func appendField(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

// appendInt appends the number n as a field of a header.
func appendInt(b []byte, n int64) []byte {
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], n, 10)
	b = binary.BigEndian.AppendUint32(b, uint32(len(d)))
	return append(b, d...)
}

// Reader reads the events of a log. The log is a file on this machine or a copy on a team's hub. Several goroutines
// may call its methods at the same time.
type Reader interface {
	// Events yields the selected events. The oldest comes first unless q.Newest is true. After an error, Events
	// yields nothing further.
	Events(ctx context.Context, q Query) iter.Seq2[Event, error]
	// Last returns the newest event that the query selects. ok is false if the query selects no
	// event.
	Last(ctx context.Context, q Query) (e Event, ok bool, err error)
}

// Query selects events. A zero field selects everything.
type Query struct {
	// After and Until select the events with After < Seq <= Until.
	After       Seq
	Until       Seq
	ID          string
	Types       []Type
	Class       Class
	Session     SessionID
	Run         RunID
	Interaction InteractionID
	Input       InputID
	// Since and Before select the events with Since <= Time < Before.
	Since  time.Time
	Before time.Time
	// Gone selects only events without a payload.
	Gone  bool
	Limit int
	// Newest makes Events yield the newest event first.
	Newest bool
}

// OnlyFacts reports whether q selects only facts, because of its class or its types. An unknown type counts as the
// type of a fact.
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

// Selects reports whether q selects e. It ignores Limit.
func (q Query) Selects(e *Event) bool {
	switch {
	case e.Seq <= q.After, q.Until > 0 && e.Seq > q.Until:
	case q.ID != "" && e.ID != q.ID, q.Class != "" && e.Class != q.Class, len(q.Types) > 0 &&
		!slices.Contains(q.Types, e.Type):
	case !q.Since.IsZero() && e.Time.Before(q.Since), !q.Before.IsZero() && !e.Time.Before(q.Before):
	case q.Gone && e.Withheld == "":
	default:
		return q.selects(e.Refs)
	}
	return false
}

// selects compares the references of an event with q.
func (q Query) selects(r Refs) bool {
	return (q.Session == "" || r.Session == q.Session) && (q.Run == "" || r.Run == q.Run) &&
		(q.Interaction == "" || r.Interaction == q.Interaction) && (q.Input == "" || r.Input == q.Input)
}
