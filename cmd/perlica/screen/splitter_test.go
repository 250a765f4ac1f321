package screen

import (
	"strings"
	"testing"
)

// FuzzSplit cuts a text at any place. All blocks together must be the text.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"a\n\nb", "- a\n  b\n\n\nc", "```\nx\n", "1. a\n   ```\n\n   ```\n", "# h\n> q\n",
		"a\r\n"} {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, step uint8) {
		var s splitter
		var all strings.Builder
		n := int(step)%7 + 1
		for i := 0; i < len(text); i += n {
			for _, b := range s.Feed(text[i:min(i+n, len(text))]) {
				all.WriteString(b.text)
			}
		}
		for _, b := range s.Flush() {
			all.WriteString(b.text)
		}
		if all.String() != text {
			t.Errorf("%q became %q", text, all.String())
		}
	})
}
