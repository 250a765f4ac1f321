// Package worktree reads a git work tree without git.
//
// The package promises that no setting of the repository has an effect: it reads HEAD, the references and the index
// alone, and starts no program. It follows no symbolic link out of the work tree, and it opens regular files only. It
// stores no content of a file, only hashes. Filters are not applied, so a file whose filter changes its content always
// counts as different from the index. Such a file is still equal to itself before and after a turn.
package worktree

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/perlica/perlica/kernel/fact"
)

// Tree is the state of a work tree at one time.
type Tree struct {
	// Root is the folder of the work tree.
	Root string
	// Head is the commit. It is empty before the first commit.
	Head string
	// Dirty are the files that differ from the index, and the files that the index does not have, ordered by path.
	Dirty []fact.TreeFile
	// More means that a limit was reached, so that files may be missing in Dirty.
	More bool

	files map[string]state // by slash path
}

// state is a file at the time of the observation.
type state struct {
	fact.TreeFile
	modified time.Time
}

// errNoTree means that a folder does not belong to a git work tree.
var errNoTree = errors.New("not in a git work tree")

// These are the limits of an observation.
const (
	maxIndex = 64 << 20 // bytes of the index
	maxRefs  = 16 << 20 // bytes of packed references
	maxFile  = 4 << 20  // bytes of a hashed file
	maxBytes = 64 << 20 // bytes of all hashed files
	maxDirty = 1000     // files
)

// Observe reads the state of the work tree that contains a folder. It reads the files that the index names. In the
// folders of these files and at the top, it also finds files that the index does not name. It reads no other folders.
func Observe(ctx context.Context, dir string) (*Tree, error) {
	top, git, err := find(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	o := observer{ctx: ctx, root: root, tree: &Tree{Root: top, files: map[string]state{}}, left: maxBytes}
	if o.tree.Head, err = head(git); err != nil {
		return nil, err
	}
	text, written, err := readFile(filepath.Join(git, "index"), maxIndex)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var entries []entry
	if len(text) > 0 {
		if entries, err = parseIndex(text); err != nil {
			return nil, err
		}
	}
	if err := o.readFiles(entries, written); err != nil {
		return nil, err
	}
	slices.SortFunc(o.tree.Dirty, func(a, b fact.TreeFile) int { return strings.Compare(a.Path, b.Path) })
	return o.tree, nil
}

// Since returns the files whose content or mode differs from an earlier state of the same work tree, ordered by path.
// The mode of a removed file is empty.
func (t *Tree) Since(before *Tree) (changed []fact.TreeFile) {
	for name, now := range t.files {
		then, ok := before.files[name]
		switch {
		case !ok:
		case now.Blob != "" && then.Blob != "":
			ok = now.Blob == then.Blob && now.Mode == then.Mode
		default: // A large file is compared by its size and its time.
			ok = now.Size == then.Size && now.modified.Equal(then.modified) && now.Mode == then.Mode
		}
		if !ok {
			changed = append(changed, now.TreeFile)
		}
	}
	for name := range before.files {
		if _, ok := t.files[name]; !ok {
			changed = append(changed, fact.TreeFile{Path: name})
		}
	}
	slices.SortFunc(changed, func(a, b fact.TreeFile) int { return strings.Compare(a.Path, b.Path) })
	return changed
}

// observer reads the files of one work tree.
type observer struct {
	ctx  context.Context
	root *os.Root
	tree *Tree
	left int64 // bytes that may still be hashed
}

// readFiles reads the files of the index and the other files in their folders. The parameter "written" is the time at
// which the index was written.
func (o *observer) readFiles(entries []entry, written time.Time) error {
	folders := map[string]bool{".": true}
	known := map[string]bool{}
	for _, e := range entries {
		if o.ctx.Err() != nil {
			return o.ctx.Err()
		}
		if known[e.path] || !filepath.IsLocal(filepath.FromSlash(e.path)) {
			continue
		}
		known[e.path] = true
		folders[path.Dir(e.path)] = true
		o.readKnown(e, written)
	}
	for dir := range folders {
		if o.ctx.Err() != nil {
			return o.ctx.Err()
		}
		list, err := o.list(dir)
		if err != nil {
			continue // The folder was removed.
		}
		for _, d := range list {
			name := path.Join(dir, d.Name())
			if known[name] || d.Name() == ".git" || !d.Type().IsRegular() {
				continue
			}
			if info, err := d.Info(); err == nil {
				o.add(o.stateOf(name, info))
			}
		}
	}
	return nil
}

func (o *observer) list(dir string) ([]fs.DirEntry, error) {
	f, err := o.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// readKnown reads a file of the index. If the mode, the size and the time are those of the index, and the index is
// newer than the file, readKnown trusts the hash in the index. Otherwise it hashes the file.
func (o *observer) readKnown(e entry, written time.Time) {
	info, err := o.root.Lstat(filepath.FromSlash(e.path))
	if err != nil {
		o.setDirty(fact.TreeFile{Path: e.path})
		return
	}
	mode := modeOf(info)
	same := mode == e.mode && uint32(info.Size()) == e.size
	if same && info.ModTime().Equal(e.modified) && e.modified.Before(written) {
		o.tree.files[e.path] = state{fact.TreeFile{Path: e.path, Mode: mode, Size: info.Size(), Blob: e.blob}, e.modified}
		return
	}
	s := o.stateOf(e.path, info)
	o.tree.files[e.path] = s
	if s.Blob != e.blob || mode != e.mode {
		o.setDirty(s.TreeFile)
	}
}

// add adds a file that the index does not have.
func (o *observer) add(s state) {
	o.tree.files[s.Path] = s
	o.setDirty(s.TreeFile)
}

func (o *observer) setDirty(f fact.TreeFile) {
	if len(o.tree.Dirty) == maxDirty {
		o.tree.More = true
		return
	}
	o.tree.Dirty = append(o.tree.Dirty, f)
}

// stateOf returns the state of a file. The blob is empty if the file is too large or cannot be read.
func (o *observer) stateOf(name string, info fs.FileInfo) state {
	s := state{fact.TreeFile{Path: name, Mode: modeOf(info), Size: info.Size()}, info.ModTime()}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if target, err := o.root.Readlink(filepath.FromSlash(name)); err == nil {
			s.Blob = blobOf([]byte(target))
		}
	case info.Mode().IsRegular() && info.Size() <= maxFile && info.Size() <= o.left:
		f, err := openRegular(func(flag int) (*os.File, error) {
			return o.root.OpenFile(filepath.FromSlash(name), flag, 0)
		})
		if err != nil {
			return s
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxFile))
		if err == nil && int64(len(text)) == info.Size() {
			o.left -= info.Size()
			s.Blob = blobOf(text)
		}
	case info.Mode().IsRegular():
		o.tree.More = o.tree.More || info.Size() <= maxFile
	}
	return s
}

// modeOf returns the mode of a file as git writes it.
func modeOf(info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return "120000"
	case info.IsDir():
		return "040000"
	case info.Mode()&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// blobOf returns git's hash of a content.
func blobOf(text []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(text))
	_, _ = h.Write(text) // a hash does not fail
	return hex.EncodeToString(h.Sum(nil))
}

// find returns the top of the work tree that contains a folder, and the folder of its HEAD and its index.
func find(dir string) (top, git string, err error) {
	for top = filepath.Clean(dir); ; top = filepath.Dir(top) {
		git = filepath.Join(top, ".git")
		if info, err := os.Stat(git); err == nil {
			if info.IsDir() {
				return top, git, nil
			}
			text, _, err := readFile(git, 4096)
			to, ok := bytes.CutPrefix(bytes.TrimSpace(text), []byte("gitdir: "))
			if err != nil || !ok {
				return "", "", errors.Join(errNoTree, err)
			}
			if git = string(to); !filepath.IsAbs(git) {
				git = filepath.Join(top, git)
			}
			return top, git, nil
		}
		if top == filepath.Dir(top) {
			return "", "", errNoTree
		}
	}
}

// head returns the commit that HEAD names. It is empty if the branch has no commit.
func head(git string) (string, error) {
	text, _, err := readFile(filepath.Join(git, "HEAD"), 4096)
	if err != nil {
		return "", err
	}
	common := git
	if to, _, err := readFile(filepath.Join(git, "commondir"), 4096); err == nil {
		if common = strings.TrimSpace(string(to)); !filepath.IsAbs(common) {
			common = filepath.Join(git, common)
		}
	}
	for range 5 { // the most symbolic references in a row that git follows
		ref, symbolic := bytes.CutPrefix(bytes.TrimSpace(text), []byte("ref: "))
		if !symbolic {
			return commitID(ref), nil
		}
		name := string(ref)
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return "", nil
		}
		if text, _, err = readFile(filepath.Join(git, name), 4096); err != nil {
			text, _, err = readFile(filepath.Join(common, name), 4096)
		}
		if err != nil {
			return packed(common, name), nil
		}
	}
	return "", nil
}

// packed returns the commit of a reference in the file of packed references.
func packed(common, name string) string {
	text, _, err := readFile(filepath.Join(common, "packed-refs"), maxRefs)
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(text) {
		id, ref, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if string(ref) == name {
			return commitID(id)
		}
	}
	return ""
}

// commitID returns the id of a commit, or "" for any other text.
func commitID(text []byte) string {
	if _, err := hex.DecodeString(string(text)); err != nil || len(text) != 40 && len(text) != 64 {
		return ""
	}
	return string(text)
}

// readFile reads a regular file of at most "most" bytes, and its time.
func readFile(name string, most int64) ([]byte, time.Time, error) {
	f, err := openRegular(func(flag int) (*os.File, error) { return os.OpenFile(name, flag, 0) })
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() > most {
		err = fmt.Errorf("%s is too large", name)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	return text, info.ModTime(), err
}

// openRegular opens a regular file for reading. It does not wait for the other end of a pipe.
func openRegular(open func(flag int) (*os.File, error)) (*os.File, error) {
	f, err := open(os.O_RDONLY | syscall.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("not a regular file"), err, f.Close())
	}
	return f, nil
}
