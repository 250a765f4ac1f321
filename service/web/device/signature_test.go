package device

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestVector checks that the example of RFC 9421, B.2.4, verifies with the key of B.1.3, and that a
// changed byte fails.
func TestVector(t *testing.T) {
	block, _ := pem.Decode([]byte(`-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lf
w0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==
-----END PUBLIC KEY-----
`))
	key, err := keyOfRecord(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := base64.StdEncoding.DecodeString(
		"wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw==")
	if err != nil {
		t.Fatal(err)
	}
	const text = `"@status": 200
"content-type": application/json
"content-digest": sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:
"content-length": 23
"@signature-params": ("@status" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-ecc-p256"`
	if !verify(key, []byte(text), sig) {
		t.Error("the example does not verify")
	}
	another, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{
		"another text":     verify(key, []byte(text+" "), sig),
		"another key":      verify(&another.PublicKey, []byte(text), sig),
		"no key":           verify(nil, []byte(text), sig),
		"shorter":          verify(key, []byte(text), sig[:63]),
		"longer":           verify(key, []byte(text), append(sig[:64:64], 0)),
		"zeros":            verify(key, []byte(text), make([]byte, 64)),
		"r and s the same": verify(key, []byte(text), append(sig[:32:32], sig[:32]...)),
	} {
		if ok {
			t.Errorf("%s verifies", name)
		}
	}
}

// TestBase checks the signature base against RFC 9421, section 2.5.
func TestBase(t *testing.T) {
	u, err := url.Parse("/v1/runs/a%2Fb?x=1&y=%20")
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Method: "GET", Host: "Perlica.Example:8443", URL: u}
	const want = `"@method": GET
"@authority": perlica.example:8443
"@path": /v1/runs/a%2Fb
"@query": ?x=1&y=%20
"content-digest": sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:
"@signature-params": (x)`
	if got := string(base(r, u.EscapedPath(), digestOf(nil), "(x)")); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// input is a field Signature-Input in its one form.
const input = `perlica=("@method" "@authority" "@path" "@query" "content-digest");created=1700000000;nonce="` +
	`AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.BBBBBBBBBBBBBBBB";keyid="abcdefghij";alg="ecdsa-p256-sha256"`

// TestOneForm checks that signatures in other forms are refused, also where RFC 9421 allows them.
func TestOneForm(t *testing.T) {
	sig := "perlica=:" + base64.StdEncoding.EncodeToString(make([]byte, 64)) + ":"
	read := func(input, sig string) error {
		_, err := parseSigned(http.Header{"Signature-Input": {input}, "Signature": {sig}, "Content-Digest": {digestOf(nil)}})
		return err
	}
	if err := read(input, sig); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", " " + input, input + " ", input + ";expires=1", input + ", " + input,
		strings.Replace(input, "perlica=", "sig1=", 1),
		strings.Replace(input, `"@query" `, "", 1), strings.Replace(input, `"@method" "@authority"`, `"@authority" "@method"`,
			1),
		strings.Replace(input, `"@path"`, `"@path";req`, 1), strings.Replace(input, `" "`, `"  "`, 1),
		strings.Replace(input, "created=1", "created=-1", 1),
		strings.Replace(input, "created=1", "created=01", 1), strings.Replace(input, "created=1700000000",
			"created=17000000000000", 1),
		strings.Replace(input, ".B", "B", 1), strings.Replace(input, "AAA", `A\"A`, 1),
		strings.Replace(input, "abcdefghij", "ABCDEFGHIJ", 1),
		strings.Replace(input, "ecdsa-p256-sha256", "hmac-sha256", 1),
		strings.Replace(input, `;alg="ecdsa-p256-sha256"`, "", 1),
		input + "\n",
	} {
		if err := read(bad, sig); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q is read: %v", bad, err)
		}
	}
	for _, bad := range []string{
		"", sig[:len(sig)-1], strings.TrimPrefix(sig, "perlica="), strings.Replace(sig, "=:", "=: ", 1), sig + ", " + sig,
		"perlica=:" + base64.StdEncoding.EncodeToString(make([]byte, 63)) + ":",
		"perlica=:" + base64.RawURLEncoding.EncodeToString(make([]byte, 64)) + ":",
		strings.Replace(sig, "A==:", "B==:", 1), strings.Replace(sig, "AAAA", "AA\nAA", 1),
	} {
		if err := read(input, bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("the signature %q is read: %v", bad, err)
		}
	}
}

// TestKeys checks that a public key must be a point of P-256.
func TestKeys(t *testing.T) {
	enc := base64.RawURLEncoding
	g := elliptic.P256().Params()
	good := JWK{"EC", "P-256", enc.EncodeToString(g.Gx.FillBytes(make([]byte, 32))),
		enc.EncodeToString(g.Gy.FillBytes(make([]byte, 32)))}
	der, err := good.record()
	if err != nil {
		t.Fatal(err)
	}
	if key, err := keyOfRecord(der); err != nil || string(recordOf(key)) != string(der) {
		t.Errorf("read again: %v", err)
	}
	for name, change := range map[string]func(k *JWK){
		"another type":  func(k *JWK) { k.Type = "RSA" },
		"another curve": func(k *JWK) { k.Curve = "P-384" },
		"no point":      func(k *JWK) { k.Y = k.X },
		"zero": func(k *JWK) {
			k.X, k.Y = enc.EncodeToString(make([]byte, 32)),
				enc.EncodeToString(make([]byte, 32))
		},
		"too short": func(k *JWK) { k.X = enc.EncodeToString(make([]byte, 31)) },
		"padded":    func(k *JWK) { k.X += "=" },
		"empty":     func(k *JWK) { k.X, k.Y = "", "" },
	} {
		bad := good
		change(&bad)
		if _, err := bad.record(); !errors.Is(err, ErrKey) {
			t.Errorf("%s: got %v; want errors.Is(err, ErrKey)", name, err)
		}
	}
	rsa := "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAL8eJ5AKoIsjURpcEoGubZMxLD7+kT+TLr7UkvEtFrRhDDKMtuIIq19FrL4pUIMymPMSLBn3hJLe30Dw48GQM4UCAwEAAQ=="
	b, err := base64.StdEncoding.DecodeString(rsa)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x509.ParsePKIXPublicKey(b); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{b, nil, der[:len(der)-1]} {
		if _, err := keyOfRecord(bad); !errors.Is(err, ErrKey) {
			t.Errorf("%x: got %v; want errors.Is(err, ErrKey)", bad, err)
		}
	}
}

// FuzzSigned checks that the parsed headers can be written again unchanged.
func FuzzSigned(f *testing.F) {
	sig := "perlica=:" + base64.StdEncoding.EncodeToString(make([]byte, 64)) + ":"
	f.Add(input, sig, digestOf(nil), "Bearer perlica_tok_"+strings.Repeat("a", 36))
	f.Add(strings.Replace(input, "created=1", "created=1e", 1), sig+":", "", "bearer x")
	f.Fuzz(func(t *testing.T, in, sig, digest, bearer string) {
		s, err := parseSigned(http.Header{"Signature-Input": {in}, "Signature": {sig}, "Content-Digest": {digest}})
		if err == nil {
			again := "perlica=" + s.params
			if again != in || "perlica=:"+base64.StdEncoding.EncodeToString(s.sig)+":" != sig || s.digest != digest ||
				!strings.Contains(in, `keyid="`+s.key+`"`) || !strings.Contains(in, `nonce="`+s.nonce+`"`) ||
				!strings.HasPrefix(s.nonce, s.server+".") {
				t.Errorf("%q, %q are read as %+v", in, sig, s)
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("got %v; want errors.Is(err, ErrMalformed)", err)
		}
		if m := bearerForm().FindStringSubmatch(bearer); m != nil &&
			(bearer != "Bearer "+m[1] || len(m[1]) != len(tokenPrefix)+36) {
			t.Errorf("%q is read as %q", bearer, m)
		}
	})
}
