package language

import (
	"cmp"
	"fmt"

	"github.com/perlica/perlica/eventlog/message"
)

// Say returns a sentence in the language s. Words of an agent or a user are not translated. For nil it returns "".
func (s *Sentences) Say(t *message.Text) string {
	if t == nil {
		return ""
	}
	form := s.Messages[t.Code]
	if form == "" {
		return t.Text
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

// Read translates a recorded sentence. The record has the English text, the code and the inserted values.
func (s *Sentences) Read(text string, c message.Coded) string {
	return s.Say(&message.Text{Text: text, Coded: c})
}

// Error returns the text of an error. A sentence with a code in this text is translated.
func (s *Sentences) Error(err error) string { return s.Say(message.Of(err)) }

// Word returns a word of a fixed set in the language, such as an effect or a kind. An unknown word stays as it is.
func (s *Sentences) Word(english string) string { return cmp.Or(s.Words[english], english) }

// Fault returns the error of a failed command as a text for the user. An unknown error is quoted in a general sentence.
func (s *Sentences) Fault(err error) string {
	if t := message.Of(err); t.Code != "" {
		return s.Say(t)
	}
	return fmt.Sprintf(s.NotDone, err)
}
