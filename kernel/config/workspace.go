package config

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/message"
)

// DirName is the name of a project's directory for its configuration and its record.
const DirName = ".perlica_config"

// Workspace is a project's directory with its configuration and its record. It may not exist yet.
type Workspace struct {
	// Root is the directory that contains .perlica_config.
	Root string
	// Exists means that .perlica_config exists.
	Exists bool
	// Named means that a person named the directory.
	Named bool

	// Passed lists the workspaces that Find rejected, with the reasons.
	Passed []*WorkspaceError
}

// WorkspaceError means that a workspace cannot be used.
type WorkspaceError struct {
	Path   string
	Reason string
	Err    error
}

// Error returns one printable line.
func (e *WorkspaceError) Error() string {
	return "config: " + printable(e.Path) + ": " + e.Reason
}

// Unwrap returns the cause, or nil.
func (e *WorkspaceError) Unwrap() error { return e.Err }

// ErrRootDirectory means that the project would be the root directory of the file system.
var ErrRootDirectory = errors.New("it is the root directory, which no command takes for a project unasked")

// Find returns the workspace of a directory. It looks for .perlica_config from dir upwards to the top of the git work
// tree. Without a work tree, it also looks above dir, but not in home or the root directory. Above dir it accepts only
// folders of this user that no other user can write to. It lists the rejected ones in Passed. If Find finds no folder,
// the new workspace is at the top of the work tree, or in dir. Find writes nothing, and Ensure creates the workspace.
//
// Find returns a *WorkspaceError if .perlica_config is not a directory, is a symbolic link out of its project, or
// belongs to another user. It may return the root directory, but openRoot refuses to write there.
func Find(dir, home string) (Workspace, error) {
	if !filepath.IsAbs(dir) {
		return Workspace{}, &WorkspaceError{Path: dir, Reason: "the working directory is not an absolute path"}
	}
	dir = filepath.Clean(dir)
	top, isTree := workTree(dir, home)
	for d := dir; ; d = filepath.Dir(d) {
		if exists(filepath.Join(d, DirName)) {
			return checkOwned(d, home)
		}
		if d == top {
			break
		}
	}
	ws := Workspace{Root: top}
	if isTree {
		return ws, nil
	}
	for d := range above(dir, home) {
		path := filepath.Join(d, DirName)
		if !exists(path) {
			continue
		}
		if reason := distrusted(path, home); reason != "" {
			ws.Passed = append(ws.Passed, &WorkspaceError{Path: path, Reason: reason})
			continue
		}
		return checkWorkspace(d)
	}
	return ws, nil
}

// At returns the workspace of a directory that a person named. It may belong to any user.
func At(dir string) (Workspace, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return Workspace{}, &WorkspaceError{Path: dir, Reason: "there is no such directory", Err: err}
	}
	ws, err := checkWorkspace(filepath.Clean(dir))
	ws.Named = true
	return ws, err
}

// above yields the directories above dir, up to home or the root directory. It does not yield these two.
func above(dir, home string) iter.Seq[string] {
	return func(yield func(string) bool) {
		end, err := os.Stat(home)
		if err == nil && isHome(dir, end) {
			return
		}
		for d := filepath.Dir(dir); !isRoot(d) && (err != nil || !isHome(d, end)) && yield(d); d = filepath.Dir(d) {
		}
	}
}

// workTree returns the top of the git work tree that contains dir. Without a work tree, top is dir and ok is false. A
// .git above dir is used only if it belongs to this user, to root, or to the owner of dir. In /tmp, for example,
// another user could have put it there.
func workTree(dir, home string) (top string, ok bool) {
	if end, err := os.Stat(home); err == nil && isHome(dir, end) {
		return dir, false
	}
	if exists(filepath.Join(dir, ".git")) {
		return dir, true
	}
	for d := range above(dir, home) {
		if git := filepath.Join(d, ".git"); exists(git) && (isOwn(git, home) || haveOneOwner(git, dir)) {
			return d, true
		}
	}
	return dir, false
}

// isRoot reports whether a directory is the root directory.
func isRoot(dir string) bool { return dir == filepath.Dir(dir) }

// isHome reports whether dir is the home directory, also by another path.
func isHome(dir string, home fs.FileInfo) bool {
	info, err := os.Stat(dir)
	return err == nil && os.SameFile(info, home)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// checkOwned works like checkWorkspace, and also refuses a folder of another user.
func checkOwned(root, home string) (Workspace, error) {
	ws, err := checkWorkspace(root)
	if err == nil && isForeign(ws.Dir(), home) {
		err = &WorkspaceError{Path: ws.Dir(), Reason: "belongs to another user"}
	}
	return ws, err
}

func checkWorkspace(root string) (Workspace, error) {
	ws := Workspace{Root: root}
	info, err := os.Lstat(ws.Dir())
	if err != nil {
		return ws, nil
	}
	ws.Exists = true
	if info.Mode()&fs.ModeSymlink != 0 {
		if info, err = statWithin(root, DirName); err != nil {
			return ws, &WorkspaceError{Path: ws.Dir(), Reason: "is a symbolic link that leads out of the project or nowhere",
				Err: err}
		}
	}
	if !info.IsDir() {
		return ws, &WorkspaceError{Path: ws.Dir(), Reason: "is not a directory"}
	}
	return ws, nil
}

// statWithin returns the FileInfo of a file below root. It follows symbolic links only while they stay below root.
func statWithin(root, name string) (fs.FileInfo, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Stat(name)
}

// Dir returns the path of .perlica_config.
func (w Workspace) Dir() string { return filepath.Join(w.Root, DirName) }

// ConfigFile returns the path of the project's configuration file.
func (w Workspace) ConfigFile() string { return filepath.Join(w.Dir(), "config.toml") }

// SystemPromptFile returns the path of the text that Perlica puts before the first prompt of a session.
func (w Workspace) SystemPromptFile() string { return filepath.Join(w.Dir(), "prompts", "system.md") }

// ContextPaths has the paths of the files of one context.
type ContextPaths struct {
	Dir, EventLog, Sessions, Approvals, Search, Changes, Logs, Locks string
}

// Views returns the files that are derived from the log. If one is deleted, Perlica builds it again.
func (p ContextPaths) Views() []string {
	return []string{p.Sessions, p.Approvals, p.Search, p.Changes}
}

// Context returns the paths of a context. If the name is not one path element, the error is a *ContextNameError.
func (w Workspace) Context(name string) (ContextPaths, error) {
	if err := CheckContextName(name); err != nil {
		return ContextPaths{}, err
	}
	dir := filepath.Join(w.Dir(), "contexts", name)
	in := func(file string) string { return filepath.Join(dir, file) }
	return ContextPaths{dir, in("eventlog.db"), in("sessions.db"), in("approvals.db"), in("search.db"),
		in("changes.db"), in("logs"), in("locks")}, nil
}

// ServicePaths has the paths of the messaging bridge's files.
type ServicePaths struct {
	Dir, Bridge, Lock, Files string
}

// Service returns the paths of the messaging bridge. A project has one bridge.
func (w Workspace) Service() ServicePaths {
	dir := filepath.Join(w.Dir(), "service")
	in := func(file string) string { return filepath.Join(dir, file) }
	return ServicePaths{dir, in("service_bridge.db"), in("service.lock"), in("files")}
}

// EnsureService creates the directories of the messaging bridge, as Ensure does for a context. The context must already
// exist.
func (w Workspace) EnsureService() (ServicePaths, error) {
	paths := w.Service()
	root, err := w.openRoot()
	if err != nil {
		return paths, err
	}
	defer root.Close()
	dir := filepath.Join(DirName, "service")
	for _, d := range []string{dir, filepath.Join(dir, "files")} {
		if err := ensureWithoutLinks(root, d); err != nil {
			return paths, w.refusePath(d, err)
		}
	}
	return paths, nil
}

// openRoot opens the project's directory as a root, so that no symbolic link leads to a file outside. It refuses the
// root directory of the file system unless a person named it, because that project would be the whole machine.
func (w Workspace) openRoot() (*os.Root, error) {
	if isRoot(w.Root) && !w.Named {
		return nil, &WorkspaceError{Path: w.Root, Reason: ErrRootDirectory.Error(), Err: ErrRootDirectory}
	}
	root, err := os.OpenRoot(w.Root)
	if err != nil {
		return nil, &WorkspaceError{Path: w.Root, Reason: "cannot be opened: " + cause(err), Err: err}
	}
	return root, nil
}

// Ensure creates the directories of a context, with mode 0700, and a .gitignore that excludes the record from git. It
// does not change a .gitignore that a person wrote. It refuses symbolic links in the contexts folder with a
// *WorkspaceError, because a cloned repository must not direct the record to another place.
//
// If only the folder of the debug trail cannot be created, Ensure returns no error. Ensure does not sync directories.
func (w Workspace) Ensure(name string) (ContextPaths, error) {
	paths, err := w.Context(name)
	if err != nil {
		return paths, err
	}
	root, err := w.openRoot()
	if err != nil {
		return paths, err
	}
	defer root.Close()
	if err := w.ensureDirs(root, name); err != nil {
		return paths, err
	}
	return paths, w.ensureIgnored(root)
}

func (w Workspace) ensureDirs(root *os.Root, name string) error {
	context := filepath.Join(DirName, "contexts", name)
	locks, logs := filepath.Join(context, "locks"), filepath.Join(context, "logs")
	for _, dir := range []string{DirName, filepath.Dir(context), context, locks} {
		if err := ensureDir(root, dir, dir != DirName); err != nil {
			return w.refusePath(dir, err)
		}
	}
	for _, dir := range []string{context, locks} {
		if err := refuseLinks(root, dir); err != nil {
			return w.refusePath(dir, err)
		}
	}
	if err := ensureWithoutLinks(root, logs); errors.Is(err, errLink) {
		return w.refusePath(logs, err)
	}
	return nil // without its folder only the lines of the debug trail are lost
}

func (w Workspace) refusePath(path string, err error) error {
	return &WorkspaceError{Path: filepath.Join(w.Root, path), Reason: cause(err), Err: err}
}

// cause returns an error's text without the path, because the caller adds the path.
func cause(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// ensureDir creates a directory. If private is true, it also removes the rights of other users and refuses a symbolic
// link in place of the directory.
func ensureDir(root *os.Root, dir string, private bool) error {
	err := root.Mkdir(dir, 0o700)
	if err == nil {
		return nil
	}
	info, statErr := root.Lstat(dir)
	if statErr != nil {
		return err
	}
	if !private && info.Mode()&fs.ModeSymlink != 0 {
		info, err = root.Stat(dir)
		if err != nil {
			return err
		}
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return errLink
	case !info.IsDir():
		return errNoDir
	case private && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return root.Chmod(dir, 0o700)
	}
	return nil
}

// ensureWithoutLinks creates a private directory. It refuses an existing directory that contains a symbolic link.
func ensureWithoutLinks(root *os.Root, dir string) error {
	if err := ensureDir(root, dir, true); err != nil {
		return err
	}
	return refuseLinks(root, dir)
}

var (
	errLink  = fmt.Errorf("is or holds a symbolic link")
	errNoDir = fmt.Errorf("is not a directory")
)

func refuseLinks(root *os.Root, dir string) error {
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			return errLink
		}
	}
	return nil
}

// ContextNameError means that a name is not valid for a context.
type ContextNameError struct {
	Name   string
	Reason string
}

// Error returns one printable line.
func (e *ContextNameError) Error() string {
	return fmt.Sprintf("config: context %q: %s", printable(e.Name), e.Reason)
}

// CheckContextName returns a *ContextNameError unless the name is a valid file name on every operating system.
func CheckContextName(name string) error {
	if reason := contextFault(name); reason != nil {
		return &ContextNameError{Name: name, Reason: reason.Text}
	}
	return nil
}

func contextFault(name string) *message.Text {
	stem, _, _ := strings.Cut(name, ".")
	switch {
	case name == "":
		return uncoded("the name of a context is not empty")
	case len(name) > 64:
		return uncoded("the name of a context is at most 64 bytes long")
	case !utf8.ValidString(name):
		return uncoded("the name of a context is valid UTF-8")
	case name[0] == '.':
		return uncoded("the name of a context does not begin with a dot")
	case strings.ContainsAny(name, `/\%:*?"<>|`):
		return uncoded(`the name of a context holds none of / \ % : * ? " < > |`)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return uncoded("the name of a context holds no control characters")
	case strings.HasSuffix(name, ".") || strings.TrimSpace(name) != name:
		return uncoded("the name of a context does not end with a dot, nor begin or end with a space")
	case reservedName(strings.ToUpper(strings.TrimSpace(stem))):
		return uncoded("the name is reserved on Windows")
	}
	return nil
}

// reservedName reports whether Windows reserves the name for a device.
func reservedName(stem string) bool {
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	for _, device := range []string{"COM", "LPT"} {
		if n, ok := strings.CutPrefix(stem, device); ok && utf8.RuneCountInString(n) == 1 &&
			strings.ContainsAny(n, "0123456789¹²³") {
			return true
		}
	}
	return false
}
