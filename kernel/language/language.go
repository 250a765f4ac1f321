// Package language holds every sentence that people read who talk to Perlica by a messaging channel: a file
// for each language, english.go and chinese.go.
//
// It promises that a sentence that one language has the others have, too, with the same insertions. It
// decides nothing. What an agent says, what is written on the record, the rows of a question and the detail
// of an error are not its business: they are the same for everybody.
package language

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
)

// Language is one that a person can choose.
type Language string

// The languages, by their codes in BCP 47.
const (
	English Language = "en"
	Chinese Language = "zh"
)

// All returns the languages that there are.
func All() []Language { return []Language{English, Chinese} }

// Find returns the language that a person names: by its code, or by its name in either language.
func Find(name string) (l Language, ok bool) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "en", "english", "英文", "英语":
		return English, true
	case "zh", "zh-cn", "chinese", "中文", "汉语":
		return Chinese, true
	}
	return "", false
}

// Sentences returns the sentences of the language; those of a language that there is not are English.
func (l Language) Sentences() *Sentences {
	if l == Chinese {
		return chinese()
	}
	return english()
}

// Span is a duration as people say it: "2 hours", "5 minutes". What is shorter than the second unit is left
// out.
func (s *Sentences) Span(d time.Duration) string {
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if d < unit {
			continue
		}
		text := s.unit(i, int(d/unit))
		if rest := d % unit; i < 3 && rest >= []time.Duration{time.Hour, time.Minute, time.Second}[i] {
			next := []time.Duration{time.Hour, time.Minute, time.Second}[i]
			text += s.Joint + s.unit(i+1, int(rest/next))
		}
		return text
	}
	return s.unit(3, 0)
}

func (s *Sentences) unit(i, n int) string {
	if n == 1 {
		return fmt.Sprintf(s.Unit[i], n)
	}
	return fmt.Sprintf(s.Units[i], n)
}

// Count is a number of something of which One and Many say it.
func Count(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}

// Error is what an error says, with the words of it that are known in the language.
func (s *Sentences) Error(err error) string {
	text := err.Error()
	for e := err; e != nil; e = errors.Unwrap(e) {
		if known, ok := s.Errors[e.Error()]; ok {
			return strings.Replace(text, e.Error(), known, 1)
		}
	}
	return text
}

// Option is an option as card.Label has it, with what Perlica says of it in the language.
func (s *Sentences) Option(o interaction.Option, most int) string {
	sign, word := card.Kind(o)
	kind := cmp.Or(s.Kinds[word], word)
	if most > 0 {
		most = max(most+runewidth.StringWidth(word)-runewidth.StringWidth(kind), 1)
	}
	label := strings.TrimPrefix(card.Label(o, most), sign+" "+word+" ")
	if o.Offer {
		label = cmp.Or(s.Offers[strings.TrimPrefix(o.ID, "perlica:remember-")], label)
	}
	return sign + " " + kind + " " + label
}
