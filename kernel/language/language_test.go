package language_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/language"
)

// texts returns all sentences of a language, by the names of their fields.
func texts(l language.Language) map[string]string {
	all := map[string]string{}
	v := reflect.ValueOf(l.Sentences()).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch f := v.Field(i).Interface().(type) {
		case string:
			all[name] = f
		case [4]string:
			for n, text := range f {
				all[fmt.Sprint(name, n)] = text
			}
		case card.Words:
			for key, text := range f {
				all[name+" "+key] = text
			}
		case map[string]string: // see TestWords for Words, which English does not need
			if name == "Words" {
				continue
			}
			for key, text := range f {
				all[name+" "+key] = text
			}
		case map[message.Code]string: // TestCodes checks these
		case []language.Command:
			for _, c := range f {
				all["/"+c.Name] = c.Help
			}
		default:
			panic(name + " is of no form that is known here")
		}
	}
	return all
}

// insertions returns the different placeholders of a sentence, sorted.
func insertions(text string) []string {
	verbs := regexp.MustCompile(`%(\[\d+\])?[a-z]`).FindAllString(text, -1)
	slices.Sort(verbs)
	return slices.Compact(verbs)
}

func count(text string) int { return len(regexp.MustCompile(`%[a-z]`).FindAllString(text, -1)) }

// TestSameSentences checks that every language has the same sentences with the same placeholders.
func TestSameSentences(t *testing.T) {
	english, chinese := texts(language.English), texts(language.Chinese)
	if missing := slices.DeleteFunc(slices.Sorted(maps.Keys(english)),
		func(k string) bool { return chinese[k] != "" || english[k] == "" }); len(missing) > 0 {
		t.Errorf("not in Chinese: %q", missing)
	}
	for name, text := range chinese {
		if english[name] == "" {
			t.Errorf("%s: not in English", name)
		}
		if !slices.Equal(insertions(text), insertions(english[name])) || count(text) != count(english[name]) {
			t.Errorf("%s: %q inserts other things than %q", name, text, english[name])
		}
	}
}

// TestOneLanguage checks that each sentence is written in its language. Fields without words are excepted.
func TestOneLanguage(t *testing.T) {
	none := []string{"ReactionAck", "Joint", "OptionIs", "Stop", "Languages", "Name"}
	isHan := func(r rune) bool { return unicode.Is(unicode.Han, r) }
	for name, text := range texts(language.English) {
		if !slices.Contains(none, name) && strings.ContainsFunc(text, isHan) {
			t.Errorf("%s is not English: %q", name, text)
		}
	}
	for name, text := range texts(language.Chinese) {
		if !slices.Contains(none, name) && !strings.ContainsFunc(text, isHan) {
			t.Errorf("%s is not Chinese: %q", name, text)
		}
	}
}

// TestCardWords checks that in each language the lines of a question's card are not too wide and that their bars are
// aligned.
func TestCardWords(t *testing.T) {
	for _, l := range language.All() {
		words := l.Sentences().Card
		rows := words.Lay(interaction.Question{Why: "why", Word: "word", Subject: interaction.Subject{
			Provider: "agent", Text: []string{"text"}, Commands: []string{strings.Repeat("make ", 40)}, Paths: []string{"/p"},
			Dir:  "/",
			Kind: "execute", Tier: "always-asked", Diffs: []interaction.Diff{{Path: "/p", New: "new"}},
			Fields: []interaction.Field{{Name: "a", Value: "b"}, {Name: "c", Value: "d", Inert: true},
				{Name: "e", Value: "f", Unread: true}},
		}}, card.PhoneWidth).Rows
		labels := map[string]bool{}
		for _, r := range rows {
			if w := runewidth.StringWidth(r.String()); w > card.PhoneWidth {
				t.Errorf("%s: %d columns: %s", l, w, r)
			}
			if w := runewidth.StringWidth(r.Head); r.Agent && w != 12 {
				t.Errorf("%s: the bar ends at %d: %s", l, w, r)
			}
			if fields := strings.Fields(r.Head); len(fields) > 0 {
				labels[fields[0]] = true
			}
		}
		for _, label := range []string{"says", "inert", "runs", "path", "with", "unread", "in", "tier", "why", "allow",
			"diff"} {
			if !labels[words[label]] {
				t.Errorf("%s: no row is called %q", l, words[label])
			}
		}
	}
}

// TestRepeated checks that the text before a repeated message is not longer than the space that messages reserve for
// it.
func TestRepeated(t *testing.T) {
	for _, l := range language.All() {
		if mark := l.Sentences().Repeated; len(mark) > len("(possibly repeated)") {
			t.Errorf("%s: %q is too long", l, mark)
		}
	}
}

// TestSpan checks durations in words.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		2 * time.Hour: "2 hours", time.Minute: "1 minute", 90 * time.Minute: "1 hour 30 minutes",
		25*time.Hour + time.Minute: "1 day 1 hour",
		24*time.Hour + time.Minute: "1 day", 0: "0 seconds", time.Second + time.Millisecond: "1 second",
	} {
		if got := language.English.Sentences().Span(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	if got := language.Chinese.Sentences().Span(2 * time.Hour); got != "2 小时" {
		t.Errorf("in Chinese %q", got)
	}
}
