package language

import (
	"fmt"

	"github.com/perlica/perlica/eventlog/message"
)

// Say returns a sentence in the language. Words that are not Perlica's stay as they are. It returns "" for nil.
func (s *Sentences) Say(t *message.Text) string {
	if t == nil {
		return ""
	}
	form := s.Messages[t.Code]
	if form == "" {
		return s.Translate(t.Text)
	}
	args := make([]any, len(t.Args))
	for i, a := range t.Args {
		args[i] = a
		if err, ok := a.(error); ok {
			args[i] = s.Error(err)
		}
	}
	return fmt.Sprintf(form, args...)
}

// Read is Say for a sentence that a record holds as its English words, its code and its insertions.
func (s *Sentences) Read(text string, c message.Coded) string {
	return s.Say(&message.Text{Text: text, Coded: c})
}

// Error returns the text of an error, with its known part in the language.
func (s *Sentences) Error(err error) string {
	t := message.Of(err)
	if t.Code == "" {
		if said, ok := s.knownText(err); ok {
			return said
		}
	}
	return s.Say(t)
}

// Fault returns the text of a failed command's error for its user. A general sentence quotes an error without a code.
func (s *Sentences) Fault(err error) string {
	if t := message.Of(err); t.Code != "" {
		return s.Say(t)
	}
	if said, ok := s.knownText(err); ok {
		return said
	}
	return fmt.Sprintf(s.NotDone, err)
}
