// Package language has every sentence that people read on a messaging channel, in english.go and chinese.go. It also
// translates the sentences of the record, of errors and of findings by their codes. Their Chinese is in
// chinese_messages.go. The web page uses these translations, too.
//
// Every language has every sentence, with the same placeholders. The package decides nothing and changes nothing on the
// record. It does not translate the words of an agent, or the error texts of the system and of libraries.
package language

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
)

// Language is a language that a person can choose.
type Language string

// These are the languages, by their BCP 47 codes.
const (
	English Language = "en"
	Chinese Language = "zh"
)

// All returns all languages.
func All() []Language { return []Language{English, Chinese} }

// Find returns the language that a person has typed: its code, or its name in any language.
func Find(name string) (l Language, ok bool) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "en", "english", "英文", "英语":
		return English, true
	case "zh", "zh-cn", "chinese", "中文", "汉语":
		return Chinese, true
	}
	return "", false
}

// Accepted returns the known language with the highest weight in an Accept-Language header. If the header names no
// known language, it returns English.
func Accepted(header string) Language {
	l, most := English, 0.0
	for part := range strings.SplitSeq(header, ",") {
		tag, weight, _ := strings.Cut(part, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		q := 1.0
		if given, ok := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q="); ok {
			q, _ = strconv.ParseFloat(given, 64) // an invalid weight is 0
		}
		if q > most && slices.Contains(All(), Language(primary)) {
			l, most = Language(primary), q
		}
	}
	return l
}

// Sentences returns the sentences of the language. For an unknown language it returns the English ones.
func (l Language) Sentences() *Sentences {
	if l == Chinese {
		return chinese()
	}
	return english()
}

// Span returns a duration in words, such as "2 hours" or "5 minutes". It shows at most two adjacent units.
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

// Count returns one if n is 1. Otherwise it formats many with n.
func Count(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}

// Said returns an error with a text that is already in the reader's language.
func Said(text string) error { return said(text) }

type said string

func (s said) Error() string { return string(s) }

// In returns the text, which is already in the reader's language.
func (s said) In(*Sentences) string { return string(s) }

// Found returns a list item for a failed check of /doctor. The detail is in English only, so that in another language
// the item has only the check's name.
func (s *Sentences) Found(status, name, detail, hint string) string {
	line := fmt.Sprintf("- **%s** %s", s.checkName(status), s.checkName(name))
	if s.Messages == nil {
		line += ": " + detail
		if hint != "" {
			line += " (" + hint + ")"
		}
	}
	return line + "\n"
}

// checkName translates the name of a check of /doctor, or a status.
func (s *Sentences) checkName(name string) string { return cmp.Or(s.Checks[name], name) }

// Usage returns the usage of a command. For a language of phones it uses the argument names of that language.
func (s *Sentences) Usage(name, args string) string {
	for _, c := range s.Commands {
		if c.Name == name && s.Messages != nil {
			args = c.Args
		}
	}
	return fmt.Sprintf(s.UseAs, strings.TrimSpace("/"+name+" "+args))
}

// Lay lays out a question's card for a phone.
func (s *Sentences) Lay(q interaction.Question) card.Card {
	q.Why = s.Read(q.Why, q.Coded)
	return s.Card.Lay(q, card.PhoneWidth)
}

// Option returns the label of an option, as card.Label does, with Perlica's own words translated.
func (s *Sentences) Option(o interaction.Option, most int) string {
	sign, word := card.Kind(o)
	kind := cmp.Or(s.Kinds[word], word)
	if most > 0 {
		most = max(most+runewidth.StringWidth(word)-runewidth.StringWidth(kind), 1)
	}
	label := strings.TrimPrefix(card.Label(o, most), sign+" "+word+" ")
	if o.Offer {
		label = s.Offered(o, label)
	}
	return sign + " " + kind + " " + label
}

// Offered returns the translated label of an option that Perlica itself offers.
func (s *Sentences) Offered(o interaction.Option, label string) string {
	return cmp.Or(s.Offers[strings.TrimPrefix(o.ID, "perlica:remember-")], s.Messages[o.Code], label)
}
