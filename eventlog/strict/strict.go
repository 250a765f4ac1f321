// Package strict parses the JSON of events and exports so strictly that every reader finds the same values. Unmarshal
// does the same for other JSON.
//
// The package promises that it accepts only one spelling of each value of an event. It refuses a member that is
// duplicate, null, unknown or in another case. It refuses another spelling of a time, a hash or a base64 text.
// encoding/json accepts all of these.
package strict

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
)

// FormatTime returns a time in the only spelling that Time accepts.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Time parses the output of FormatTime and nothing else.
func Time(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%q is no time", text)
	}
	back := time.Unix(0, t.UnixNano())
	if !back.Equal(t) || FormatTime(back) != text {
		return t, fmt.Errorf("%q is no time in UTC as the log has it", text)
	}
	return back, nil
}

// SHA256 parses a SHA-256 in lower-case hexadecimal.
func SHA256(text string) (sum [sha256.Size]byte, err error) {
	if len(text) != 2*len(sum) || strings.ToLower(text) != text {
		return sum, hex.ErrLength
	}
	_, err = hex.Decode(sum[:], []byte(text))
	return sum, err
}

// Hash parses a hash in its one base64 spelling.
func Hash(text string) (hash [sha256.Size]byte, err error) {
	b, err := base64Text(text)
	if err != nil {
		return hash, err
	}
	if len(b) != len(hash) {
		return hash, fmt.Errorf("%d bytes instead of %d", len(b), len(hash))
	}
	return [sha256.Size]byte(b), nil
}

// Object parses one JSON object. It stores the value of each member in the target with the member's name. The object
// must have all members in the list "must" and may have members in the list "may". Nothing may follow the object.
// Object refuses a member that is duplicate, null or in another case. encoding/json accepts these, and other programs
// parse them differently.
func Object(b []byte, must, may map[string]any) error {
	if !utf8.Valid(b) {
		return errors.New("it is not UTF-8")
	}
	d := jx.DecodeBytes(b) // The values share the memory of b, because a value may be large.
	switch {
	case d.Next() != jx.Object:
		return errors.New("it is no JSON object")
	case !json.Valid(b):
		return errors.New("it is not JSON, or something follows it, or its end is missing")
	}
	seen := make([]string, 0, 24)
	required := 0
	var bad error // bad is the reason why the value of a member is refused.
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

// Text is the content of a JSON string. It avoids a second copy of a large line.
type Text []byte

func unmarshalMember(value []byte, target any) error {
	switch t := target.(type) {
	case *json.RawMessage:
		*t = bytes.Clone(value)
		return nil
	case *Text:
		b, err := jx.DecodeBytes(value).StrAppend(make([]byte, 0, len(value)))
		if err != nil {
			return errors.New("it has the wrong type")
		}
		*t = b
		return nil
	case *[]byte: // must be in the one base64 spelling
		var text string
		if err := json.Unmarshal(value, &text); err != nil || text == "" {
			return errors.New("it is no base64 text")
		}
		b, err := base64Text(text)
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

// base64Text decodes base64 in its one spelling. The decoder alone would ignore newlines.
func base64Text(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("it is base64 with line ends")
	}
	return base64.StdEncoding.Strict().DecodeString(s)
}
