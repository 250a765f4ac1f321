package device

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/message"
)

// A browser signs each request as RFC 9421 describes, in one fixed form:
//
//	Content-Digest: sha-256=:BASE64:
//	Signature-Input: perlica=("@method" "@authority" "@path" "@query" "content-digest");created=UNIX;nonce="SERVERS.RANDOM";keyid="DEVICE";alg="ecdsa-p256-sha256"
//	Signature: perlica=:BASE64:
//
// This package accepts no other form: no other component, parameter, order, label or space, and no second field. The
// package uses no library, because a library accepts the general form, and the package would then have to refuse the
// other forms itself.

// publicKey is a device's public key on the curve P-256.
type publicKey = *ecdsa.PublicKey

// JWK is a public key as a browser exports it (RFC 7517, 7518 section 6.2.1).
type JWK struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	Y     string `json:"y"`
}

// ErrKey says that the key is not a public key on the curve P-256.
var ErrKey = message.New("device.key", "the key is not a public key on the curve P-256")

// record encodes the key as SubjectPublicKeyInfo.
func (k JWK) record() ([]byte, error) {
	if k.Type != "EC" || k.Curve != "P-256" {
		return nil, ErrKey
	}
	point := []byte{4} // uncompressed
	for _, part := range []string{k.X, k.Y} {
		b, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil || len(b) != 32 {
			return nil, ErrKey
		}
		point = append(point, b...)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return nil, ErrKey
	}
	return x509.MarshalPKIXPublicKey(key)
}

// keyOfRecord decodes the form that record encodes.
func keyOfRecord(der []byte) (publicKey, error) {
	any, err := x509.ParsePKIXPublicKey(der)
	key, ok := any.(*ecdsa.PublicKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, ErrKey
	}
	return key, nil
}

// recordOf encodes a key for keyOfRecord. It returns nil for a missing key.
func recordOf(key publicKey) []byte {
	if key == nil {
		return nil
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		// A decoded key can always be encoded.
		return nil
	}
	return der
}

// verify reports whether sig is a signature over a text. sig holds r and s with 32 bytes each
// (section 3.3.4).
func verify(key publicKey, text, sig []byte) bool {
	if key == nil || len(sig) != 64 {
		return false
	}
	sum := sha256.Sum256(text)
	return ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
}

// signed holds the signature headers of a request.
type signed struct {
	params  string // the signature parameters (section 2.3), unchanged
	created time.Time
	server  string // the server's part of the nonce
	nonce   string // the whole nonce
	key     string // the device's id
	sig     []byte
	digest  string // the field Content-Digest
}

// inputForm is the only accepted form of the field Signature-Input (section 4.1).
var inputForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^perlica=(\("@method" "@authority" "@path" "@query" "content-digest"\)` +
		`;created=([1-9][0-9]{0,11});nonce="(([A-Za-z0-9_-]{32})\.[A-Za-z0-9_-]{16,64})";keyid="([a-z0-9]{10})";alg="ecdsa-p256-sha256")$`)
})

// parseSigned reads the headers of a signed request. Its error is ErrMalformed.
func parseSigned(h http.Header) (signed, error) {
	input, ok1 := single(h, "Signature-Input")
	sig, ok2 := single(h, "Signature")
	digest, ok3 := single(h, "Content-Digest")
	m := inputForm().FindStringSubmatch(input)
	if !ok1 || !ok2 || !ok3 || m == nil {
		return signed{}, ErrMalformed
	}
	sig, ok1 = strings.CutPrefix(sig, "perlica=:")
	sig, ok2 = strings.CutSuffix(sig, ":")
	b, berr := base64.StdEncoding.Strict().DecodeString(sig)
	created, cerr := strconv.ParseInt(m[2], 10, 64)
	if !ok1 || !ok2 || berr != nil || len(b) != 64 || strings.ContainsAny(sig, "\r\n") || cerr != nil {
		return signed{}, ErrMalformed
	}
	return signed{m[1], time.Unix(created, 0), m[4], m[3], m[5], b, digest}, nil
}

// single returns the value of a field that occurs exactly once.
func single(h http.Header, name string) (string, bool) {
	list := h.Values(name)
	if len(list) != 1 {
		return "", false
	}
	return list[0], true
}

// digestOf returns the field Content-Digest (RFC 9530) of a body.
func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// base returns the signature base of a request (section 2.5). The parameter path is the path that the browser
// requested.
func base(r *http.Request, path, digest, params string) []byte {
	return fmt.Appendf(nil,
		"\"@method\": %s\n\"@authority\": %s\n\"@path\": %s\n\"@query\": ?%s\n\"content-digest\": "+
			"%s\n\"@signature-params\": %s",
		r.Method, strings.ToLower(r.Host), path, r.URL.RawQuery, digest, params)
}

// An Answer is a person's choice, signed by the person's device.
type Answer struct {
	Question string
	Digest   string // the digest of the shown question
	Option   string
	// Signature is a signature in base64url over the text of the other three fields. It is empty in the answer of a
	// program.
	Signature string
}

// CheckAnswer fails unless the visitor's device has signed the answer. A program must not have a
// signature. The error is ErrSignature.
func (v Visitor) CheckAnswer(a Answer) error {
	if v.Token {
		if a.Signature != "" {
			return ErrSignature
		}
		return nil
	}
	key, err := keyOfRecord(v.Key)
	sig, serr := base64.RawURLEncoding.Strict().DecodeString(a.Signature)
	text := fmt.Sprintf("perlica-answer-1\n%s\n%s\n%s\n", a.Question, a.Digest, a.Option)
	if err != nil || serr != nil || strings.Count(text, "\n") != 4 || !verify(key, []byte(text), sig) {
		return ErrSignature
	}
	return nil
}
