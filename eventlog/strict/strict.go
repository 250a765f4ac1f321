// Package strict reads the JSON of events and exports so that every reader finds the same in it.
//
// Unmarshal does the same for JSON that comes from outside.
//
// It promises of an event that a value has one form only: a member that is there twice, in another case,
// null or unknown is an error, as is a time, a hash or a base64 text in another spelling than
// the one that is written. encoding/json by itself takes all of these.
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

// FormatTime returns the one form of a time that Time reads.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Time reads what FormatTime writes, and nothing else.
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

// SHA256 reads a SHA-256 in its one hexadecimal form.
func SHA256(text string) (sum [sha256.Size]byte, err error) {
	if len(text) != 2*len(sum) || strings.ToLower(text) != text {
		return sum, hex.ErrLength
	}
	_, err = hex.Decode(sum[:], []byte(text))
	return sum, err
}

// Object reads one JSON object and nothing behind it into the targets that bear
// the names of its members. All of must have to be there. encoding/json by itself takes a
// member that is there twice, in another case, or null; others read such a text otherwise.
func Object(b []byte, must, may map[string]any) error {
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

// Text is a JSON string's bytes: a line may be large, and is not copied more than once.
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
	case *[]byte: // in the one base64 form
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

// base64Text reads the one base64 form of some bytes. The decoder itself skips line ends.
func base64Text(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("it is base64 with line ends")
	}
	return base64.StdEncoding.Strict().DecodeString(s)
}
