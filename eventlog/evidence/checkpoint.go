package evidence

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/strict"
)

// A Checkpoint is a tree head. It commits to the first Size events of the log with the name Origin.
// https://c2sp.org/tlog-checkpoint defines its format.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   tlog.Hash

	// Note is the signed note as other programs see it. It is empty if the checkpoint is not signed.
	Note string
}

// Text returns the signed text: three lines.
func (c Checkpoint) Text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)
}

// ErrCheckpoint says that a text is not a checkpoint.
var ErrCheckpoint = message.New("evidence.checkpoint", "not a checkpoint")

// ParseCheckpoint parses a signed checkpoint. It does not verify the signatures; Signed does. The error wraps
// ErrCheckpoint.
func ParseCheckpoint(msg string) (Checkpoint, error) {
	_, err := note.Open([]byte(msg), note.VerifierList())
	var unverified *note.UnverifiedNoteError
	if !errors.As(err, &unverified) {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	c, err := ParseCheckpointText(unverified.Note.Text)
	c.Note = msg
	return c, err
}

// ParseCheckpointText parses the output of Text and nothing else. It refuses extension lines, because Perlica writes
// none. The error wraps ErrCheckpoint.
func ParseCheckpointText(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[0] == "" {
		return Checkpoint{}, fmt.Errorf("%w: it has no three lines", ErrCheckpoint)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("%w: %q is no tree size", ErrCheckpoint, lines[1])
	}
	root, err := strict.Hash(lines[2])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %q is no root hash", ErrCheckpoint, lines[2])
	}
	c := Checkpoint{Origin: lines[0], Size: size, Root: root}
	if c.Text() != text {
		return Checkpoint{}, fmt.Errorf("%w of Perlica's: it has more than three lines", ErrCheckpoint)
	}
	return c, nil
}

// Signed returns the names of the known keys that signed the checkpoint, as Signatures does.
func (c Checkpoint) Signed(known ...note.Verifier) ([]string, error) {
	list, err := c.Signatures(known...)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names, nil
}

// ErrProof says that a proof is invalid.
var ErrProof = errors.New("it proves nothing")

// Verify returns the signatures of known keys under the checkpoint. One of them must be the log's own signature, with
// the name of the log. Otherwise the error wraps ErrProof.
func (c Checkpoint) Verify(known ...note.Verifier) ([]Signature, error) {
	list, err := c.Signatures(known...)
	var bad *note.InvalidSignatureError
	var none *note.UnverifiedNoteError
	switch {
	case errors.As(err, &bad):
		return nil, fmt.Errorf("%w: the signature of %s does not hold", ErrProof, bad.Name)
	case errors.As(err, &none):
		return nil, fmt.Errorf("%w: none of the keys given signed the checkpoint of %d events; it takes %s", ErrProof, c.Size,
			c.neededKeys())
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	for _, s := range list {
		if s.Name == c.Origin && s.Time.IsZero() {
			return list, nil
		}
	}
	return nil, fmt.Errorf("%w: no key of the log itself is among those given; the checkpoint of %d events takes %s",
		ErrProof, c.Size, c.neededKeys())
}

// KeyNames returns the names of the log's own keys with a signature under the note. Each name has the form NAME+ID.
// KeyNames does not verify the signatures; Verify does.
func (c Checkpoint) KeyNames() (names []string) {
	var unverified *note.UnverifiedNoteError
	if _, err := note.Open([]byte(c.Note), note.VerifierList()); !errors.As(err, &unverified) {
		return nil
	}
	for _, s := range unverified.Note.UnverifiedSigs {
		if s.Name == c.Origin {
			names = append(names, KeyName(s.Name, s.Hash))
		}
	}
	return names
}

// neededKeys describes the keys that can verify the checkpoint. It shows the beginning of each verifier key.
func (c Checkpoint) neededKeys() string {
	names := c.KeyNames()
	if len(names) == 0 {
		return "a checkpoint that " + c.Origin + " itself signed"
	}
	return "the key " + strings.Join(names, "+… or the key ") + "+…"
}

// SignedBy returns the first verifier key in keys that signed the checkpoint, or "".
func (c Checkpoint) SignedBy(keys []string) string {
	for _, key := range keys {
		if v, err := NewVerifier(key); err == nil {
			if _, err := c.Verify(v); err == nil {
				return key
			}
		}
	}
	return ""
}
