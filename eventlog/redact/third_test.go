package redact

import (
	"math/rand/v2"
	"testing"
)

// TestProviderForms checks that at least 97 of 100 secrets in the templates of providerForms are masked, also inside
// JSON strings.
func TestProviderForms(t *testing.T) {
	lot := rand.New(rand.NewPCG(5, 6))
	missed := 0
	for _, template := range providerForms {
		text, secrets := filled(template, lot)
		wrapped := mustJSON(map[string]string{"text": text})
		if leaked(Text(text), secrets) || leaked(Text(wrapped), secrets) {
			missed++
			t.Logf("missed: %q\n     -> %q", template, Text(text))
		}
	}
	t.Logf("%d of %d missed", missed, len(providerForms))
	if 100*missed > 3*len(providerForms) {
		t.Errorf("%d of %d are missed", missed, len(providerForms))
	}
}
