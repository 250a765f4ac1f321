package strict_test

import (
	"encoding/base64"
	"testing"

	"github.com/perlica/perlica/eventlog/strict"
)

// TestHash checks that Hash accepts only one base64 spelling.
func TestHash(t *testing.T) {
	want := [32]byte{1, 2, 3}
	text := base64.StdEncoding.EncodeToString(want[:])
	if got, err := strict.Hash(text); got != want || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	short := base64.StdEncoding.EncodeToString(want[:31])
	for _, other := range []string{"", text + "\n", text[:4] + "\r\n" + text[4:], text[:42] + "B=", text[:43], short,
		"!" + text[1:]} {
		if got, err := strict.Hash(other); err == nil {
			t.Errorf("%q: got %v, want an error", other, got)
		}
	}
}
