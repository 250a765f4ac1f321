// Package pushtest is a push service for tests. It receives messages as browsers' push services do,
// checks their sender (VAPID), and decrypts them independently of the encrypting code.
package pushtest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service/web/push"
)

// Host is the name of the service. Only Transport reaches it.
const Host = "example.com"

// Message is the message that a browser would receive.
type Message struct {
	Text       string
	TTL        string
	Topic      string
	Urgency    string
	Key        string // the key of the sender
	Subscriber string
}

// Service is a push service.
type Service struct {
	server   *httptest.Server
	Messages chan Message // the valid messages
	Wrong    chan error   // the faults of the other messages

	mu     sync.Mutex
	subs   map[string]*receiver // by path
	answer func(r *http.Request) int
}

// receiver is the browser's half of a subscription.
type receiver struct {
	key  *ecdh.PrivateKey
	auth []byte
}

// New starts a service. The caller must Close it.
func New() *Service {
	s := &Service{Messages: make(chan Message, 100), Wrong: make(chan error, 100), subs: map[string]*receiver{}}
	s.server = httptest.NewTLSServer(http.HandlerFunc(s.takeMessage))
	return s
}

// Close ends the service.
func (s *Service) Close() { s.server.Close() }

// Transport reaches the service for every requested host.
func (s *Service) Transport() http.RoundTripper { return Transport(s.Address()) }

// Address is the address at which the service listens.
func (s *Service) Address() string { return s.server.Listener.Addr().String() }

// Transport reaches the service at this address for every requested host. Another process of a test can use it.
func Transport(address string) http.RoundTripper {
	return &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the service is on this machine
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
}

// SetAnswer makes f return the status of each later request. The status 0 means that the service takes the message.
func (s *Service) SetAnswer(f func(r *http.Request) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Subscribe makes a subscription as a browser does.
func (s *Service) Subscribe() push.Subscription {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // the system's random numbers never fail
	}
	r := &receiver{key, []byte(rand.Text()[:16])}
	path := "/send/" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs[path] = r
	enc := base64.RawURLEncoding
	return push.Subscription{Endpoint: "https://" + Host + path,
		Keys: push.Keys{P256dh: enc.EncodeToString(key.PublicKey().Bytes()), Auth: enc.EncodeToString(r.auth)}}
}

func (s *Service) takeMessage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	to, answer := s.subs[r.URL.Path], s.answer
	s.mu.Unlock()
	if answer != nil {
		if status := answer(r); status != 0 {
			// Otherwise the server could close the connection while the sender still writes.
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Location", "https://"+Host+"/elsewhere")
			w.WriteHeader(status)
			return
		}
	}
	m, err := read(r, to)
	if err != nil {
		s.Wrong <- err
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.Messages <- m
	w.WriteHeader(http.StatusCreated)
}

// read decrypts and parses a request.
func read(r *http.Request, to *receiver) (m Message, err error) {
	if to == nil {
		return m, fmt.Errorf("no subscription has the path %s", r.URL.Path)
	}
	m = Message{TTL: r.Header.Get("TTL"), Topic: r.Header.Get("Topic"), Urgency: r.Header.Get("Urgency")}
	if m.Key, m.Subscriber, err = sender(r); err != nil {
		return m, err
	}
	if enc := r.Header.Get("Content-Encoding"); r.Method != http.MethodPost || enc != "aes128gcm" {
		return m, fmt.Errorf("%s as %q", r.Method, enc)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 4097))
	if err == nil {
		m.Text, err = to.decrypt(body)
	}
	return m, err
}

// sender verifies the sender of a request (RFC 8292). It returns the sender's key and contact.
func sender(r *http.Request) (key, contact string, err error) {
	var token string
	for part := range strings.SplitSeq(strings.TrimPrefix(r.Header.Get("Authorization"), "vapid "), ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "t":
			token = value
		case "k":
			key = value
		}
	}
	enc := base64.RawURLEncoding
	point, err := enc.DecodeString(key)
	parts := strings.Split(token, ".")
	if err != nil || len(parts) != 3 {
		return "", "", fmt.Errorf("the Authorization is %q", r.Header.Get("Authorization"))
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	sig, serr := enc.DecodeString(parts[2])
	if err != nil || serr != nil || len(sig) != 64 {
		return "", "", errors.Join(errors.New("no key or no signature"), err, serr)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		return "", "", errors.New("the token's signature is wrong")
	}
	var head struct{ Typ, Alg string }
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err := errors.Join(part(parts[0], &head), part(parts[1], &claims)); err != nil {
		return "", "", err
	}
	left := time.Until(time.Unix(claims.Exp, 0))
	if head.Typ != "JWT" || head.Alg != "ES256" || claims.Aud != "https://"+Host || left <= 0 || left > 24*time.Hour {
		return "", "", fmt.Errorf("the token says %+v %+v", head, claims)
	}
	if !strings.HasPrefix(claims.Sub, "mailto:") && !strings.HasPrefix(claims.Sub, "https:") {
		return "", "", fmt.Errorf("the token's sub is %q", claims.Sub)
	}
	return key, claims.Sub, nil
}

func part(text string, v any) error {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// decrypt does the browser's part of RFC 8291.
func (to *receiver) decrypt(body []byte) (string, error) {
	const head = 16 + 4 + 1
	if len(body) < head || len(body) < head+int(body[20]) || len(body) > 4096 {
		return "", fmt.Errorf("a body of %d bytes", len(body))
	}
	salt, size, id := body[:16], binary.BigEndian.Uint32(body[16:20]), body[head:head+int(body[20])]
	record := body[head+len(id):]
	from, err := ecdh.P256().NewPublicKey(id)
	if err != nil {
		return "", err
	}
	if uint32(len(record)) > size {
		return "", fmt.Errorf("more than the one record of %d bytes", size)
	}
	shared, err := to.key.ECDH(from)
	if err != nil {
		return "", err
	}
	info := "WebPush: info\x00" + string(to.key.PublicKey().Bytes()) + string(id)
	ikm, err := hkdf.Key(sha256.New, shared, to.auth, info, 32)
	key, kerr := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	nonce, nerr := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err := errors.Join(err, kerr, nerr); err != nil {
		return "", err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	plain, err := gcm.Open(nil, nonce, record, nil)
	if err != nil {
		return "", err
	}
	text, ends := strings.CutSuffix(strings.TrimRight(string(plain), "\x00"), "\x02")
	if !ends {
		return "", errors.New("the record is not the last one")
	}
	return text, nil
}
