package push

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// Public returns the dial function of the transport that reaches only public addresses.
func Public(t *testing.T) func(ctx context.Context, network, addr string) (net.Conn, error) {
	t.Helper()
	return public().(*http.Transport).DialContext
}
