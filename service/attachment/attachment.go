// Package attachment stores the files of messages in a private folder.
//
// A file is complete, synced and under its final name, or it does not exist. The name of the file is harmless for every
// name that a sender chooses. The same file of the same message gets the same path again. Files over the size limit are
// refused.
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

// ErrTooLarge says that a file is larger than the limit.
var ErrTooLarge = errors.New("the file is too large")

// maxName is the largest length of a name, in bytes. File systems accept 255 bytes including the
// prefix.
const maxName = 100

// Save writes the content of r to a file in dir and returns its path. It makes dir if necessary. The content may have
// at most limit bytes. The message's id and n, the number of the file in the message, make the name unique. The name
// ends with the sender's name of the file. After a nil error the file survives a power failure.
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
			_ = f.Close()           // may fail, because f may be closed already; err has the cause
			_ = os.Remove(f.Name()) // half a file is useless
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

// Name returns a file's name in a form that is safe on this machine: its last element with letters,
// digits and a few other characters. It is not too long, not hidden, and not reserved by a system.
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
	// The end of a name shows the type, such as ".tar.gz", so the front is cut.
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
