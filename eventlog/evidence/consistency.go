package evidence

import (
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A ConsistencyProof shows that a later checkpoint of a log holds all that an earlier one held:
// nothing was changed or removed in between.
//
// As text it is a line that says what it is, the hashes of the proof (RFC 6962, section 2.1.2) in
// base64, a line each, an empty line, the earlier signed checkpoint, an empty line, and the later.
type ConsistencyProof struct {
	Old, New Checkpoint
	Path     []tlog.Hash
}

// ConsistencyHeader is the line with which the text of a ConsistencyProof begins.
const ConsistencyHeader = "perlica consistency proof 1"

// Verify returns which of the known keys signed the later checkpoint, if the proof holds and a key
// of the log's own signed both. Else the error wraps ErrProof.
func (p ConsistencyProof) Verify(known ...note.Verifier) ([]Signature, error) {
	if p.Old.Origin != p.New.Origin {
		return nil, fmt.Errorf("%w: its checkpoints are of two logs, %s and %s", ErrProof, p.Old.Origin, p.New.Origin)
	}
	if tlog.CheckTree(p.Path, p.New.Size, p.New.Root, p.Old.Size, p.Old.Root) != nil {
		return nil, fmt.Errorf("%w: the log of %d events does not hold the %d events of the earlier checkpoint", ErrProof, p.New.Size, p.Old.Size)
	}
	if _, err := p.Old.Verify(known...); err != nil {
		return nil, err
	}
	return p.New.Verify(known...)
}

// MarshalText writes the proof.
func (p ConsistencyProof) MarshalText() ([]byte, error) {
	var b strings.Builder
	fmt.Fprintln(&b, ConsistencyHeader)
	b.WriteString(FormatHashes(p.Path))
	fmt.Fprintf(&b, "\n%s\n%s", p.Old.Note, p.New.Note)
	return []byte(b.String()), nil
}

// IsConsistencyProof reports whether a text begins as a ConsistencyProof does.
func IsConsistencyProof(text string) bool { return strings.HasPrefix(text, ConsistencyHeader+"\n") }

// ParseConsistencyProof reads a proof. Whether it holds is what Verify says. The error wraps
// ErrProof.
func ParseConsistencyProof(text string) (p ConsistencyProof, err error) {
	if !IsConsistencyProof(text) {
		return p, fmt.Errorf("%w: it does not begin with %q", ErrProof, ConsistencyHeader)
	}
	if p.Path, text, err = ParseHashes(text[len(ConsistencyHeader)+1:]); err != nil {
		return p, err
	}
	// A note is its text, an empty line, and its signatures.
	body, text, _ := strings.Cut(text, "\n\n")
	signatures, text, ok := strings.Cut(text, "\n\n")
	if !ok {
		return p, fmt.Errorf("%w: it has no two checkpoints", ErrProof)
	}
	if p.Old, err = ParseCheckpoint(body + "\n\n" + signatures + "\n"); err != nil {
		return p, fmt.Errorf("%w: the earlier one: %w", ErrProof, err)
	}
	if p.New, err = ParseCheckpoint(text); err != nil {
		return p, fmt.Errorf("%w: the later one: %w", ErrProof, err)
	}
	return p, nil
}
