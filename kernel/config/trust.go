package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrNothingToTrust says that a project has neither config.toml nor prompts/system.md.
var ErrNothingToTrust = errors.New("config: the project has nothing to trust")

// projectFiles are the files of a project that count; nil means absent.
type projectFiles struct {
	config, prompt []byte
}

func (f projectFiles) present() bool { return f.config != nil || f.prompt != nil }

// digest is the SHA-256 of both files, each with its name, presence and length, so that
// no change of one or the other goes unseen.
func (f projectFiles) digest() string {
	h := sha256.New()
	h.Write([]byte("perlica project v1\n"))
	for _, file := range []struct {
		name string
		data []byte
	}{{"config.toml", f.config}, {"prompts/system.md", f.prompt}} {
		length := int64(-1)
		if file.data != nil {
			length = int64(len(file.data))
		}
		h.Write([]byte(file.name + "\n"))
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(length)))
		h.Write(file.data)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// trustFile is the file in the user's state that says which contents of a project are
// trusted. It is named by a hash of the project's absolute path.
func (d Dirs) trustFile(ws Workspace) string {
	sum := sha256.Sum256([]byte(realPath(ws)))
	return filepath.Join(d.State, "trust", hex.EncodeToString(sum[:]))
}

func realPath(ws Workspace) string {
	if real, err := filepath.EvalSymlinks(ws.Root); err == nil {
		return real
	}
	return ws.Root
}

// trustLine is all that a trust file holds.
func trustLine(ws Workspace, digest string) string {
	return digest + "  " + fmt.Sprintf("%q", realPath(ws)) + "\n"
}

// Trust lets the project's files count in full as long as their digest is the one
// given, which is Config.Project.Digest of the Load whose contents the person was
// shown: what has changed since is not trusted. On return it survives a crash.
func Trust(dirs Dirs, ws Workspace, digest string) error {
	if digest == "" {
		return ErrNothingToTrust
	}
	path := dirs.trustFile(ws)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("config: trust: %w", err)
	}
	if err := replaceFile(path, []byte(trustLine(ws, digest)), 0o600); err != nil {
		return fmt.Errorf("config: trust: %w", err)
	}
	return nil
}

// Untrust takes back what Trust gave. It is no error if there was nothing.
func Untrust(dirs Dirs, ws Workspace) error {
	err := os.Remove(dirs.trustFile(ws))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("config: untrust: %w", err)
	}
	return nil
}

// Trusted says whether files of this digest are trusted in this place.
func Trusted(dirs Dirs, ws Workspace, digest string) (bool, error) {
	if digest == "" {
		return false, nil
	}
	data, err := os.ReadFile(dirs.trustFile(ws))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("config: trust: %w", err)
	}
	return string(data) == trustLine(ws, digest), nil
}

// replaceFile puts a whole file in the place of another: a reader sees the old
// one or the new one, also after a crash.
func replaceFile(path string, data []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+strings.TrimPrefix(filepath.Base(path), ".")+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = f.Chmod(mode); err != nil && runtime.GOOS != "windows" {
		return err
	}
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a rename survive a power failure, where the system can.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}
