package evidence

import (
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A ConsistencyProof shows that a later checkpoint of a log includes all events of an earlier one. No event of the
// earlier checkpoint was changed or removed.
//
// Its text has these parts: ConsistencyHeader, the hashes of the proof in base64, one on each line (RFC 6962,
// section 2.1.2), an empty line, the earlier signed checkpoint, an empty line, and the later signed checkpoint.
type ConsistencyProof struct {
	Old, New Checkpoint
	Path     []tlog.Hash
}

// ConsistencyHeader is the first line of the text of a ConsistencyProof.
const ConsistencyHeader = "perlica consistency proof 1"

// Verify checks the proof and returns the signatures of known keys under the later checkpoint. The
// log's own key must have signed both checkpoints. Otherwise the error wraps ErrProof.
func (p ConsistencyProof) Verify(known ...note.Verifier) ([]Signature, error) {
	if p.Old.Origin != p.New.Origin {
		return nil, fmt.Errorf("%w: its checkpoints are of two logs, %s and %s", ErrProof, p.Old.Origin, p.New.Origin)
	}
	if tlog.CheckTree(p.Path, p.New.Size, p.New.Root, p.Old.Size, p.Old.Root) != nil {
		return nil, fmt.Errorf("%w: the log of %d events does not hold the %d events of the earlier checkpoint", ErrProof,
			p.New.Size, p.Old.Size)
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

// IsConsistencyProof reports whether a text begins with ConsistencyHeader.
func IsConsistencyProof(text string) bool { return strings.HasPrefix(text, ConsistencyHeader+"\n") }

// ParseConsistencyProof parses a proof. It does not verify the proof; Verify does. The error wraps ErrProof.
func ParseConsistencyProof(text string) (p ConsistencyProof, err error) {
	if !IsConsistencyProof(text) {
		return p, fmt.Errorf("%w: it does not begin with %q", ErrProof, ConsistencyHeader)
	}
	if p.Path, text, err = ParseHashes(text[len(ConsistencyHeader)+1:]); err != nil {
		return p, err
	}
	// The earlier checkpoint contains an empty line, too: a note is its text, an empty line, and its signatures. So cut
	// twice.
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
