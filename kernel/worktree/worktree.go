// Package worktree reads a git work tree without git.
//
// The package promises that no setting of the repository has an effect: it reads HEAD, the references and the index
// alone, and starts no program. It follows no symbolic link out of the work tree or out of git's folder. It reads
// regular files and folders only, and does not wait for a pipe. It stores no content of a file, only hashes. Filters
// are not applied, so a file whose filter changes its content always counts as different from the index. Such a file
// is still equal to itself before and after a turn.
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
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
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

	files   map[string]state // by slash path
	read    map[string]bool  // the folders that were read
	inside  map[string]bool  // the folders inside of these
	partial bool             // files may be missing in "files"
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
	maxFiles = 200_000  // files of the index, and files with a state
	maxPath  = 4096     // bytes of a path in the index
	maxPaths = 64 << 20 // bytes of all paths in the index
)

// A folder is read in pieces of this many files.
const piece = 256

// Observe reads the state of the work tree that contains a folder. It reads the files that the index names. In the
// folders of these files and at the top, it also finds files that the index does not name. It reads no other folders.
func Observe(ctx context.Context, dir string) (*Tree, error) {
	root, err := findTop(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	git, err := openGit(root)
	if err != nil {
		return nil, err
	}
	defer git.Close()
	o := newObserver(ctx, root, maxFiles)
	if o.tree.Head, err = head(git); err != nil {
		return nil, err
	}
	text, written, err := readFile(git, "index", maxIndex)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var entries []entry
	if len(text) > 0 {
		if entries, err = parseIndex(ctx, text); err != nil {
			return nil, err
		}
	}
	if err := o.readFiles(entries, written); err != nil {
		return nil, err
	}
	sortByPath(o.tree.Dirty)
	return o.tree, nil
}

func sortByPath(files []fact.TreeFile) {
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
}

// Since returns the files with another content or mode than in an earlier state of the same work tree, ordered by path.
// The mode of a removed file is empty. The result "more" means that files may be missing. A file in a folder that only
// one of the two observations read is such a file, because the index decides which folders are read.
func (t *Tree) Since(before *Tree) (changed []fact.TreeFile, more bool) {
	more = t.partial || before.partial
	for name, now := range t.files {
		then, ok := before.files[name]
		switch {
		case !ok:
			ok = before.partial || !before.knows(path.Dir(name))
			more = more || ok
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
		if _, ok := t.files[name]; ok {
			continue
		}
		if t.partial || !t.knows(path.Dir(name)) {
			more = true
			continue
		}
		changed = append(changed, fact.TreeFile{Path: name})
	}
	sortByPath(changed)
	return changed[:min(len(changed), maxDirty)], more || len(changed) > maxDirty
}

// knows reports whether the files of a folder are known: the folder was read, or a read folder above shows that it does
// not exist.
func (t *Tree) knows(dir string) bool {
	for !t.read[dir] {
		if dir == "." || t.inside[dir] {
			return false
		}
		dir = path.Dir(dir)
	}
	return true
}

// observer reads the files of one work tree.
type observer struct {
	ctx  context.Context
	root *os.Root
	tree *Tree
	left int64 // bytes that may still be hashed
	most int   // the most files with a state, and folders inside of the read ones
}

func newObserver(ctx context.Context, root *os.Root, most int) *observer {
	return &observer{ctx: ctx, root: root, left: maxBytes, most: most, tree: &Tree{Root: filepath.Clean(root.Name()),
		files: map[string]state{}, read: map[string]bool{}, inside: map[string]bool{}}}
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
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		if err := o.readOthers(dir, known); err != nil {
			return err
		}
	}
	return nil
}

// readOthers reads the files of a folder that the index does not have. A removed or replaced folder has no files.
func (o *observer) readOthers(dir string, known map[string]bool) error {
	f, err := open(o.root, filepath.FromSlash(dir), fs.ModeDir)
	if err != nil {
		return o.ctx.Err()
	}
	defer f.Close()
	o.tree.read[dir] = true
	for !o.tree.partial {
		list, err := f.ReadDir(piece)
		for _, d := range list {
			if o.ctx.Err() != nil {
				return o.ctx.Err()
			}
			name := path.Join(dir, d.Name())
			if known[name] || d.Name() == ".git" ||
				!d.IsDir() && !d.Type().IsRegular() && d.Type()&fs.ModeSymlink == 0 {
				continue
			}
			if len(o.tree.files)+len(o.tree.inside) >= o.most {
				o.tree.partial, o.tree.More = true, true
				break
			}
			if d.IsDir() {
				o.tree.inside[name] = true
				continue
			}
			if info, err := d.Info(); err == nil {
				o.add(o.stateOf(name, info))
			}
		}
		if err != nil {
			break // usually the end of the folder
		}
	}
	return o.ctx.Err()
}

// readKnown reads a file of the index. readKnown trusts the hash in the index if the file has the mode, the size and
// the time of the index. The index must be newer than the file. Otherwise it hashes the file.
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
		f, err := open(o.root, filepath.FromSlash(name), 0)
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

// findTop opens the top of the work tree that contains a folder.
func findTop(dir string) (*os.Root, error) {
	for top := filepath.Clean(dir); ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			return openRoot(top)
		}
		if top == filepath.Dir(top) {
			return nil, errNoTree
		}
	}
}

// openGit opens the folder of the HEAD and the index of a work tree.
func openGit(top *os.Root) (*os.Root, error) {
	info, err := top.Lstat(".git")
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return openRoot(filepath.Join(top.Name(), ".git"))
	}
	text, _, err := readFile(top, ".git", maxPath)
	to, ok := bytes.CutPrefix(text, []byte("gitdir: "))
	if err != nil || !ok {
		return nil, errors.Join(errNoTree, err)
	}
	return openNamed(top, to)
}

// openNamed opens a folder that a file of git names. The name is absolute or relative to the folder "from". A name on
// another machine is an error, because a mere look at it would start a connection on Windows.
func openNamed(from *os.Root, text []byte) (*os.Root, error) {
	name := strings.TrimSpace(string(text))
	slashed := strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(slashed, "//") || strings.HasPrefix(slashed, "/??/") {
		return nil, fmt.Errorf("%w: %q is a name on another machine", errNoTree, name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(from.Name(), name)
	}
	return openRoot(name)
}

// openRoot opens a folder. With the separator at the end, a pipe in its place is an error and does not block.
func openRoot(name string) (*os.Root, error) {
	return os.OpenRoot(filepath.Clean(name) + string(filepath.Separator))
}

// head returns the commit that HEAD names. It is empty if the branch has no commit.
func head(git *os.Root) (string, error) {
	text, _, err := readFile(git, "HEAD", maxPath)
	if err != nil {
		return "", err
	}
	common := git
	to, _, err := readFile(git, "commondir", maxPath)
	if err == nil {
		if common, err = openNamed(git, to); err == nil {
			defer common.Close()
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for range 5 { // the most symbolic references in a row that git follows
		if err != nil {
			return "", err
		}
		ref, symbolic := bytes.CutPrefix(bytes.TrimSpace(text), []byte("ref: "))
		if !symbolic {
			return commitID(ref), nil
		}
		name := filepath.FromSlash(string(ref))
		if !filepath.IsLocal(name) {
			return "", nil
		}
		if text, _, err = readFile(git, name, maxPath); noFile(err) {
			text, _, err = readFile(common, name, maxPath)
		}
		if noFile(err) {
			return packed(common, string(ref))
		}
	}
	return "", err
}

// noFile reports whether an error means that there is no file of a name. Git leaves empty folders in the places of
// packed references.
func noFile(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errFolder) }

// packed returns the commit of a reference in the file of packed references. It is empty if the file does not have the
// reference.
func packed(common *os.Root, name string) (string, error) {
	text, _, err := readFile(common, "packed-refs", maxRefs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for line := range bytes.Lines(text) {
		id, ref, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if string(ref) == name {
			return commitID(id), nil
		}
	}
	return "", nil
}

// commitID returns the id of a commit, or "" for any other text.
func commitID(text []byte) string {
	if _, err := hex.DecodeString(string(text)); err != nil || len(text) != 40 && len(text) != 64 {
		return ""
	}
	return string(text)
}

// readFile reads a regular file of at most "most" bytes, and its time.
func readFile(root *os.Root, name string, most int64) ([]byte, time.Time, error) {
	f, err := open(root, name, 0)
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

// These are errors of open.
var (
	errFolder = errors.New("a folder is in the place of a file")
	errKind   = errors.New("a link or another special file is in the place of a file or a folder")
)

// open opens a file of a type for reading: 0 for a regular file, or fs.ModeDir. It follows no link at the end of the
// name. It does not wait for the other end of a pipe, even if a pipe replaces the file in the meantime.
func open(root *os.Root, name string, kind fs.FileMode) (*os.File, error) {
	before, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case kind == 0 && before.IsDir():
		return nil, fmt.Errorf("%s: %w", name, errFolder)
	case before.Mode().Type() != kind:
		return nil, fmt.Errorf("%s: %w", name, errKind)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !os.SameFile(before, info) {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, errKind), err, f.Close())
	}
	return f, nil
}
