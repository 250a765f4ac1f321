package program

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/dustin/go-humanize"

	"github.com/perlica/perlica/eventlog/disk"
)

// Command is a program and its arguments, as a configuration file has them.
type Command struct {
	Words []string
	// Folder is the folder from which a relative path in Words starts.
	Folder string
}

// Store knows the trusted files and has the private copies. The methods may be called by several goroutines.
type Store struct {
	Dir     string   // a folder of the user's state, which no agent may write to
	Project string   // the project's folder
	Roots   []string // the folders whose files need trust: the project and the directories of its agents
	Environ []string // the environment from which the program's variables are selected

	mu     sync.Mutex
	pinned map[string]string // the digests that Pin has trusted, by path; guarded by mu
}

// File is a file that a word of a command names.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	// Inside means that the file lies inside the project and needs trust.
	Inside bool `json:"inside,omitempty"`
	// Trusted means that the file needs no trust, or that its bytes are the trusted ones.
	Trusted bool `json:"-"`
}

// maxCopy is the largest size of a file inside the project.
const maxCopy = 64 << 20

var (
	errNoRegular = errors.New("it is not a regular file")
	errTooLarge  = fmt.Errorf("it is larger than %s", humanize.IBytes(maxCopy))
)

// Files returns the files that a command names. The error means that the program cannot be found or read.
func (s *Store) Files(c Command) (files []File, err error) {
	for i := range c.Words {
		path, err := c.path(i)
		if err != nil {
			return files, errNotStarted.With(err)
		}
		if path == "" {
			continue
		}
		f, _, err := s.readFile(path, nil)
		if err != nil {
			return files, errNotStarted.With(err)
		}
		files = append(files, f)
	}
	return files, nil
}

// FileOf returns the File of a path whose bytes the caller has read. digest is their SHA-256 in hex.
func (s *Store) FileOf(path, digest string) File {
	f := File{Path: path, SHA256: digest, Inside: isInside(s.Roots, path)}
	f.Trusted = !f.Inside || s.isTrusted(f)
	return f
}

// Trust records that these bytes of the files inside the project are trusted. A later change ends the trust. When
// Trust returns nil, the trust survives a crash.
func (s *Store) Trust(files []File) error {
	for _, f := range files {
		if !f.Inside {
			continue
		}
		path := s.trustFile(f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("program: trust: %w", err)
		}
		if err := disk.WriteFile(path, []byte(trustLine(f.Path, f.SHA256)), 0o600, os.Rename); err != nil {
			return fmt.Errorf("program: trust: %w", err)
		}
	}
	return nil
}

// Untrust ends the trust in the files.
func (s *Store) Untrust(files []File) error {
	for _, f := range files {
		if err := os.Remove(s.trustFile(f.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("program: untrust: %w", err)
		}
	}
	return nil
}

// Pin trusts the present bytes of the files for the rest of this process.
func (s *Store) Pin(files []File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pinned == nil {
		s.pinned = map[string]string{}
	}
	for _, f := range files {
		s.pinned[f.Path] = f.SHA256
	}
}

// prepare returns the argument list for a start. It replaces each file inside the project by its private copy. The
// error is errUntrusted or errNotStarted.
func (s *Store) prepare(c Command, roots []string) (argv []string, files []File, err error) {
	if err := os.MkdirAll(s.copies(), 0o700); err != nil {
		return nil, nil, errNotStarted.With(err)
	}
	if len(c.Words) == 0 {
		return nil, nil, errNotStarted.With(errors.New("the command is empty"))
	}
	argv = slices.Clone(c.Words)
	for i, word := range c.Words {
		path, err := c.path(i)
		if err != nil {
			return nil, files, errNotStarted.With(err)
		}
		if path == "" {
			continue
		}
		f, data, err := s.readFile(path, roots)
		if err != nil {
			return nil, files, errNotStarted.With(err)
		}
		files = append(files, f)
		switch {
		case !f.Trusted:
			return nil, files, errUntrusted.With(path, "perlica config trust")
		case f.Inside:
			if argv[i], err = s.copyFile(f, data); err != nil {
				return nil, files, errNotStarted.With(err)
			}
		case i == 0 || hasSeparator(word):
			argv[i] = path
		}
	}
	return argv, files, nil
}

// path returns the absolute path of the file that a word names, or "" if an argument names no file.
func (c Command) path(i int) (string, error) {
	word := c.Words[i]
	if i == 0 && !hasSeparator(word) {
		path, err := exec.LookPath(word)
		if err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	path := word
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Folder, path)
	}
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case i == 0 && err == nil && !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: %w", path, errNoRegular)
	case i == 0:
		return path, err
	case err != nil || !info.Mode().IsRegular() || word == "":
		return "", nil
	}
	return path, nil
}

func hasSeparator(word string) bool {
	return strings.ContainsRune(word, '/') || strings.ContainsRune(word, filepath.Separator)
}

// readFile reads a file once. The roots are folders whose files need trust, in addition to s.Roots. data is nil for a
// file outside of all roots.
func (s *Store) readFile(path string, roots []string) (f File, data []byte, err error) {
	// Without O_NONBLOCK, opening a pipe would wait for a writer.
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return f, nil, err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return f, nil, err
	}
	if !info.Mode().IsRegular() {
		return f, nil, fmt.Errorf("%s: %w", path, errNoRegular)
	}
	f = File{Path: path, Inside: isInside(slices.Concat(s.Roots, roots), path)}
	h := sha256.New()
	if !f.Inside {
		_, err = io.Copy(h, r)
	} else if data, err = io.ReadAll(io.LimitReader(r, maxCopy+1)); len(data) > maxCopy {
		err = fmt.Errorf("%s: %w", path, errTooLarge)
	}
	if err != nil {
		return f, nil, err
	}
	h.Write(data)
	f.SHA256 = hex.EncodeToString(h.Sum(nil))
	f.Trusted = !f.Inside || s.isTrusted(f)
	return f, data, nil
}

// isInside reports whether a path or the target of its links lies below one of the roots.
func isInside(roots []string, path string) bool {
	paths := []string{path, realPath(path)}
	return slices.ContainsFunc(roots, func(root string) bool {
		return root != "" && slices.ContainsFunc(paths, func(p string) bool {
			return within(root, p) || within(realPath(root), p)
		})
	})
}

func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func (s *Store) isTrusted(f File) bool {
	s.mu.Lock()
	pinned, ok := s.pinned[f.Path]
	s.mu.Unlock()
	if ok {
		return pinned == f.SHA256
	}
	line, err := os.ReadFile(s.trustFile(f.Path))
	return err == nil && string(line) == trustLine(f.Path, f.SHA256)
}

// trustFile returns the path of the file with the trusted digest of a program's file.
func (s *Store) trustFile(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(s.Dir, "trusted", hex.EncodeToString(sum[:]))
}

func trustLine(path, digest string) string { return fmt.Sprintf("sha256:%s  %q\n", digest, path) }

// copies returns the folder of the private copies. Programs start in it, so that no file of the project is found by a
// relative path.
func (s *Store) copies() string { return filepath.Join(s.Dir, "copies") }

// copyFile returns the path of a private copy of data. The name of its folder is the digest.
func (s *Store) copyFile(f File, data []byte) (string, error) {
	path := filepath.Join(s.copies(), f.SHA256, cmp.Or(filepath.Base(f.Path), "program"))
	if there, err := os.ReadFile(path); err == nil && sha256.Sum256(there) == sha256.Sum256(data) {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	// Let no other goroutine start a process while the file is open for writing. That process would inherit the open
	// file, and the start of the copy would fail with ETXTBSY.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return path, disk.WriteFile(path, data, 0o700, os.Rename)
}
