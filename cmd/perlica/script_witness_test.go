package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/evidence"
)

func init() { scriptCommands["witness"] = cmdWitness }

// scriptWitness is a tlog-witness that signs for one log.
type scriptWitness struct {
	secret ed25519.PrivateKey
	key    string // verifier key of the witness
	id     []byte

	mu   sync.Mutex
	log  note.Verifier
	last evidence.Checkpoint
}

// cmdWitness starts a witness that signs for the log with a verifier key. It sets WITNESS to the witness's address
// and WITNESS_KEY to the witness's key. "none" makes a witness that knows no log:
//
//	witness KEY|none
func cmdWitness(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: witness KEY|none")
	}
	public, secret, err := ed25519.GenerateKey(nil)
	ts.Check(err)
	w := &scriptWitness{secret: secret}
	sum := sha256.Sum256(append([]byte("witness.example\n\x04"), public...))
	w.id = sum[:4]
	w.key = fmt.Sprintf("witness.example+%x+%s", w.id, base64.StdEncoding.EncodeToString(append([]byte{4}, public...)))
	if args[0] != "none" {
		w.log, err = note.NewVerifier(args[0])
		ts.Check(err)
	}
	server := httptest.NewServer(w)
	ts.Defer(server.Close)
	ts.Setenv("WITNESS", server.URL)
	ts.Setenv("WITNESS_KEY", w.key)
}

func (w *scriptWitness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	head, msg, _ := strings.Cut(string(body), "\n\n")
	lines := strings.Split(head, "\n")
	old, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
	c, cerr := evidence.ParseCheckpoint(msg)
	if err != nil || cerr != nil || r.URL.Path != "/add-checkpoint" || r.Method != http.MethodPost {
		http.Error(out, "malformed", http.StatusBadRequest)
		return
	}
	var path tlog.TreeProof
	for _, line := range lines[1:] {
		b, _ := base64.StdEncoding.DecodeString(line)
		path = append(path, tlog.Hash(b))
	}
	var known []note.Verifier
	if w.log != nil {
		known = append(known, w.log)
	}
	switch _, err := note.Open([]byte(msg), note.VerifierList(known...)); {
	case w.log == nil || w.log.Name() != c.Origin:
		http.Error(out, "unknown log", http.StatusNotFound)
	case err != nil:
		http.Error(out, "unknown key", http.StatusForbidden)
	case old != w.last.Size:
		out.Header().Set("Content-Type", "text/x.tlog.size")
		out.WriteHeader(http.StatusConflict)
		fmt.Fprintln(out, w.last.Size)
	case old == c.Size && c.Root != w.last.Root, 0 < old && old < c.Size &&
		tlog.CheckTree(path, c.Size, c.Root, old, w.last.Root) != nil:
		http.Error(out, "inconsistent", http.StatusUnprocessableEntity)
	default:
		const at = 1763694000
		sig := binary.BigEndian.AppendUint64(w.id[:4:4], at)
		sig = append(sig, ed25519.Sign(w.secret, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, c.Text()))...)
		fmt.Fprintf(out, "— witness.example %s\n", base64.StdEncoding.EncodeToString(sig))
		w.last = c
	}
}
