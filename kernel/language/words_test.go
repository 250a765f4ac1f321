package language_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/perlica/perlica/kernel/language"
)

// latin matches words of Latin letters.
var latin = regexp.MustCompile(`[A-Za-z]{2,}`)

// own lists the names that are the same in every language.
var own = []string{"UTF", "Perlica", "shell", "git", "cd", "fork", "PATH", "token", "stop", "WebSocket", "ACP", "JSON",
	"RPC", "RFC", "ASCII", "MiB"}

// quoted matches texts that the reader must type exactly.
var quoted = regexp.MustCompile(`“[^”]*”`)

func english(text string) bool {
	text = quoted.ReplaceAllString(text, "")
	return slices.ContainsFunc(latin.FindAllString(text, -1), func(w string) bool { return !slices.Contains(own, w) })
}

// TestWords checks that each word of a fixed set is Chinese, and that an unknown word stays as it is.
func TestWords(t *testing.T) {
	say := language.Chinese.Sentences()
	for word := range say.Words {
		said := say.Word(word)
		if word == "send" { // a command
			continue
		}
		if !strings.ContainsFunc(said, func(r rune) bool { return unicode.Is(unicode.Han, r) }) || english(said) {
			t.Errorf("%q is not Chinese: %q", word, said)
		}
	}
	if got := say.Word("allow"); got != "允许" {
		t.Errorf("allow is %q", got)
	}
	if got := say.Word("of a later version"); got != "of a later version" {
		t.Errorf("an unknown word is %q", got)
	}
	if got := language.English.Sentences().Word("allow"); got != "allow" {
		t.Errorf("in English, allow is %q", got)
	}
}
