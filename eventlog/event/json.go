package event

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/strict"
)

// MarshalJSON writes the event as one object. The members have the column names of the log. The payload determines
// the name of one member:
//
//   - "payload" contains a fact's payload if encoding/json does not change its bytes.
//   - "payload_base64" contains any other payload of a fact.
//   - "line" contains a frame's line as a string.
//   - "line_base64" contains a frame's line that is not UTF-8.
//   - "withheld" contains the reason if the event has no payload.
//
// An object with an empty payload has none of these members.
func (e Event) MarshalJSON() ([]byte, error) {
	v := struct {
		Seq     Seq    `json:"seq"`
		ID      string `json:"event_id"`
		Time    string `json:"ts"`
		Type    Type   `json:"type"`
		Class   Class  `json:"class"`
		Actor   string `json:"actor"`
		Writer  string `json:"writer"`
		Context string `json:"context_id"`
		Refs
		Len           int64           `json:"payload_len"`
		SHA256        string          `json:"payload_sha256"`
		Leaf          string          `json:"leaf"`
		Payload       json.RawMessage `json:"payload,omitempty"`
		PayloadBase64 []byte          `json:"payload_base64,omitempty"`
		Line          string          `json:"line,omitempty"`
		LineBase64    []byte          `json:"line_base64,omitempty"`
		Withheld      string          `json:"withheld,omitempty"`
	}{
		Seq: e.Seq, ID: e.ID, Time: strict.FormatTime(e.Time), Type: e.Type, Class: e.Class,
		Actor: e.Actor, Writer: e.Writer, Context: e.Context, Refs: e.Refs,
		Len: e.PayloadLen, SHA256: hex.EncodeToString(e.PayloadSHA256[:]), Leaf: e.LeafHash.String(),
		Withheld: e.Withheld,
	}
	switch {
	case e.Class == Fact && survivesJSON(e.Payload):
		v.Payload = e.Payload
	case e.Class == Fact:
		v.PayloadBase64 = e.Payload
	case utf8.Valid(e.Payload):
		v.Line = string(e.Payload)
	default:
		v.LineBase64 = e.Payload
	}
	return json.Marshal(v)
}

// survivesJSON reports whether encoding/json copies the bytes unchanged into another JSON text. encoding/json removes
// blanks and escapes <, > and &, and the hash would no longer match.
func survivesJSON(b []byte) bool {
	out, err := json.Marshal(json.RawMessage(b))
	return err == nil && bytes.Equal(out, b) && utf8.Valid(b)
}

// UnmarshalJSON parses the output of MarshalJSON. It refuses a member that is unknown, duplicate, null or of another
// type. It refuses an object without a required member; only the ids are optional. If payload_len is above zero, the
// object must have exactly one of payload, payload_base64, line, line_base64 and withheld. Otherwise it must have
// none of them. UnmarshalJSON does not check the hashes.
func (e *Event) UnmarshalJSON(b []byte) error {
	var v Event
	var ts, sum, leaf string
	var line strict.Text // nil means that the member is absent
	var payload json.RawMessage
	var payload64, line64 []byte
	err := strict.Object(b, map[string]any{
		"seq": &v.Seq, "event_id": &v.ID, "ts": &ts, "type": &v.Type, "class": &v.Class,
		"actor": &v.Actor, "writer": &v.Writer, "context_id": &v.Context,
		"payload_len": &v.PayloadLen, "payload_sha256": &sum, "leaf": &leaf,
	}, map[string]any{
		"session_id": &v.Session, "conversation_id": &v.Conversation, "run_id": &v.Run,
		"trace_id": &v.Trace, "interaction_id": &v.Interaction, "input_id": &v.Input,
		"payload": &payload, "payload_base64": &payload64, "line": &line, "line_base64": &line64,
		"withheld": &v.Withheld,
	})
	if err != nil {
		return err
	}
	if v.Time, err = strict.Time(ts); err != nil {
		return err
	}
	if v.PayloadSHA256, err = strict.SHA256(sum); err != nil {
		return errors.New("payload_sha256 is no hash in hexadecimal")
	}
	if v.LeafHash, err = strict.Hash(leaf); err != nil {
		return errors.New("leaf is no hash in base64")
	}
	if err := v.setPayload(payload, payload64, line, line64); err != nil {
		return err
	}
	*e = v
	return nil
}

// setPayload checks the class, the reason and the sizes. It sets Payload to the one argument that is not nil.
func (e *Event) setPayload(payload json.RawMessage, payload64 []byte, line strict.Text, line64 []byte) error {
	if e.Class != Fact && e.Class != Frame {
		return fmt.Errorf("there is no class %q", e.Class)
	}
	if e.Withheld != "" && e.Withheld != Pruned && e.Withheld != Masked && e.Withheld != Missing {
		return fmt.Errorf("withheld is %q", e.Withheld)
	}
	if e.Seq < 1 || e.PayloadLen < 0 {
		return errors.New("seq and payload_len cannot be so small")
	}
	forms := 0
	if e.Withheld != "" {
		forms++
	}
	for _, form := range [][]byte{payload, payload64, line, line64} {
		if form != nil {
			forms++
			e.Payload = form
		}
	}
	switch {
	case forms > 1:
		return errors.New("the payload is there more than once")
	case forms == 0 && e.PayloadLen > 0:
		return errors.New("there is no payload, and not why")
	case e.PayloadLen == 0 && forms > 0:
		return errors.New("an empty payload is there")
	case e.PayloadLen == 0:
		e.Payload = []byte{}
	}
	return nil
}
