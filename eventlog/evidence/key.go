package evidence

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/note"
)

// Keys sign checkpoints. A user has one key pair for all logs. The public keys of replaced pairs still verify older
// checkpoints.
type Keys struct {
	// dir is the folder of the key file. The first use reads the keys from dir or makes them there. If dir is empty,
	// the keys are already loaded.
	dir string
	// once makes sure that the keys are read only once.
	once sync.Once
	// err is the reason why the keys could not be read or made.
	err error

	// private is nil if the user has no key pair.
	private ed25519.PrivateKey
	retired []ed25519.PublicKey // oldest first
}

// UseKeys returns the keys in dir. The first use of the keys reads them, or makes a key pair if dir has none. UseKeys
// itself does not access dir.
func UseKeys(dir string) *Keys { return &Keys{dir: dir} }

// Ready reads or makes the keys of UseKeys on the first call. The error wraps ErrKey and says why the keys cannot be
// used. Later calls return the same error.
func (k *Keys) Ready() error {
	k.once.Do(func() {
		if k.dir == "" {
			return
		}
		made, err := MakeKeys(k.dir)
		if err != nil {
			k.err = err
			return
		}
		k.private, k.retired = made.private, made.retired
	})
	if k.err == nil && k.private == nil {
		return ErrKey
	}
	return k.err
}

// The key file is text. Its first line is keyHeader. Each further line is a word and a value in base64. After the
// word "private" comes the 32-byte seed of an Ed25519 key (RFC 8032). The file has one such line. After the word
// "retired" comes a public key.
const (
	keyFile   = "checkpoint.key"
	keyHeader = "perlica checkpoint keys 1"
)

// ErrKey says that the key file cannot be used.
var ErrKey = errors.New("the key for checkpoints cannot be used")

// KeyPath returns the path of the key file in the user's folder dir.
func KeyPath(dir string) string { return filepath.Join(dir, keyFile) }

// ReadKeys reads the keys in dir. If dir has no key file, the returned Keys sign and verify
// nothing. The error wraps ErrKey if the file is damaged, or if other users may read it.
func ReadKeys(dir string) (*Keys, error) {
	path := KeyPath(dir)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Keys{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if runtime.GOOS != "windows" && fi.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: others may read %s (its mode is %v; it must be 0600)", ErrKey, path, fi.Mode().Perm())
	}
	k, err := parseKeys(string(b))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKey, path, err)
	}
	return k, nil
}

func parseKeys(text string) (*Keys, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != keyHeader {
		return nil, errors.New("it is no file of keys")
	}
	k := new(Keys)
	for i, line := range lines[1:] {
		word, value, _ := strings.Cut(line, " ")
		b, err := base64.StdEncoding.Strict().DecodeString(value)
		switch {
		case err != nil || len(b) != ed25519.SeedSize: // Public keys are as long as seeds.
			return nil, fmt.Errorf("line %d holds no key", i+2)
		case word == "private" && k.private == nil:
			k.private = ed25519.NewKeyFromSeed(b)
		case word == "retired":
			k.retired = append(k.retired, b)
		default:
			return nil, fmt.Errorf("line %d begins with %q", i+2, word)
		}
	}
	if k.private == nil {
		return nil, errors.New("it holds no private key")
	}
	return k, nil
}

func (k *Keys) text() string {
	var b strings.Builder
	fmt.Fprintln(&b, keyHeader)
	for _, r := range k.retired {
		fmt.Fprintln(&b, "retired", base64.StdEncoding.EncodeToString(r))
	}
	fmt.Fprintln(&b, "private", base64.StdEncoding.EncodeToString(k.private.Seed()))
	return b.String()
}

// MakeKeys reads the keys in dir. If dir has no keys, it makes dir and a key pair. If several processes make a pair
// at once, all of them get the pair of the first one.
func MakeKeys(dir string) (*Keys, error) {
	k, err := ReadKeys(dir)
	if err != nil || k.private != nil {
		return k, err
	}
	if err := k.generatePair(); err != nil {
		return nil, err
	}
	err = writeKeys(dir, k, os.Link) // os.Link fails if another process made the file first.
	if errors.Is(err, fs.ErrExist) {
		return ReadKeys(dir)
	}
	return k, err
}

// RotateKeys makes a new key pair in dir. It keeps the public key of the old pair. If dir has no pair, RotateKeys
// makes the first one.
func RotateKeys(dir string) (k *Keys, err error) {
	if k, err = ReadKeys(dir); err != nil {
		return nil, err
	}
	if k.private == nil {
		return MakeKeys(dir)
	}
	// Two rotations at once would lose the key of the earlier one, and nobody could verify the signatures of that key.
	// The file busy prevents two rotations. If this process dies here, the file stays, and the error of the next
	// rotation asks the person to remove it.
	busy := filepath.Join(dir, rotateFile)
	f, err := os.OpenFile(busy, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: another rotation is under way; if none is, one was cut short: remove %s", ErrKey, busy)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(busy)) }()
	if k, err = ReadKeys(dir); err != nil {
		return nil, err
	}
	k.retired = append(k.retired, k.private.Public().(ed25519.PublicKey))
	if err := k.generatePair(); err != nil {
		return nil, err
	}
	return k, writeKeys(dir, k, os.Rename)
}

// rotateFile exists during a rotation of the keys.
const rotateFile = ".checkpoint-key-rotation"

func (k *Keys) generatePair() (err error) {
	_, k.private, err = ed25519.GenerateKey(rand.Reader)
	return err
}

// writeKeys writes the keys to a temporary file in dir and syncs it. Then it calls the function "move", which gives the
// file its final name. A reader never sees half a file.
func writeKeys(dir string, k *Keys, move func(from, to string) error) (err error) {
	defer func() {
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%w: %w", ErrKey, err)
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".checkpoint-key.*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // The file has been renamed, or it is incomplete.
	_, err = f.WriteString(k.text())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := move(f.Name(), KeyPath(dir)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	// Ignore the error, because some systems cannot sync a folder. If a power failure removes the new key file, Perlica
	// makes another key.
	_ = d.Sync()
	return d.Close()
}

// Signer returns a signer for the checkpoints of the log with the name in the parameter "origin". The error wraps
// ErrKey if the user has no key.
func (k *Keys) Signer(origin string) (note.Signer, error) {
	if err := k.Ready(); err != nil {
		return nil, err
	}
	id, err := keyID(VerifierKey(origin, k.private.Public().(ed25519.PublicKey)))
	if err != nil {
		return nil, err
	}
	secret := append([]byte{algEd25519}, k.private.Seed()...)
	return note.NewSigner("PRIVATE+KEY+" + origin + "+" + id + "+" + base64.StdEncoding.EncodeToString(secret))
}

func keyID(vkey string) (string, error) {
	parts := strings.Split(vkey, "+")
	if len(parts) < 3 {
		return "", ErrKey
	}
	return parts[1], nil
}

// VerifierKey returns the verifier key for the log with the name in the parameter "origin". With this text, others
// verify the signatures of the log's key. The text has a name, a key id and a public key, see
// https://c2sp.org/signed-note.
func VerifierKey(origin string, public ed25519.PublicKey) string {
	text, err := note.NewEd25519VerifierKey(origin, public)
	if err != nil {
		return "" // The key has another length. This package makes no such key.
	}
	return text
}

// KeyName returns the beginning of a verifier key: the key's name and its id.
func KeyName(name string, hash uint32) string { return fmt.Sprintf("%s+%08x", name, hash) }

// VerifierKeys returns the verifier keys for the log with the name in the parameter "origin". The current key is
// first. The retired keys follow, the newest first. The result is nil if the keys cannot be used.
func (k *Keys) VerifierKeys(origin string) []string {
	var list []string
	if k.Ready() != nil {
		return nil
	}
	list = append(list, VerifierKey(origin, k.private.Public().(ed25519.PublicKey)))
	for i := len(k.retired) - 1; i >= 0; i-- {
		list = append(list, VerifierKey(origin, k.retired[i]))
	}
	return list
}

// Verifiers returns the verifiers of the checkpoints of the log with the name in the parameter "origin".
func (k *Keys) Verifiers(origin string) []note.Verifier {
	var list []note.Verifier
	for _, text := range k.VerifierKeys(origin) {
		if v, err := note.NewVerifier(text); err == nil {
			list = append(list, v)
		}
	}
	return list
}
