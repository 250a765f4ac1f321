package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Proof shows that an event is on a log to somebody who has not got the log: the event, the
// hashes that lead from its leaf to the root, and a signed checkpoint with that root.
//
// As text it is a https://c2sp.org/tlog-proof whose extra data is the event as JSON: the header
// is what the leaf is made of, and the payload what the header has the hash of.
type Proof struct {
	Event      Event
	Path       []tlog.Hash
	Checkpoint Checkpoint
}

// What can be wrong with a proof.
var (
	// ErrNoCheckpoint says that no signed checkpoint covers what is to be proven.
	ErrNoCheckpoint = errors.New("no signed checkpoint covers it")
	// ErrProof says that something does not prove what it should.
	ErrProof = errors.New("it proves nothing")
)

const proofHeader = "c2sp.org/tlog-proof@v1"

// Prove returns the proof that event seq is on the log, by the newest signed checkpoint stored
// with it. It reads some hundred rows, however long the log is. The error wraps ErrNoCheckpoint if
// no checkpoint covers the event, and ErrNotExist if there is no such event.
func (r *Reader) Prove(ctx context.Context, seq Seq) (Proof, error) {
	p, err := r.prove(ctx, seq)
	if err != nil {
		return p, fmt.Errorf("eventlog: prove event %d: %w", seq, err)
	}
	return p, nil
}

func (r *Reader) prove(ctx context.Context, seq Seq) (p Proof, err error) {
	if p.Event, err = r.proven(ctx, seq); err != nil {
		return p, err
	}
	c, ok, err := r.LastCheckpoint(ctx, int64(seq))
	if err != nil {
		return p, err
	}
	if !ok {
		return p, ErrNoCheckpoint
	}
	p.Checkpoint = c
	if p.Path, err = tlog.ProveRecord(c.Size, int64(seq)-1, r.hashes(ctx)); err != nil {
		return p, err
	}
	if err := p.included(); err != nil { // the tree is another one than was signed
		return p, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return p, nil
}

// proven returns an event as it goes into a proof.
func (r *Reader) proven(ctx context.Context, seq Seq) (e Event, err error) {
	if seq < 1 {
		return e, ErrNotExist
	}
	for e, err := range r.Events(ctx, Query{After: seq - 1, Until: seq}) {
		if err == nil && e.Payload == nil {
			e.Withheld, err = r.whyWithheld(ctx, &e)
		}
		return e, err
	}
	return e, ErrNotExist
}

// whyWithheld says why an event has no payload.
func (r *Reader) whyWithheld(ctx context.Context, e *Event) (string, error) {
	if r.version >= 2 {
		var why []string
		if err := r.db.SelectContext(ctx, &why, `SELECT why FROM withheld WHERE seq = ?`, int64(e.Seq)); err != nil {
			return "", explain(err)
		}
		if len(why) > 0 {
			return why[0], nil
		}
	}
	for later, err := range r.Events(ctx, Query{After: e.Seq, Types: []Type{LogPruned}}) {
		if err != nil {
			return "", err
		}
		var p Pruning
		if later.Decode(&p) == nil && p.Covers(e) {
			return Pruned, nil
		}
	}
	return Missing, nil
}

// Verify returns who of the known keys signed the checkpoint, if the proof holds: the payload, if
// it is there, is the header's, the header's leaf is in the checkpoint's tree, and a key of the
// log's own name signed the checkpoint. Else the error wraps ErrProof.
func (p Proof) Verify(known ...note.Verifier) ([]Signature, error) {
	if err := p.included(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return p.Checkpoint.own(known)
}

// included reports what speaks against the event's being in the checkpoint's tree.
func (p Proof) included() error {
	e := p.Event
	switch {
	case e.Payload != nil && (int64(len(e.Payload)) != e.PayloadLen || sha256.Sum256(e.Payload) != e.PayloadSHA256):
		return errors.New("the payload is not the one that was recorded: its hash is another")
	case e.Leaf() != e.LeafHash:
		return errors.New("the header is not the one that was recorded: its hash is another")
	case int64(e.Seq) > p.Checkpoint.Size:
		return fmt.Errorf("the checkpoint covers %d events, and this is number %d", p.Checkpoint.Size, e.Seq)
	}
	if tlog.CheckRecord(p.Path, p.Checkpoint.Size, p.Checkpoint.Root, int64(e.Seq)-1, e.LeafHash) != nil {
		return errors.New("the event is not in the checkpoint's tree: the hashes lead to another root")
	}
	return nil
}

// own returns the signatures of known keys, of which one must be the log's own: its name is that
// of the log.
func (c Checkpoint) own(known []note.Verifier) ([]Signature, error) {
	list, err := c.Signatures(known...)
	var bad *note.InvalidSignatureError
	var none *note.UnverifiedNoteError
	switch {
	case errors.As(err, &bad):
		return nil, fmt.Errorf("%w: the signature of %s does not hold", ErrProof, bad.Name)
	case errors.As(err, &none):
		return nil, fmt.Errorf("%w: none of the keys given signed the checkpoint of %d events; it takes %s", ErrProof, c.Size, c.needs())
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	for _, s := range list {
		if s.Name == c.Origin && s.Time.IsZero() {
			return list, nil
		}
	}
	return nil, fmt.Errorf("%w: no key of the log itself is among those given; the checkpoint of %d events takes %s", ErrProof, c.Size, c.needs())
}

// needs names the keys of the log's own that signed the checkpoint, by how they begin.
func (c Checkpoint) needs() string {
	var unverified *note.UnverifiedNoteError
	if _, err := note.Open([]byte(c.Note), note.VerifierList()); !errors.As(err, &unverified) {
		return "one that is not known"
	}
	var names []string
	for _, s := range unverified.Note.UnverifiedSigs {
		if s.Name == c.Origin {
			names = append(names, "the key "+keyName(s.Name, s.Hash)+"+…")
		}
	}
	if len(names) == 0 {
		return "a checkpoint that " + c.Origin + " itself signed"
	}
	return strings.Join(names, " or ")
}

// SignedBy returns which of the verifier keys, as text, signed the checkpoint, and an empty text
// if none of them did.
func (c Checkpoint) SignedBy(keys []string) string {
	for _, key := range keys {
		if v, err := NewVerifier(key); err == nil {
			if _, err := c.own([]note.Verifier{v}); err == nil {
				return key
			}
		}
	}
	return ""
}

// MarshalText writes the proof as https://c2sp.org/tlog-proof has it.
func (p Proof) MarshalText() ([]byte, error) {
	event, err := json.Marshal(p.Event)
	if err != nil {
		return nil, fmt.Errorf("eventlog: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nextra %s\nindex %d\n", proofHeader, base64.StdEncoding.EncodeToString(event), p.Event.Seq-1)
	writeHashes(&b, p.Path)
	fmt.Fprintf(&b, "\n%s", p.Checkpoint.Note)
	return []byte(b.String()), nil
}

func writeHashes(b *strings.Builder, list []tlog.Hash) {
	for _, h := range list {
		fmt.Fprintln(b, h)
	}
}

// maxPath is more hashes than lead to the root of any tree.
const maxPath = 128

// readHashes reads lines of a hash each, up to an empty line, and returns what is behind it.
func readHashes(text string) (list []tlog.Hash, rest string, err error) {
	for len(list) <= maxPath {
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			break
		}
		if line == "" {
			return list, rest, nil
		}
		h, err := parseHash(line)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %q is no hash", ErrProof, line)
		}
		list, text = append(list, h), rest
	}
	return nil, "", fmt.Errorf("%w: there is no empty line behind its hashes", ErrProof)
}

// ParseProof reads a proof of an event of Perlica's. Whether it holds is what Verify says. The
// error wraps ErrProof.
func ParseProof(text string) (p Proof, err error) {
	head, text, _ := strings.Cut(text, "\n")
	extra, text, _ := strings.Cut(text, "\n")
	index, text, _ := strings.Cut(text, "\n")
	if head != proofHeader {
		return p, fmt.Errorf("%w: it begins with neither %q nor %q", ErrProof, proofHeader, consistencyHeader)
	}
	data, ok := strings.CutPrefix(extra, "extra ")
	if !ok {
		return p, fmt.Errorf("%w: it holds no event", ErrProof)
	}
	event, err := base64.StdEncoding.Strict().DecodeString(data)
	if err != nil {
		return p, fmt.Errorf("%w: its event is not base64: %w", ErrProof, err)
	}
	if err := json.Unmarshal(event, &p.Event); err != nil {
		return p, fmt.Errorf("%w: %w", ErrProof, err)
	}
	if index != "index "+strconv.FormatInt(int64(p.Event.Seq-1), 10) {
		return p, fmt.Errorf("%w: the event is number %d, but it says %q", ErrProof, p.Event.Seq, index)
	}
	if p.Path, text, err = readHashes(text); err != nil {
		return p, err
	}
	if p.Checkpoint, err = ParseCheckpoint(text); err != nil {
		return p, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return p, nil
}
