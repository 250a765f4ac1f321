package strict

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-faster/jx"
)

// maxDepth is the maximum nesting of arrays and objects.
const maxDepth = 100

// Unmarshal parses one JSON value into v, as encoding/json does. It refuses a text that two programs may parse
// differently. Such a text has a duplicate member, a member in another case than in v, or half a surrogate pair.
// Unmarshal also refuses bytes that are not UTF-8, a number out of range, too many levels, and a second value.
// Unmarshal ignores members that v does not have. After an error v may have changed.
func Unmarshal(text []byte, v any) error {
	if err := check(text, reader{typ: reflect.TypeOf(v)}); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// UnmarshalObject parses an object as Unmarshal does. It also refuses members that v does not have.
func UnmarshalObject(text []byte, v any) error {
	if err := check(text, reader{typ: reflect.TypeOf(v), closed: true}); err != nil {
		return err
	}
	if text := strings.TrimLeft(string(text), " \t\r\n"); text[0] != '{' {
		return errors.New("it is not an object")
	}
	return json.Unmarshal(text, v)
}

// UnmarshalRepaired parses the text of another program as Unmarshal does. Half a surrogate pair and bytes that are not
// UTF-8 become U+FFFD, because a person's keyboard or a platform that cuts texts may make them.
func UnmarshalRepaired(text []byte, v any) error {
	text = bytes.ToValidUTF8(text, []byte("\uFFFD")) // a copy
	if json.Valid(text) {
		for at := range halves(text) {
			copy(text[at:], `\ufffd`)
		}
	}
	return Unmarshal(text, v)
}

// Check returns an error for a text that Unmarshal refuses for every v.
func Check(text []byte) error { return check(text, reader{}) }

func check(text []byte, r reader) error {
	if !utf8.Valid(text) {
		return errors.New("it is not UTF-8")
	}
	if !json.Valid(text) {
		return invalid(text)
	}
	if err := checkSurrogates(text); err != nil {
		return err
	}
	if err := r.checkValue(jx.DecodeBytes(text), maxDepth); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "callback: ", "")) // remove a word of the decoder
	}
	return nil
}

// invalid returns the reason why a text is not one JSON value.
func invalid(text []byte) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	var first json.RawMessage
	err := d.Decode(&first)
	switch {
	case err == nil:
		return errors.New("something follows the first JSON value")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("its end is missing")
	}
	return err
}

// checkSurrogates returns an error if the valid JSON text has half a surrogate pair.
func checkSurrogates(text []byte) error {
	for at := range halves(text) {
		return fmt.Errorf("it has half a surrogate pair, \\u%04x", unescaped(text[at:]))
	}
	return nil
}

// halves returns the positions of the \u escapes that are half a surrogate pair. The text is valid JSON, so only
// strings contain backslashes.
func halves(text []byte) iter.Seq[int] {
	const size = len(`\u0000`)
	return func(yield func(at int) bool) {
		for i := 0; i < len(text); i++ {
			if text[i] != '\\' {
				continue
			}
			if text[i+1] != 'u' {
				i++
				continue
			}
			at := i
			first := unescaped(text[i:])
			i += size - 1
			switch {
			case !utf16.IsSurrogate(first):
			case utf16.DecodeRune(first, unescaped(text[i+1:])) != utf8.RuneError:
				i += size
			case !yield(at):
				return
			}
		}
	}
}

// unescaped returns the code unit of the \\u escape at the start of a text. It returns 0 if the text does not begin
// with such an escape.
func unescaped(text []byte) rune {
	if len(text) < len(`\u0000`) || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// reader walks through a JSON value and compares its members with a Go type.
type reader struct {
	// typ is the type of the value. nil means that the type is unknown.
	typ reflect.Type
	// closed means that unknown members are refused.
	closed bool
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// withType returns a reader for a part of the value. t is the type of that part.
func (r reader) withType(t reflect.Type) reader { return reader{t, r.closed} }

func (r reader) checkValue(d *jx.Decoder, levels int) error {
	for r.typ != nil && r.typ.Kind() == reflect.Pointer && !r.typ.Implements(jsonUnmarshaler) {
		r.typ = r.typ.Elem()
	}
	if r.typ != nil {
		at := reflect.PointerTo(r.typ)
		if at.Implements(jsonUnmarshaler) || at.Implements(textUnmarshaler) {
			r.typ = nil // The type parses its value itself.
		}
	}
	if levels == 0 {
		return fmt.Errorf("it has more than %d levels", maxDepth)
	}
	switch d.Next() {
	case jx.Object:
		return r.checkObject(d, levels)
	case jx.Array:
		inner := reader{closed: r.closed}
		if r.typ != nil && (r.typ.Kind() == reflect.Slice || r.typ.Kind() == reflect.Array) {
			inner.typ = r.typ.Elem()
		}
		return d.Arr(func(d *jx.Decoder) error { return inner.checkValue(d, levels-1) })
	case jx.Number:
		n, err := d.Num()
		if err != nil {
			return err
		}
		if _, err := strconv.ParseFloat(n.String(), 64); err != nil {
			return fmt.Errorf("the number %.40s is out of range", n)
		}
		return nil
	default:
		return d.Skip()
	}
}

func (r reader) checkObject(d *jx.Decoder, levels int) error {
	known := fields(r.typ)
	seen := map[string]bool{}
	return d.ObjBytes(func(d *jx.Decoder, key []byte) error {
		name := string(key)
		if seen[name] {
			return fmt.Errorf("it has the member %q twice", name)
		}
		seen[name] = true
		inner := reader{closed: r.closed}
		switch t, ok := known[name]; {
		case ok:
			inner = r.withType(t)
		case known != nil:
			for other := range known {
				if strings.EqualFold(other, name) {
					return fmt.Errorf("it has the member %q in another case: %q", other, name)
				}
			}
			if r.closed {
				return fmt.Errorf("unknown field %q", name)
			}
		case r.typ != nil && r.typ.Kind() == reflect.Map:
			inner = r.withType(r.typ.Elem())
		}
		return inner.checkValue(d, levels-1)
	})
}

// fields maps the names of a struct's members to their types. It returns nil if t is not a struct.
func fields(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	known := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Anonymous && name == ""
		if !f.IsExported() || embedded || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		known[name] = f.Type
	}
	return known
}
