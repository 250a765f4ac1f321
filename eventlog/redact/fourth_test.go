package redact

import (
	"math/rand/v2"
	"testing"
)

// TestPublicForms checks that at least 97 of 100 secrets in the templates of publicForms are masked, also inside JSON
// strings.
func TestPublicForms(t *testing.T) {
	lot := rand.New(rand.NewPCG(7, 8))
	missed := 0
	for _, template := range publicForms {
		text, secrets := filled(template, lot)
		wrapped := mustJSON(map[string]string{"text": text})
		if leaked(Text(text), secrets) || leaked(Text(wrapped), secrets) {
			missed++
			t.Logf("missed: %q\n     -> %q\n     -> %s", text, Text(text), Text(wrapped))
		}
	}
	t.Logf("%d of %d missed", missed, len(publicForms))
	if 100*missed > 3*len(publicForms) {
		t.Errorf("%d of %d are missed", missed, len(publicForms))
	}
}
