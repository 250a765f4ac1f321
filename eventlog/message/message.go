// Package message gives a code to each sentence that Perlica shows to a person. The code stays the same when the
// words change.
//
// A package declares its sentences with New, each with its code and its English words. A translation is a table of
// words by code. The table's sentences have the same placeholders, so the same values can be inserted. Events and
// answers to programs contain the code and the inserted values next to the English words.
package message

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// Code names a sentence. Its first part is the package that declares the sentence.
type Code string

// Coded is the code of a sentence and its inserted values. Code is empty if the words are not Perlica's.
type Coded struct {
	Code Code `json:"code,omitempty"`
	Args Args `json:"args,omitempty"`
}

// Args are the inserted values of a sentence: texts, numbers, errors and other sentences.
type Args []any

// Text is a sentence. errors.Is reports that two Texts with the same code are equal.
type Text struct {
	Text string `json:"text"` // in English
	Coded
}

// declared has every sentence that New declared. Only New changes it, while the packages of the program are
// initialized. Its capacity is larger than the number of sentences. Otherwise append would copy the list several times
// at each start.
var declared = make([]*Text, 0, 1200)

// New declares a sentence. Its words are a format with the verbs %s, %q and %d. Copies of New at its uses would add 0.3
// MB to the program.
//
//go:noinline
func New(code Code, english string) *Text {
	t := &Text{english, Coded{Code: code}}
	declared = append(declared, t)
	return t
}

// Declared returns every sentence that the packages of the program declare.
func Declared() []*Text { return declared }

// With returns the sentence with these values inserted. Copies of With at its many uses would make the program larger.
//
//go:noinline
func (t *Text) With(args ...any) *Text {
	return &Text{fmt.Sprintf(t.Text, args...), Coded{t.Code, args}}
}

func (t *Text) Error() string { return t.String() }

// String returns the English words. It returns "" for nil.
func (t *Text) String() string {
	if t == nil {
		return ""
	}
	return t.Text
}

// Is reports whether target has the same code.
func (t *Text) Is(target error) bool {
	other, ok := target.(*Text)
	return ok && t.Code != "" && other.Code == t.Code
}

// Unwrap returns the inserted values that are errors.
func (t *Text) Unwrap() (list []error) {
	for _, a := range t.Args {
		if err, ok := a.(error); ok {
			list = append(list, err)
		}
	}
	return list
}

// A teller is an error that makes its sentence from its fields.
type teller interface {
	error
	Tell() *Text
}

// These are the sentences for errors of the system, and the sentence for an error that wraps another sentence.
var (
	wrapped = New("message.wrapped", "%s%s%s")

	system = []struct {
		err  error
		text *Text
	}{
		{fs.ErrNotExist, New("message.not-exist", "file does not exist")},
		{syscall.ENOENT, New("message.no-entry", "no such file or directory")},
		{syscall.EACCES, New("message.permission", "permission denied")},
		{context.DeadlineExceeded, New("message.deadline", "context deadline exceeded")},
	}
)

// Of returns the sentence of an error, or nil for a nil error. If err wraps a sentence, the words around that
// sentence are not translated.
func Of(err error) *Text {
	if err == nil {
		return nil
	}
	inner := tell(err)
	words := err.Error()
	if inner == nil {
		return &Text{Text: words}
	}
	before, after, ok := strings.Cut(words, inner.Text)
	switch {
	case !ok:
		return &Text{Text: words}
	case before == "" && after == "":
		return inner
	}
	return wrapped.With(before, inner, after)
}

// CodeOf returns the code of the innermost sentence in an error, or "".
func CodeOf(err error) Code {
	t := tell(err)
	if t == nil {
		return ""
	}
	for _, e := range t.Unwrap() {
		if code := CodeOf(e); code != "" {
			return code
		}
	}
	return t.Code
}

// tell finds the outermost sentence in an error, or nil.
func tell(err error) *Text {
	var teller teller
	if errors.As(err, &teller) {
		return teller.Tell()
	}
	for _, s := range system {
		if e := s.err; errors.Is(err, e) && strings.Contains(err.Error(), s.text.Text) {
			return s.text
		}
	}
	return nil
}

// Tell returns the sentence itself.
func (t *Text) Tell() *Text { return t }

// MarshalJSON encodes each error among the values as its sentence.
func (a Args) MarshalJSON() ([]byte, error) {
	list := make([]any, len(a))
	for i, v := range a {
		switch v := v.(type) {
		case error:
			list[i] = Of(v)
		case fmt.Stringer:
			list[i] = v.String()
		default:
			list[i] = v
		}
	}
	return json.Marshal(list)
}

// UnmarshalJSON parses the output of MarshalJSON.
func (a *Args) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*a = make(Args, len(list))
	for i, raw := range list {
		var n int64
		var t Text
		switch {
		case json.Unmarshal(raw, &n) == nil:
			(*a)[i] = n
		case json.Unmarshal(raw, &t) == nil:
			(*a)[i] = &t
		default:
			if err := json.Unmarshal(raw, &(*a)[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
