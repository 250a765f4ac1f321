package redact

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// blank matches a placeholder in a template. «w40» becomes 40 letters and digits that must be masked. ‹h40› becomes
// 40 hexadecimal digits that must not be masked. «=text» is a fixed text that must be masked.
var blank = regexp.MustCompile(`[«‹]([a-z])([0-9]+)[»›]|«=([^»]+)»`)

var blankAlphabets = map[string]string{
	"w": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
	"a": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
	"l": "abcdefghijklmnopqrstuvwxyz",
	"s": "abcdefghijklmnopqrstuvwxyz0123456789",
	"u": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
	"h": "0123456789abcdef",
	"n": "0123456789",
	"d": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
	"b": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	"p": "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789!#%^*+.~",
}

// filled returns the text of a template and its secrets.
func filled(template string, lot *rand.Rand) (text string, secrets []string) {
	text = blank.ReplaceAllStringFunc(template, func(m string) string {
		g := blank.FindStringSubmatch(m)
		v := g[3]
		if v == "" {
			alphabet := blankAlphabets[g[1]]
			n, _ := strconv.Atoi(g[2])
			var b strings.Builder
			b.WriteByte(alphabet[lot.IntN(min(26, len(alphabet)))])
			for b.Len() < n-1 {
				b.WriteByte(alphabet[lot.IntN(len(alphabet))])
			}
			if b.Len() < n {
				b.WriteByte(alphabet[lot.IntN(min(50, len(alphabet)))])
			}
			v = b.String()
		}
		if strings.HasPrefix(m, "«") {
			secrets = append(secrets, v)
		}
		return v
	})
	return text, secrets
}

// leaked reports whether the text still contains a part of a secret.
func leaked(text string, secrets []string) bool {
	const piece = 8
	for _, s := range secrets {
		if len(s) <= piece && strings.Contains(text, s) {
			return true
		}
		for i := 0; i+piece <= len(s); i++ {
			if strings.Contains(text, s[i:i+piece]) {
				return true
			}
		}
	}
	return false
}

// TestSettings checks that at least 97 of 100 secrets in the templates of settings are masked, also inside JSON
// strings.
func TestSettings(t *testing.T) {
	lot := rand.New(rand.NewPCG(1, 2))
	missed := 0
	for _, template := range settings {
		text, secrets := filled(template, lot)
		if len(secrets) == 0 {
			t.Fatalf("nothing to find in %q", template)
		}
		switch wrapped := mustJSON(map[string]string{"text": text}); {
		case leaked(Text(text), secrets):
			t.Logf("missed: %q\n     -> %q", text, Text(text))
		case leaked(Text(wrapped), secrets):
			t.Logf("missed in JSON: %s\n     -> %s", wrapped, Text(wrapped))
		default:
			continue
		}
		missed++
	}
	t.Logf("%d of %d missed", missed, len(settings))
	if 100*missed > 3*len(settings) {
		t.Errorf("%d of %d are missed", missed, len(settings))
	}
}

// TestLookalikes checks that at most one in a hundred harmless lines changes.
func TestLookalikes(t *testing.T) {
	lot := rand.New(rand.NewPCG(3, 4))
	alarms, lines := 0, 0
	for _, template := range lookalikes {
		for range 4 {
			text, _ := filled(template, lot)
			lines++
			wrapped := mustJSON(map[string]string{"text": text})
			if masked := Text(text); masked != text || Text(wrapped) != wrapped {
				alarms++
				t.Logf("changed: %q\n      -> %q", text, masked)
			}
		}
	}
	t.Logf("%d of %d changed", alarms, lines)
	if 100*alarms > lines {
		t.Errorf("%d of %d lines are changed", alarms, lines)
	}
}
