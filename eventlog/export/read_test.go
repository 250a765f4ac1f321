package export

import (
	"errors"
	"testing"
)

// TestALineHasAnEnd checks that the length of a line is limited for every value of payload_len.
func TestALineHasAnEnd(t *testing.T) {
	x := &Reader{n: 7, buf: make([]byte, maxLine+1)}
	copy(x.buf, `{"payload_len":1099511627776,"line":"`)
	var bad *ImportError
	if err := x.checkLength(); !errors.As(err, &bad) || bad.Line != 7 {
		t.Errorf("%v", err)
	}
	if x.buf = x.buf[:maxLine]; x.checkLength() != nil {
		t.Error(x.checkLength())
	}
}
