// Package devicetest plays a browser in tests of package device. Its key signs requests and answers
// as the page does.
package devicetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"github.com/perlica/perlica/service/web/device"
)

// Key is a browser's private key.
type Key struct{ key *ecdsa.PrivateKey }

// NewKey makes a key.
func NewKey() Key {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the system's random numbers never fail
	}
	return Key{key}
}

// JWK returns the public key.
func (k Key) JWK() device.JWK {
	point, err := k.key.PublicKey.Bytes()
	if err != nil {
		panic(err) // the key is on its curve
	}
	enc := base64.RawURLEncoding
	return device.JWK{Type: "EC", Curve: "P-256", X: enc.EncodeToString(point[1:33]), Y: enc.EncodeToString(point[33:])}
}

// raw returns a signature in the form of WebCrypto: r and s with 32 bytes each.
func (k Key) raw(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.key, sum[:])
	if err != nil {
		panic(err) // the system's random numbers never fail
	}
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return sig
}

// Sign adds the signature of the device id over the server's nonce to a request. The request's host
// is r.Host.
func (k Key) Sign(r *http.Request, body []byte, id, nonce string) {
	k.SignAt(r, body, id, nonce, time.Now())
}

// SignAt signs with another clock.
func (k Key) SignAt(r *http.Request, body []byte, id, nonce string, created time.Time) {
	sum := sha256.Sum256(body)
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	params := fmt.Sprintf(
		`("@method" "@authority" "@path" "@query" "content-digest");created=%d;nonce="%s.%s";keyid="%s";alg="ecdsa-p256-sha256"`,
		created.Unix(), nonce, rand.Text(), id)
	base := fmt.Sprintf(
		"\"@method\": %s\n\"@authority\": %s\n\"@path\": %s\n\"@query\": ?%s\n\"content-digest\": "+
			"%s\n\"@signature-params\": %s",
		r.Method, host, r.URL.EscapedPath(), r.URL.RawQuery, digest, params)
	r.Header.Set("Content-Digest", digest)
	r.Header.Set("Signature-Input", "perlica="+params)
	r.Header.Set("Signature", "perlica=:"+base64.StdEncoding.EncodeToString(k.raw(base))+":")
}

// Request returns a simple request that the device id has signed.
func Request(k Key, d *device.Devices, id string) *http.Request {
	r, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:7333/v1/self", http.NoBody)
	if err != nil {
		panic(err) // the address is valid
	}
	k.Sign(r, nil, id, d.Nonce())
	return r
}

// SignAnswer returns the signature of an answer.
func (k Key) SignAnswer(question, digest, option string) string {
	return base64.RawURLEncoding.EncodeToString(k.raw(fmt.Sprintf("perlica-answer-1\n%s\n%s\n%s\n", question, digest,
		option)))
}
