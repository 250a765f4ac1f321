package hub

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestTLS checks that a server's certificate is verified over TCP as the connection string
// requires, and that State reports the result.
func TestTLS(t *testing.T) {
	s := hubtest.New(t)
	s.Init(t)
	address, authority := s.Encrypt(t)
	s.Run(t)
	found(t, open(t, s.URL("owner", "postgres")), "alice")
	at := func(mode, authority string) string {
		return fmt.Sprintf("postgres://owner@%s/postgres?sslmode=%s&sslrootcert=%s", address, mode,
			url.QueryEscape(authority))
	}
	st, err := open(t, at("verify-full", authority)).Look(t.Context())
	if err != nil || !st.TLS || !st.Verified {
		t.Errorf("verified: %+v, %v", st, err)
	}
	st, err = open(t, fmt.Sprintf("postgres://owner@%s/postgres?sslmode=require", address)).Look(t.Context())
	if err != nil || !st.TLS || st.Verified {
		t.Errorf("not verified: %+v, %v", st, err)
	}
	var unknown x509.UnknownAuthorityError
	if _, err := open(t, at("verify-full", hubtest.Authority(t, nil))).Look(t.Context()); !errors.As(err, &unknown) {
		t.Errorf("another server in its place: %v", err)
	}
}
