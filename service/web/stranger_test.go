package web

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestStrangersBody checks that a client without a credential gets its answer before the server
// reads a large body.
func TestStrangersBody(t *testing.T) {
	w := newWorld(t, 1)
	conn, err := net.Dial("tcp", w.http.Listener.Addr().String())
	check(t, err)
	defer conn.Close()
	check(t, conn.SetDeadline(time.Now().Add(longest)))
	_, err = fmt.Fprintf(conn,
		"POST /v1/inputs HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
			"Authorization: Bearer perlica_tok_012345678901234567890123456789012345\r\n\r\n", w.http.Listener.Addr(), inputBody)
	check(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	check(t, err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", res.StatusCode)
	}
}
