package evidence

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/strict"
)

// These are signature types of https://c2sp.org/signed-note and https://c2sp.org/tlog-cosignature.
const (
	algEd25519      = 1
	algCosignature  = 4
	algMLDSA        = 6
	cosignatureSize = 8 + ed25519.SignatureSize // bytes: a time and a signature
)

// ErrVerifierKey says that a text is not a verifier key of a known kind.
var ErrVerifierKey = errors.New("not a verifier key")

// NewVerifier parses a verifier key. The key belongs to a log, or to a witness. A witness is a server of another
// owner that confirms checkpoints with Ed25519 (cosignature/v1 of https://c2sp.org/tlog-cosignature). The error wraps
// ErrVerifierKey.
func NewVerifier(vkey string) (note.Verifier, error) {
	name, rest, _ := strings.Cut(vkey, "+")
	id, key64, ok := strings.Cut(rest, "+")
	hash, err := strconv.ParseUint(id, 16, 32)
	key, kerr := base64.StdEncoding.DecodeString(key64)
	if !ok || name == "" || len(id) != 8 || err != nil || kerr != nil || len(key) == 0 {
		return nil, fmt.Errorf("%w: %q is not NAME+ID+KEY", ErrVerifierKey, vkey)
	}
	switch {
	case key[0] == algMLDSA:
		return nil, fmt.Errorf("%w of a kind known here: %s signs with ML-DSA-44", ErrVerifierKey, name)
	case key[0] != algCosignature:
		v, err := note.NewVerifier(vkey)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrVerifierKey, vkey, err)
		}
		return v, nil
	case len(key) != 1+ed25519.PublicKeySize || uint32(hash) != keyHash(name, key):
		return nil, fmt.Errorf("%w: %q: its parts do not fit together", ErrVerifierKey, vkey)
	}
	return &cosigner{name: name, hash: uint32(hash), public: key[1:]}, nil
}

// keyHash returns the id of a key. The id depends on the name, the kind and the bytes of the key.
func keyHash(name string, key []byte) uint32 {
	sum := sha256.Sum256(append([]byte(name+"\n"), key...))
	return binary.BigEndian.Uint32(sum[:])
}

// cosigner verifies the cosignatures of a witness. It is a note.Verifier.
type cosigner struct {
	name   string
	hash   uint32
	public ed25519.PublicKey
}

func (c *cosigner) Name() string    { return c.name }
func (c *cosigner) KeyHash() uint32 { return c.hash }

// Verify reports whether sig is a cosignature of the checkpoint with the text msg.
func (c *cosigner) Verify(msg, sig []byte) bool {
	if len(sig) != cosignatureSize {
		return false
	}
	at := binary.BigEndian.Uint64(sig)
	if at == 0 || at > math.MaxInt64 {
		return false
	}
	signed := fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, msg)
	return ed25519.Verify(c.public, signed, sig[8:])
}

// KeyUnder returns the public key of vkey as a verifier key with another name. If cosigns is true, the result is the
// key of a witness, otherwise the key of a log. The error wraps ErrVerifierKey.
func KeyUnder(vkey, name string, cosigns bool) (string, error) {
	_, rest, _ := strings.Cut(vkey, "+")
	_, key64, _ := strings.Cut(rest, "+")
	key, err := base64.StdEncoding.DecodeString(key64)
	if err != nil || len(key) != 1+ed25519.PublicKeySize || key[0] != algEd25519 {
		return "", fmt.Errorf("%w of a log: %q", ErrVerifierKey, vkey)
	}
	if cosigns {
		key[0] = algCosignature
	}
	return fmt.Sprintf("%s+%s", KeyName(name, keyHash(name, key)), base64.StdEncoding.EncodeToString(key)), nil
}

// Cosign returns a signature line (cosignature/v1) for the checkpoint. With this line, the witness with the given
// name confirms that the checkpoint includes all earlier checkpoints. The caller must have verified that.
func (k *Keys) Cosign(name string, c Checkpoint, at time.Time) (line string, err error) {
	if err := k.Ready(); err != nil {
		return "", err
	}
	public := k.private.Public().(ed25519.PublicKey)
	sig := binary.BigEndian.AppendUint32(nil, keyHash(name, append([]byte{algCosignature}, public...)))
	sig = binary.BigEndian.AppendUint64(sig, uint64(at.Unix()))
	sig = append(sig, ed25519.Sign(k.private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at.Unix(), c.Text()))...)
	return fmt.Sprintf("— %s %s\n", name, base64.StdEncoding.EncodeToString(sig)), nil
}

// A Signature is the signature of a known key under a checkpoint.
type Signature struct {
	Name string // the name of the key
	// Time is the time of a witness's cosignature. It is zero for the log's own signature.
	Time time.Time
}

// Signatures returns the signatures of known keys under the checkpoint. It ignores signatures of unknown keys. It
// returns an error if a signature of a known key is invalid, or if no known key signed the checkpoint.
func (c Checkpoint) Signatures(known ...note.Verifier) ([]Signature, error) {
	n, err := note.Open([]byte(c.Note), note.VerifierList(known...))
	if err != nil {
		return nil, err
	}
	if n.Text != c.Text() {
		return nil, fmt.Errorf("%w: the note's text is different", ErrCheckpoint)
	}
	return SignaturesOf(n, known), nil
}

// SignaturesOf returns the signatures of the note n, which was opened with the known keys.
func SignaturesOf(n *note.Note, known []note.Verifier) (list []Signature) {
	for _, s := range n.Sigs {
		found := Signature{Name: s.Name}
		if b, err := base64.StdEncoding.DecodeString(s.Base64); err == nil && isCosigner(known, s) &&
			len(b) == 4+cosignatureSize {
			found.Time = time.Unix(int64(binary.BigEndian.Uint64(b[4:])), 0).UTC()
		}
		list = append(list, found)
	}
	return list
}

func isCosigner(known []note.Verifier, s note.Signature) bool {
	for _, v := range known {
		if _, ok := v.(*cosigner); ok && v.Name() == s.Name && v.KeyHash() == s.Hash {
			return true
		}
	}
	return false
}

// FormatHashes writes the hashes of a proof, one on each line.
func FormatHashes(list []tlog.Hash) string {
	var b strings.Builder
	for _, h := range list {
		fmt.Fprintln(&b, h)
	}
	return b.String()
}

// maxPath is more than the number of hashes in any proof. ParseHashes refuses a longer list.
const maxPath = 128

// ParseHashes parses one hash on each line up to an empty line. It returns the hashes and the text after the empty
// line. The error wraps ErrProof.
func ParseHashes(text string) (list []tlog.Hash, rest string, err error) {
	for len(list) <= maxPath {
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			break
		}
		if line == "" {
			return list, rest, nil
		}
		h, err := strict.Hash(line)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %q is no hash", ErrProof, line)
		}
		list, text = append(list, h), rest
	}
	return nil, "", fmt.Errorf("%w: there is no empty line after its hashes", ErrProof)
}
