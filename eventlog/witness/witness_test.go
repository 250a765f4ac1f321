package witness

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// server is a witness that follows https://c2sp.org/tlog-witness.
type server struct {
	name   string
	secret ed25519.PrivateKey
	known  note.Verifiers // keys of logs
	time   uint64         // time of its signatures

	mu sync.Mutex
	// logs has the largest checkpoint that the witness saw, by origin. A size of 0 means that the witness knows the
	// log and saw no tree of it.
	logs map[string]evidence.Checkpoint
	seen []string // request bodies
}

func newServer(t *testing.T, name string, keys ...note.Verifier) (*server, *httptest.Server) {
	t.Helper()
	_, secret, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{name: name, secret: secret, known: note.VerifierList(keys...), time: 1763694000,
		logs: map[string]evidence.Checkpoint{}}
	for _, k := range keys {
		s.logs[k.Name()] = evidence.Checkpoint{}
	}
	mux := http.NewServeMux()
	mux.Handle("POST /w/add-checkpoint", s)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return s, web
}

// vkey returns the verifier key of the witness.
func (s *server) vkey() string {
	key := append([]byte{4}, s.secret.Public().(ed25519.PublicKey)...)
	return fmt.Sprintf("%s+%08x+%s", s.name, s.keyID(), base64.StdEncoding.EncodeToString(key))
}

func (s *server) keyID() uint32 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n\x04%s", s.name, s.secret.Public().(ed25519.PublicKey)))
	return binary.BigEndian.Uint32(sum[:])
}

// cosignLine returns a signature line of type cosignature/v1.
func (s *server) cosignLine(c evidence.Checkpoint) string {
	sig := ed25519.Sign(s.secret, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", s.time, c.Text()))
	b := binary.BigEndian.AppendUint32(nil, s.keyID())
	b = binary.BigEndian.AppendUint64(b, s.time)
	return "— " + s.name + " " + base64.StdEncoding.EncodeToString(append(b, sig...)) + "\n"
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	s.seen = append(s.seen, string(body))
	head, msg, ok := strings.Cut(string(body), "\n\n")
	lines := strings.Split(head, "\n")
	digits, ok2 := strings.CutPrefix(lines[0], "old ")
	old, err := strconv.ParseInt(digits, 10, 64)
	c, cerr := evidence.ParseCheckpoint(msg)
	if !ok || !ok2 || err != nil || cerr != nil || len(lines) > 64 {
		http.Error(w, "malformed", http.StatusBadRequest)
		return
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		b, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(b) != 32 {
			http.Error(w, "malformed proof", http.StatusBadRequest)
			return
		}
		proof = append(proof, tlog.Hash(b))
	}
	last, ok := s.logs[c.Origin]
	if !ok {
		http.Error(w, "unknown origin", http.StatusNotFound)
		return
	}
	if _, err := note.Open([]byte(msg), s.known); err != nil {
		http.Error(w, "no known key", http.StatusForbidden)
		return
	}
	switch {
	case old > c.Size:
		http.Error(w, "old is larger", http.StatusBadRequest)
	case old != last.Size:
		w.Header().Set("Content-Type", "text/x.tlog.size")
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintln(w, last.Size)
	case old == 0 && len(proof) > 0,
		old > 0 && old == c.Size && (c.Root != last.Root || len(proof) > 0),
		old > 0 && old < c.Size && tlog.CheckTree(proof, c.Size, c.Root, old, last.Root) != nil:
		http.Error(w, "inconsistent", http.StatusUnprocessableEntity)
	default:
		s.logs[c.Origin] = c
		io.WriteString(w, s.cosignLine(c))
	}
}

// fact returns an event that ends a run.
func fact() event.Event {
	return event.NewFact(event.CallEnforced, "test", event.Refs{}, struct{}{})
}

type fixture struct {
	path string
	log  *eventlog.Log
	keys *evidence.Keys
}

// openLog opens a signed log with n events.
func openLog(t *testing.T, n int) *fixture {
	t.Helper()
	dir := t.TempDir()
	keys, err := evidence.MakeKeys(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{path: filepath.Join(dir, "eventlog.db"), keys: keys}
	f.log, err = eventlog.Open(t.Context(), f.path, eventlog.Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.log.Close() })
	f.grow(t, n)
	return f
}

func (f *fixture) grow(t *testing.T, n int) {
	t.Helper()
	for range n {
		if _, err := f.log.Append(t.Context(), fact()); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *fixture) checkpoint(t *testing.T) evidence.Checkpoint {
	t.Helper()
	c, err := f.log.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (f *fixture) verifiers(t *testing.T) []note.Verifier {
	t.Helper()
	name, err := f.log.Origin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f.keys.Verifiers(name)
}

func TestCosign(t *testing.T) {
	f := openLog(t, 5)
	s, web := newServer(t, "witness.example", f.verifiers(t)...)
	key, err := evidence.NewVerifier(s.vkey())
	if err != nil {
		t.Fatal(err)
	}
	w := &Witness{URL: web.URL + "/w/", Keys: []note.Verifier{key}, Client: web.Client()}
	for _, more := range []int{0, 1, 3, 0, 20} {
		f.grow(t, more)
		c := f.checkpoint(t)
		got, err := w.Cosign(t.Context(), &f.log.Reader, c)
		if err != nil {
			t.Fatalf("%d more: %v", more, err)
		}
		by, err := got.Signatures(append(f.verifiers(t), key)...)
		if err != nil || len(by) != 2 || by[1].Name != "witness.example" || by[1].Time.Unix() != 1763694000 ||
			!strings.HasPrefix(got.Note, c.Note) {
			t.Errorf("%d more: signed by %+v, %v", more, by, err)
		}
		if err := f.log.StoreCheckpoint(t.Context(), got.Note); err != nil {
			t.Error(err)
		}
		again, err := w.Cosign(t.Context(), &f.log.Reader, got)
		if err != nil || again.Note != got.Note {
			t.Errorf("once more: %v\n%s", err, again.Note)
		}
	}
	for _, body := range s.seen {
		if strings.Contains(body, "{") {
			t.Errorf("more than hashes was sent: %s", body)
		}
	}
}

// TestRewrittenLog checks that a witness does not sign a rewritten log with the same name and key.
func TestRewrittenLog(t *testing.T) {
	f := openLog(t, 9)
	s, web := newServer(t, "witness.example", f.verifiers(t)...)
	w := &Witness{URL: web.URL + "/w", Client: web.Client()}
	if _, err := w.Cosign(t.Context(), &f.log.Reader, f.checkpoint(t)); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	origin := f.verifiers(t)[0].Name()
	other := s.logs[origin]
	other.Root[0] ^= 1
	s.logs[origin] = other
	s.mu.Unlock()
	if _, err := w.Cosign(t.Context(), &f.log.Reader, f.checkpoint(t)); !errors.Is(err, ErrInconsistent) {
		t.Errorf("the same size: %v", err)
	}
	f.grow(t, 4)
	if _, err := w.Cosign(t.Context(), &f.log.Reader, f.checkpoint(t)); !errors.Is(err, ErrInconsistent) {
		t.Errorf("larger: %v", err)
	}
	s.mu.Lock()
	other.Size = 1000
	s.logs[origin] = other
	s.mu.Unlock()
	if _, err := w.Cosign(t.Context(), &f.log.Reader, f.checkpoint(t)); !errors.Is(err, ErrLarger) {
		t.Errorf("put back to yesterday: %v", err)
	}
}

func TestStrangers(t *testing.T) {
	f := openLog(t, 3)
	_, web := newServer(t, "witness.example")
	w := &Witness{URL: web.URL + "/w", Client: web.Client()}
	if _, err := w.Cosign(t.Context(), &f.log.Reader, f.checkpoint(t)); !errors.Is(err, ErrUnknownLog) ||
		!strings.Contains(err.Error(), "unknown origin") {
		t.Errorf("an unknown log: %v", err)
	}
	name := f.verifiers(t)[0].Name()
	theirs, err := evidence.MakeKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, web = newServer(t, "witness.example", theirs.Verifiers(name)...)
	w.URL = web.URL + "/w"
	if _, err := w.Cosign(t.Context(), &f.log.Reader, f.checkpoint(t)); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("an unknown key: %v", err)
	}
	web.Close()
	if _, err := w.Cosign(t.Context(), &f.log.Reader, f.checkpoint(t)); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
}

// TestRace checks a submission during which another client submits a checkpoint, between the two requests.
func TestRace(t *testing.T) {
	f := openLog(t, 3)
	s, _ := newServer(t, "witness.example", f.verifiers(t)...)
	first := f.checkpoint(t)
	f.grow(t, 2)
	second := f.checkpoint(t)
	f.grow(t, 2)
	third := f.checkpoint(t)
	n := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		switch n++; n {
		case 1:
			s.logs[first.Origin] = first
		case 2:
			s.logs[first.Origin] = second
		}
		s.mu.Unlock()
		s.ServeHTTP(w, r)
	}))
	defer web.Close()
	w := &Witness{URL: web.URL, Client: web.Client()}
	if _, err := w.Cosign(t.Context(), &f.log.Reader, third); err != nil || n != 3 {
		t.Errorf("%d requests, %v", n, err)
	}
}

// TestBadAnswers checks that no bad answer counts as a cosignature.
func TestBadAnswers(t *testing.T) {
	f := openLog(t, 3)
	s, _ := newServer(t, "witness.example", f.verifiers(t)...)
	stranger, _ := newServer(t, "witness.example")
	key, err := evidence.NewVerifier(s.vkey())
	if err != nil {
		t.Fatal(err)
	}
	c := f.checkpoint(t)
	other := c
	other.Size++
	undated := &server{name: s.name, secret: s.secret}
	own := c.Note[len(c.Text())+1:]
	size := map[string]string{"Content-Type": "text/x.tlog.size"}
	for name, tc := range map[string]struct {
		status int
		head   map[string]string
		body   string
		want   error
	}{
		"another checkpoint": {200, nil, s.cosignLine(other), ErrCosignature},
		"another's":          {200, nil, stranger.cosignLine(c), ErrCosignature},
		"without a time":     {200, nil, undated.cosignLine(c), ErrCosignature},
		"nothing":            {200, nil, "", ErrCosignature},
		"the log's own":      {200, nil, own, ErrCosignature},
		"HTML":               {200, nil, "<html>", errProtocol},
		"no newline":         {200, nil, strings.TrimSuffix(s.cosignLine(c), "\n"), errProtocol},
		"a flood":            {200, nil, strings.Repeat("— x AAAAAAAA\n", 10_000), errProtocol},
		"409, no type":       {409, map[string]string{"Content-Type": "text/plain"}, "1\n", errProtocol},
		"409, no size":       {409, size, "one\n", errProtocol},
		"409, negative":      {409, size, "-1\n", errProtocol},
		"409, no newline":    {409, size, "1", errProtocol},
		"409 for ever":       {409, size, "2\n", errProtocol},
		"a server's fault":   {500, nil, "oops", errProtocol},
		"no content":         {204, nil, "", errProtocol},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for k, v := range tc.head {
				w.Header().Set(k, v)
			}
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
		}))
		w := &Witness{URL: web.URL, Keys: []note.Verifier{key}, Client: web.Client()}
		if got, err := w.Cosign(t.Context(), &f.log.Reader, c); !errors.Is(err, tc.want) || got.Note != c.Note {
			t.Errorf("%s: %v", name, err)
		}
		w.Keys = nil
		if got, err := w.Cosign(t.Context(), &f.log.Reader, c); tc.want == errProtocol && !errors.Is(err, errProtocol) ||
			!strings.HasPrefix(got.Note, c.Note) {
			t.Errorf("%s, no key: %v", name, err)
		} else if name == "the log's own" && err == nil {
			t.Errorf("%s: taken for a witness's", name)
		}
		web.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &Witness{URL: "http://127.0.0.1:0"}
	if _, err := w.Cosign(ctx, &f.log.Reader, c); err == nil {
		t.Error("a cancelled request")
	}
}

func TestCheckURL(t *testing.T) {
	for text, ok := range map[string]bool{
		"https://witness.example/w1": true, "http://127.0.0.1:8080": true, "witness.example": false, "": false,
		"file:///etc/passwd": false, "https://": false, "https://x?y": false, "https://x#y": false, ":": false,
	} {
		if err := CheckURL(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
