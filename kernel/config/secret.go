package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Secret says where a secret is stored. The configuration never contains the secret itself.
type Secret struct {
	// Env is the name of the environment variable with the secret. "" means that File is used.
	Env string
	// File is the path of the file with the secret. "" means the default file.
	File string
}

// ErrNoSecret means that a secret does not exist yet.
var ErrNoSecret = errors.New("it is missing")

// maxSecret is the size limit of a secret's file in bytes.
const maxSecret = 4 << 10

// Path returns File. If File is empty, it returns the path of name in the user's configuration directory.
func (s Secret) Path(dirs Dirs, name string) string {
	if rest, ok := strings.CutPrefix(s.File, "~/"); ok {
		return filepath.Join(dirs.Home, rest)
	}
	if s.File == "" {
		return filepath.Join(dirs.Config, name)
	}
	return s.File
}

// Read returns the secret without surrounding space. The parameter "name" is the name of the default file. If other
// users can read the file, Read returns a *SharedSecretError. The error wraps ErrNoSecret if the secret is missing, and
// never contains the secret.
func (s Secret) Read(dirs Dirs, name string, getenv func(string) string) (string, error) {
	if s.Env != "" {
		if v := strings.TrimSpace(getenv(s.Env)); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("%w: the environment variable %s is empty", ErrNoSecret, printable(s.Env))
	}
	path := s.Path(dirs, name)
	f, err := openSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: no file %s", ErrNoSecret, printable(path))
	}
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %s", printable(path), cause(err))
	}
	defer func() { _ = f.Close() }() // only read, so the error does not matter
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %s", printable(path), cause(err))
	}
	if isShared(info) {
		return "", &SharedSecretError{Path: path}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %s", printable(path), cause(err))
	case len(data) > maxSecret:
		return "", fmt.Errorf("%s has more than %d bytes", printable(path), maxSecret)
	}
	if secret := strings.TrimSpace(string(data)); secret != "" {
		return secret, nil
	}
	return "", fmt.Errorf("%w: %s is empty", ErrNoSecret, printable(path))
}

// openSecret opens a regular file. It checks the file's type first, because opening a pipe would wait for a writer.
func openSecret(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errIrregular
	}
	return os.Open(path)
}

// SharedSecretError means that other users can read the file of a secret.
type SharedSecretError struct{ Path string }

func (e *SharedSecretError) Error() string {
	return fmt.Sprintf("%s can be read by others than you", printable(e.Path))
}
