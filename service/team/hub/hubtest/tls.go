//go:build linux

package hubtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Encrypt lets the server also listen on a loopback address, with a self-signed certificate. It
// takes effect at the next Run and must follow Init. It returns the address and the file of the
// certificate.
func (s *Server) Encrypt(t testing.TB) (address, authority string) {
	t.Helper()
	// The address is different for each process, so the usual port is free.
	address = fmt.Sprintf("127.%d.%d.1", 1+os.Getpid()/250%250, os.Getpid()%250)
	cert, key := selfSigned(t, net.ParseIP(address))
	for name, b := range map[string][]byte{"server.crt": cert, "server.key": key} {
		path := filepath.Join(s.data, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if o := owner(); o != nil {
			if err := os.Chown(path, int(o.Uid), int(o.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.options = append(s.options, "ssl=on", "listen_addresses="+address)
	return address, Authority(t, cert)
}

// Authority writes a certificate to a file. Without one it writes a new certificate that no server
// has.
func Authority(t testing.TB, cert []byte) string {
	t.Helper()
	if cert == nil {
		cert, _ = selfSigned(t, net.IPv4zero)
	}
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// selfSigned makes a certificate for an address, and its key, in PEM.
func selfSigned(t testing.TB, ip net.IP) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{ip}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}
