package language

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Recorded translates the English sentences of the record. The record itself stays unchanged: the translation
// happens when a sentence is shown.
//
// The key of a sentence is its form. In a form %s, %q and %d stand for insertions, {lapse} for an entry of Words, and
// {why} for another sentence. A translation has the same insertions, in the same order or by number (%[2]s).
type Recorded struct {
	// Words has the possible words for each name in braces.
	Words map[string]map[string]string
	// Sentences holds the sentences that stand on the record as they are, by their forms.
	Sentences map[string]string
	// Forms holds single words, and the forms that Summarize fills with the details of an event.
	Forms map[string]string

	// matchers returns the matchers of Sentences.
	matchers func() []matcher
}

// matcher finds the sentences of a form.
type matcher struct {
	form    string
	pattern *regexp.Regexp
	// holes holds the kind of each insertion: s, d, or a name.
	holes []string
	// said holds the texts between the insertions.
	said []string
}

// mayMatch is a fast test of a text against the fixed parts of the form. Insertions may be long, and most texts fail
// this test.
func (m matcher) mayMatch(text string) bool {
	first, last := m.said[0], m.said[len(m.said)-1]
	if !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	return !slices.ContainsFunc(m.said, func(part string) bool { return !strings.Contains(text, part) })
}

var hole = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%[sdvq]|\{[a-z]+\}`) })

// recorded returns a Recorded of its tables.
func recorded(words map[string]map[string]string, sentences, faults, forms map[string]string) *Recorded {
	r := &Recorded{Words: words, Sentences: sentences, Forms: forms}
	maps.Copy(r.Sentences, faults)
	r.matchers = sync.OnceValue(func() (list []matcher) {
		for form := range r.Sentences {
			list = append(list, r.matcher(form))
		}
		// The form with more fixed text is tried first.
		said := func(m matcher) int { return len(hole().ReplaceAllString(m.form, "")) + 100*strings.Count(m.form, "{") }
		slices.SortFunc(list, func(a, b matcher) int { return cmp.Or(said(b)-said(a), strings.Compare(a.form, b.form)) })
		return list
	})
	return r
}

func (r *Recorded) matcher(form string) matcher {
	m := matcher{form: form}
	var b strings.Builder
	at := 0
	for _, place := range hole().FindAllStringIndex(form, -1) {
		b.WriteString(regexp.QuoteMeta(form[at:place[0]]))
		m.said = append(m.said, form[at:place[0]])
		at = place[1]
		name := strings.Trim(form[place[0]:at], "%{}")
		switch words := r.Words[name]; {
		case name == "d":
			b.WriteString(`(\d+)`)
		case name == "q":
			b.WriteString(`("(?:[^"\\]|\\.)*")`)
		case words != nil:
			b.WriteString(`(` + alternatives(words) + `)`)
		case at == len(form):
			b.WriteString(`(.*)`)
		default:
			b.WriteString(`(.*?)`)
		}
		m.holes = append(m.holes, name)
	}
	b.WriteString(regexp.QuoteMeta(form[at:]))
	m.said = append(m.said, form[at:])
	m.pattern = regexp.MustCompile(`(?s)^` + b.String() + `$`)
	return m
}

func alternatives(words map[string]string) string {
	var list []string
	for w := range words {
		list = append(list, regexp.QuoteMeta(w))
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return strings.Join(list, "|")
}

// Translate returns a sentence of the record in the language. It returns an unknown sentence unchanged.
func (s *Sentences) Translate(text string) string {
	said, _ := s.translateText(text)
	return said
}

// translateText prefers the form with the fewest unknown sentences in the places of {why}, because {why} matches any
// text.
func (s *Sentences) translateText(text string) (said string, ok bool) {
	r := s.Recorded
	if r == nil || text == "" {
		return text, r == nil
	}
	if said, ok := r.Sentences[text]; ok {
		return said, true
	}
	said, least := text, -1
	for _, m := range r.matchers() {
		if !m.mayMatch(text) {
			continue
		}
		found := m.pattern.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		filled, unknown := s.fill(m, found[1:])
		if least < 0 || unknown < least {
			said, least = filled, unknown
		}
		if unknown == 0 {
			break
		}
	}
	return said, least >= 0
}

// fill inserts the translated parts of a text into the translation of its form. unknown counts the sentences that have
// no translation.
func (s *Sentences) fill(m matcher, found []string) (said string, unknown int) {
	r := s.Recorded
	args := make([]any, 0, len(m.holes))
	for i, name := range m.holes {
		arg := found[i]
		switch n, err := strconv.Atoi(arg); {
		case name == "d" && err == nil:
			args = append(args, n)
			continue
		case name == "why":
			known := false
			if arg, known = s.translateText(arg); !known {
				unknown++
			}
		case r.Words[name] != nil:
			arg = r.Words[name][arg]
		}
		args = append(args, arg)
	}
	return fmt.Sprintf(r.Sentences[m.form], args...), unknown
}

// Form returns a form of the record's sentences in the language. The caller fills in the insertions.
func (s *Sentences) Form(english string) string {
	if s.Recorded == nil {
		return english
	}
	return cmp.Or(s.Recorded.Forms[english], english)
}
