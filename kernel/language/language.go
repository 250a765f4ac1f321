// Package language holds every sentence that people read who talk to Perlica by a messaging channel: english.go and
// chinese.go, and in chinese_record.go and chinese_faults.go what the record, errors and findings say in English, which
// the page shows in their words, too.
//
// It promises that a sentence that one language has the others have, too, with the same insertions. It
// decides nothing, and changes nothing on the record. What an agent says, and what a system or a library says of an
// error, are not its business: they are the same for everybody.
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

// Accepted is the language that a client asks for first, as the header Accept-Language has them; English if it asks for
// none that there is.
func Accepted(header string) Language {
	l, most := English, 0.0
	for part := range strings.SplitSeq(header, ",") {
		tag, weight, _ := strings.Cut(part, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		q := 1.0
		if given, ok := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q="); ok {
			q, _ = strconv.ParseFloat(given, 64) // 0 if it is none
		}
		if q > most && slices.Contains(All(), Language(primary)) {
			l, most = Language(primary), q
		}
	}
	return l
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
	if said, ok := s.known(err); ok {
		return said
	}
	return err.Error()
}

// known is an error with the words of the first of those in it that is known.
func (s *Sentences) known(err error) (said string, ok bool) {
	text := err.Error()
	if said, ok = s.Errors[text]; !ok && s.Recorded != nil {
		said, ok = s.translate(text)
	}
	if ok {
		return said, true
	}
	var within []error
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		within = append(within, e.Unwrap())
	case interface{ Unwrap() []error }:
		within = e.Unwrap()
	}
	for _, e := range within {
		if e == nil {
			continue
		}
		if said, ok := s.known(e); ok {
			return strings.Replace(text, e.Error(), said, 1), true
		}
	}
	return "", false
}

// Said is an error that is a sentence of the language in which its person is spoken to.
func Said(text string) error { return said(text) }

type said string

func (s said) Error() string { return string(s) }

// In is what the error says, which is in the language already.
func (s said) In(*Sentences) string { return string(s) }

// Fault is what an error says to the person whose command met it. One that is not known is a detail.
func (s *Sentences) Fault(err error) string {
	if said, ok := s.known(err); ok {
		return said
	}
	return fmt.Sprintf(s.NotDone, err)
}

// Found is a check of /doctor that is not well, as a line of a list. What was found is about files and settings of the
// machine, and there in English alone: in another language the check is named.
func (s *Sentences) Found(status, name, detail, hint string) string {
	line := fmt.Sprintf("- **%s** %s", s.check(status), s.check(name))
	if s.Recorded == nil {
		line += ": " + detail
		if hint != "" {
			line += " (" + hint + ")"
		}
	}
	return line + "\n"
}

// check is a check of /doctor or its state.
func (s *Sentences) check(name string) string { return cmp.Or(s.Checks[name], name) }

// Usage is how a command is used: as help shows it, if it is one of those of a phone.
func (s *Sentences) Usage(name, args string) string {
	for _, c := range s.Commands {
		if c.Name == name && s.Recorded != nil {
			args = c.Args
		}
	}
	return fmt.Sprintf(s.UseAs, strings.TrimSpace("/"+name+" "+args))
}

// Lay lays a question out for a phone.
func (s *Sentences) Lay(q interaction.Question) card.Card {
	q.Why = s.Translate(q.Why)
	return s.Card.Lay(q, card.PhoneWidth)
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
		label = s.Offered(o, label)
	}
	return sign + " " + kind + " " + label
}

// Offered is the label of an answer that Perlica offers.
func (s *Sentences) Offered(o interaction.Option, label string) string {
	return cmp.Or(s.Offers[strings.TrimPrefix(o.ID, "perlica:remember-")], s.Translate(label))
}
