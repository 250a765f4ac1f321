package language_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/language"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// messages holds the messages of the program with their translations, by the place where a person meets them.
type messages map[string]map[string]string

func (m messages) add(place, english, chinese string) {
	if m[place] == nil {
		m[place] = map[string]string{}
	}
	m[place][english] = chinese
}

// TestMessages checks that each message that a person can meet on a phone or a page has a translation.
// testdata/messages.txt lists the messages, so that a change of words shows in its diff.
func TestMessages(t *testing.T) {
	m, say := messages{}, language.Chinese.Sentences()
	for _, d := range message.Declared() {
		m.add("sentences by their codes", string(d.Code)+"\n\t"+d.Text, say.Messages[d.Code])
	}
	for english, chinese := range say.Words {
		m.add("words of fixed sets", english, chinese)
	}
	var list strings.Builder
	for _, place := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&list, "# %s\n", place)
		for _, text := range slices.Sorted(maps.Keys(m[place])) {
			fmt.Fprintf(&list, "%s\n\t%s\n", text, m[place][text])
		}
	}
	const file = "testdata/messages.txt"
	if *update {
		if err := os.WriteFile(file, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != list.String() {
		t.Errorf("%s differs from the messages of the program (%v): run go test ./kernel/language -update", file, err)
	}
}

// TestAccepted checks that Accepted chooses the first known language of the header, and otherwise English.
func TestAccepted(t *testing.T) {
	for header, want := range map[string]language.Language{
		"": "en", "*": "en", "fr": "en", "zh": "zh", "zh-CN,zh;q=0.9,en;q=0.8": "zh", "en-GB,en;q=0.9,zh;q=0.8": "en",
		"fr, zh;q=0.5":             "zh",
		"en;q=0.2, ZH-Hant; q=0.7": "zh", "zh;q=0": "en", "zh;q=x": "en", "zhx": "en",
	} {
		if got := language.Accepted(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
