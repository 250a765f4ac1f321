package redact

import (
	"math/bits"
	"testing"
)

// TestPatternsFit: found has a bit for each pattern; a pattern without one is never tried.
func TestPatternsFit(t *testing.T) {
	if have := bits.Len64(^found{}.patterns); len(patterns) > have {
		t.Fatalf("%d patterns, but found.patterns has %d bits: widen it before another is added", len(patterns), have)
	}
}
