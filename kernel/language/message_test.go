package language_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/language"

	// The imports register the sentences of these packages.
	_ "github.com/perlica/perlica/kernel/command"
	_ "github.com/perlica/perlica/kernel/schedule"
	_ "github.com/perlica/perlica/service"
	_ "github.com/perlica/perlica/service/web"
)

// TestCodes checks that each declared sentence has its own code and a translation with the same placeholders. It also
// checks that each translation belongs to a declared sentence.
func TestCodes(t *testing.T) {
	chinese := language.Chinese.Sentences().Messages
	known := map[message.Code]string{}
	for _, m := range message.Declared() {
		if known[m.Code] != "" {
			t.Errorf("%s is declared twice: %q and %q", m.Code, known[m.Code], m.Text)
		}
		known[m.Code] = m.Text
		said := chinese[m.Code]
		if !slices.Equal(verbs(said), verbs(m.Text)) {
			t.Errorf("%s: %q inserts other things than %q", m.Code, said, m.Text)
		}
		if !ownCode.MatchString(string(m.Code)) {
			t.Errorf("%q is no code", m.Code)
		}
		if m.Text != "" && said == "" {
			t.Errorf("%s has no translation", m.Code)
		}
		// A sentence that has only placeholders needs no words. Chinese has no word for "of".
		if !latin.MatchString(insertion.ReplaceAllString(m.Text, "")) || m.Text == "%s of %s" || m.Text == "%s of %s: %s" {
			continue
		}
		if !strings.ContainsFunc(said, func(r rune) bool { return unicode.Is(unicode.Han, r) }) ||
			english(typed.ReplaceAllString(said, "")) {
			t.Errorf("%s is not Chinese: %q", m.Code, said)
		}
	}
	for code := range chinese {
		if _, ok := known[code]; !ok {
			t.Errorf("no package declares %s", code)
		}
	}
}

// verbs returns the placeholders of a sentence, sorted and without their numbers.
func verbs(form string) []string {
	list := insertion.FindAllString(form, -1)
	for i, v := range list {
		list[i] = "%" + v[len(v)-1:]
	}
	slices.Sort(list)
	return list
}

var (
	ownCode   = regexp.MustCompile(`^[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*$`)
	typed     = regexp.MustCompile(insertion.String() + `|/[a-z]+`) // placeholders, and commands that the reader types
	insertion = regexp.MustCompile(`%(\[\d+\])?[.\d]*[a-z]`)
)

// TestSay checks that Say translates a sentence with its inserted values, also after the sentence was stored as JSON.
// It must not change unknown words.
func TestSay(t *testing.T) {
	say := language.Chinese.Sentences()
	sentence := func(args ...any) *message.Text {
		return (&message.Text{Text: "this needs the right %q", Coded: message.Coded{Code: "web.needs-right"}}).With(args...)
	}
	kept, err := json.Marshal(sentence(disk.ErrFull))
	if err != nil {
		t.Fatal(err)
	}
	var read message.Text
	if err := json.Unmarshal(kept, &read); err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]*message.Text{
		`这需要权限 "ask"`:    sentence("ask"),
		`x: 这需要权限 "ask"`: message.Of(fmt.Errorf("x: %w", sentence("ask"))),
		`这需要权限 "磁盘已满"`:   &read,
		"theirs":         {Text: "theirs"},
		"":               nil,
	} {
		if got := say.Say(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
