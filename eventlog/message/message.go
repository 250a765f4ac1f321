// Package message gives each sentence that a person can meet a code, which stays the same when the words change.
//
// A package declares its sentences as variables with New, each with its code and its English words. A translation
// is a table by code; it inserts the same values in its own words. An event or an answer to a program holds the
// code and the insertions next to the English words.
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

// Coded is the code of a sentence and its insertions. Code is empty for words that are not Perlica's.
type Coded struct {
	Code Code `json:"code,omitempty"`
	Args Args `json:"args,omitempty"`
}

// Args are the insertions of a sentence: texts, numbers, errors and other sentences.
type Args []any

// Text is a sentence. As an error it equals every error with the same code.
type Text struct {
	Text string `json:"text"` // in English
	Coded
}

// declared holds every sentence of New. Only New changes it, while the packages of the program are initialized.
var declared []*Text

// New declares a sentence. Its words are a format with the verbs %s, %q and %d.
func New(code Code, english string) *Text {
	t := &Text{english, Coded{Code: code}}
	declared = append(declared, t)
	return t
}

// Declared returns every sentence that the packages of the program declare.
func Declared() []*Text { return declared }

// With returns the sentence with its insertions.
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

// Unwrap returns the insertions that are errors.
func (t *Text) Unwrap() (list []error) {
	for _, a := range t.Args {
		if err, ok := a.(error); ok {
			list = append(list, err)
		}
	}
	return list
}

// A Teller is an error that makes its sentence of its fields.
type teller interface {
	error
	Tell() *Text
}

// These are the sentences for errors of the system, and for an error that wraps a sentence.
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

// Of returns the sentence of an error. The words around a wrapped sentence stay as they are. It returns nil for nil.
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

// MarshalJSON writes an error as its sentence.
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

// UnmarshalJSON reads the output of MarshalJSON.
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
