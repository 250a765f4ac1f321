package push

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// Public returns the dial function that sends messages.
func Public(t *testing.T) func(ctx context.Context, network, addr string) (net.Conn, error) {
	t.Helper()
	return public().(*http.Transport).DialContext
}
