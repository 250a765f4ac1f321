package witness

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestRedirectionsAreNotFollowed checks that the package contacts only the given URL.
func TestRedirectionsAreNotFollowed(t *testing.T) {
	f := openLog(t, 5)
	s, web := newServer(t, "witness.example", f.verifiers(t)...)
	for _, status := range []int{301, 302, 303, 307, 308} {
		moved := httptest.NewServer(http.RedirectHandler(web.URL+"/w/add-checkpoint", status))
		w := &Witness{URL: moved.URL, Client: moved.Client()}
		if _, err := w.Cosign(t.Context(), &f.log.Reader, f.checkpoint(t)); !errors.Is(err, errProtocol) {
			t.Errorf("%d: %v", status, err)
		}
		moved.Close()
	}
	if len(s.seen) > 0 {
		t.Errorf("the other address was told %q", s.seen)
	}
}
