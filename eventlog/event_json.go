package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-faster/jx"

	"github.com/perlica/perlica/eventlog/evidence"
)

// MarshalJSON writes the event as one object with the column names of the log. The payload
// of a fact stands in "payload", as it is; one that would come back as other bytes than
// those whose hash is on the log in "payload_base64". A frame's line stands in "line" as a
// string, which gives its bytes back exactly; one that is not UTF-8 in "line_base64". Where
// there is no payload "withheld" says why. An empty payload has no member at all.
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
		Seq: e.Seq, ID: e.ID, Time: formatTime(e.Time), Type: e.Type, Class: e.Class,
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

// survivesJSON reports whether the bytes are JSON text that stays as it is within another:
// encoding/json takes out blanks and escapes <, > and &, and then the hash would not fit.
func survivesJSON(b []byte) bool {
	out, err := json.Marshal(json.RawMessage(b))
	return err == nil && bytes.Equal(out, b) && utf8.Valid(b)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// parseTime reads what formatTime writes, and nothing else.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%q is no time", text)
	}
	back := time.Unix(0, t.UnixNano())
	if !back.Equal(t) || formatTime(back) != text {
		return t, fmt.Errorf("%q is no time in UTC as the log has it", text)
	}
	return back, nil
}

// parseSum reads a SHA-256 in its one hexadecimal form.
func parseSum(text string) (sum [sha256.Size]byte, err error) {
	if len(text) != 2*len(sum) || strings.ToLower(text) != text {
		return sum, hex.ErrLength
	}
	_, err = hex.Decode(sum[:], []byte(text))
	return sum, err
}

// UnmarshalJSON reads what MarshalJSON writes. It is strict: a member that is unknown, is
// there twice, is null or has another type is an error, as is one that is missing, but for
// the ids that do not apply. There is exactly one of payload, payload_base64, line,
// line_base64 and withheld, and none of them if payload_len is zero. The hashes are read,
// not checked.
func (e *Event) UnmarshalJSON(b []byte) error {
	var v Event
	var ts, sum, leaf string
	var line lineText // nil if it is not there
	var payload json.RawMessage
	var payload64, line64 []byte
	err := unmarshalObject(b, map[string]any{
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
	if v.Time, err = parseTime(ts); err != nil {
		return err
	}
	if v.PayloadSHA256, err = parseSum(sum); err != nil {
		return errors.New("payload_sha256 is no hash in hexadecimal")
	}
	if v.LeafHash, err = evidence.ParseHash(leaf); err != nil {
		return errors.New("leaf is no hash in base64")
	}
	if err := v.place(payload, payload64, line, line64); err != nil {
		return err
	}
	*e = v
	return nil
}

// place puts the payload where it belongs, in whichever form it came.
func (e *Event) place(payload json.RawMessage, payload64 []byte, line lineText, line64 []byte) error {
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

// unmarshalObject reads one JSON object and nothing behind it into the targets that bear
// the names of its members. All of must have to be there. encoding/json by itself takes a
// member that is there twice, in another case, or null; others read such a text otherwise.
func unmarshalObject(b []byte, must, may map[string]any) error {
	if !utf8.Valid(b) {
		return errors.New("it is not UTF-8")
	}
	d := jx.DecodeBytes(b) // its values are pieces of b: one may be large
	switch {
	case d.Next() != jx.Object:
		return errors.New("it is no JSON object")
	case !json.Valid(b):
		return errors.New("it is not JSON, or something stands behind it, or its end is missing")
	}
	seen := make([]string, 0, 24)
	required := 0
	var bad error // what is wrong with a member that is JSON
	err := d.ObjBytes(func(d *jx.Decoder, key []byte) error {
		name := string(key)
		value, err := d.Raw()
		if err != nil {
			return err
		}
		target, ok := must[name]
		if ok {
			required++
		} else {
			target, ok = may[name]
		}
		if slices.Contains(seen, name) {
			bad = fmt.Errorf("it has %q twice", name)
		} else if !ok {
			bad = fmt.Errorf("it has the unknown member %q", name)
		} else if err := unmarshalMember(value, target); err != nil {
			bad = fmt.Errorf("%s: %w", name, err)
		}
		seen = append(seen, name)
		return bad
	})
	if bad != nil {
		return bad
	}
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	if required < len(must) {
		for _, name := range slices.Sorted(maps.Keys(must)) {
			if !slices.Contains(seen, name) {
				return fmt.Errorf("it has no %q", name)
			}
		}
	}
	return nil
}

// lineText is a JSON string's bytes: a line may be large, and is not copied more than once.
type lineText []byte

func unmarshalMember(value []byte, target any) error {
	switch t := target.(type) {
	case *json.RawMessage:
		*t = bytes.Clone(value)
		return nil
	case *lineText:
		b, err := jx.DecodeBytes(value).StrAppend(make([]byte, 0, len(value)))
		if err != nil {
			return errors.New("it has the wrong type")
		}
		*t = b
		return nil
	case *[]byte: // in the one base64 form
		var text string
		if err := json.Unmarshal(value, &text); err != nil || text == "" {
			return errors.New("it is no base64 text")
		}
		b, err := parseBase64(text)
		*t = b
		return err
	}
	if string(value) == "null" {
		return errors.New("it is null")
	}
	if err := json.Unmarshal(value, target); err != nil {
		return errors.New("it has the wrong type")
	}
	return nil
}

// parseBase64 reads the one base64 form of some bytes. The decoder itself skips line ends.
func parseBase64(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("it is base64 with line ends")
	}
	return base64.StdEncoding.Strict().DecodeString(s)
}
