// Package attachment keeps the files that come with messages in a private folder.
//
// It promises that a file is whole, synced and under its final name or not there at all, that
// its name is harmless however the sender chose it, and that the same file of the same message
// takes the same place when it comes again. It refuses what is larger than it may be.
package attachment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/disk"
)

// ErrTooLarge says that a file has more bytes than it may have.
var ErrTooLarge = errors.New("the file is too large")

// maxName is where a name is cut; file systems take 255 bytes with what is put ahead of it.
const maxName = 100

// Save writes what r holds, at most limit bytes, into a file in dir, which it makes if need be,
// and returns its path. The message's id and the number of the file in it make the name unique;
// name, the sender's, is its end. When it returns nil the file survives a power failure.
func Save(dir, message string, n int, name string, r io.Reader, limit int64) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".part-*") // 0600
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = f.Close()           // may be closed; err says what happened
			_ = os.Remove(f.Name()) // half a file is of no use
		}
	}()
	size, err := io.Copy(f, io.LimitReader(r, limit+1))
	if err != nil {
		return "", err
	}
	if size > limit {
		return "", fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(message))
	path = filepath.Join(dir, fmt.Sprintf("%s-%d-%s", hex.EncodeToString(sum[:8]), n, Name(name)))
	if err := os.Rename(f.Name(), path); err != nil {
		return "", err
	}
	return path, disk.SyncDir(dir)
}

// Name is a file's name as it may stand on this machine: its last element, of letters, digits
// and few signs, not too long, no hidden file and no name that a system keeps for itself.
func Name(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-+", r) {
			return r
		}
		return '_'
	}, name)
	// The end says what it is: ".tar.gz". It is the front that is cut.
	for len(name) > maxName {
		_, size := utf8.DecodeRuneInString(name)
		name = name[size:]
	}
	name = strings.Trim(name, ".")
	if name == "" {
		return "file"
	}
	return name
}
