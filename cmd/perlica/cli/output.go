package cli

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/eventlog/folder"
	"github.com/perlica/perlica/kernel/config"
)

// WriteTo has f write to a file, which is there under its name only when f has succeeded; or
// to standard output, or whatever else is no regular file.
func (a *App) WriteTo(name string, f func(w io.Writer) error) (err error) {
	if name == "-" {
		return f(a.Stdout)
	}
	switch info, err := os.Stat(name); {
	case err == nil && !info.Mode().IsRegular():
		out, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(f(out), out.Close())
	case isOfTheLog(name):
		return exitcode.WithHint(exitcode.Usagef("%s lies where logs are kept", name), "choose another name for --output")
	case err == nil && precious(name) != "":
		return exitcode.WithHint(exitcode.Usagef("%s is %s, and would be replaced", name, precious(name)), "choose another name for --output")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	scratch, err := folder.NewScratch(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = scratch.Close() }() // the file was moved, or is worth nothing
	out, err := os.OpenFile(scratch.Path("out"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f(out), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), name)
}

// isOfTheLog reports whether the file lies, or would lie, among those of a context.
func isOfTheLog(name string) bool {
	dir, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sep := string(filepath.Separator)
	return strings.Contains(dir+sep, sep+config.DirName+sep+"contexts"+sep)
}

// precious says what a file is that no export or proof may take the place of, by how it
// begins: it may be a copy that lies anywhere.
func precious(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // read from only
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head) // a shorter one begins as it does
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return "a database"
	case bytes.HasPrefix(head, []byte("perlica checkpoint keys ")):
		return "a file of keys"
	case anchorBegins().Match(head):
		return "a log's anchor"
	}
	return ""
}

// anchorBegins is how the first line of an anchor does: size, root, origin.
var anchorBegins = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]+ [A-Za-z0-9+/]{43}= perlica/`)
})
