package export

import (
	"errors"
	"testing"
)

// TestALineHasAnEnd: whatever a line says of its payload, there is an end.
func TestALineHasAnEnd(t *testing.T) {
	x := &Reader{n: 7, buf: make([]byte, maxLine+1)}
	copy(x.buf, `{"payload_len":1099511627776,"line":"`)
	var bad *ImportError
	if err := x.fits(); !errors.As(err, &bad) || bad.Line != 7 {
		t.Errorf("%v", err)
	}
	if x.buf = x.buf[:maxLine]; x.fits() != nil {
		t.Error(x.fits())
	}
}
