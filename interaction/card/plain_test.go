package card

import (
	"math/rand/v2"
	"testing"
)

// TestPlainLines checks that Line returns a text unchanged when isPlain accepts it.
func TestPlainLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	plain := 0
	for range 20000 {
		b := make([]byte, random.IntN(12))
		for i := range b {
			b[i] = byte(0x1e + random.IntN(0x80-0x1e+2))
		}
		text, most := string(b), random.IntN(14)
		if isPlain(text) {
			plain++
		}
		if got, want := Line(text, most), Words(nil).lineOf(text, most); got != want {
			t.Fatalf("%q in %d columns: %q, want %q", text, most, got, want)
		}
	}
	if plain < 1000 {
		t.Errorf("only %d were plain", plain)
	}
}
