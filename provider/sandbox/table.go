package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// access is the right of the agent to a path and everything below it.
type access int

// These are the kinds of access. If two rules name the same path, the first kind in this list wins.
const (
	hidden  access = iota // the agent sees an empty folder or an empty file
	private               // the agent sees an empty folder and can write there; its files end with the agent
	read
	write
	devices // the agent sees a small /dev with a few safe devices
	procs   // the agent sees a /proc with its own processes only
)

// rule is a path in the table with its access.
type rule struct {
	path   string
	access access
	file   bool
	socket bool
}

func (r rule) String() string {
	return [...]string{"hidden", "private", "read", "write", "devices", "processes"}[r.access] + " " + r.path
}

// args returns the arguments with which bwrap applies the rule.
func (r rule) args() []string {
	switch {
	case r.access == hidden && r.file:
		return []string{"--dev-bind", "/dev/null", r.path}
	case r.access == hidden:
		return []string{"--perms", "0500", "--tmpfs", r.path}
	case r.access == private && (r.path == "/tmp" || r.path == "/var/tmp"):
		return []string{"--perms", "1777", "--tmpfs", r.path}
	case r.access == private && r.path == "/run":
		return []string{"--perms", "0755", "--tmpfs", r.path}
	case r.access == private:
		return []string{"--perms", "0700", "--tmpfs", r.path}
	case r.access == read:
		return []string{"--ro-bind", r.path, r.path}
	case r.access == devices:
		return []string{"--dev", r.path}
	case r.access == procs:
		return []string{"--proc", r.path}
	}
	return []string{"--bind", r.path, r.path}
}

// table is the table of paths with their access. Its paths contain no symbolic links.
type table struct {
	access map[string]access
	pinned map[string]bool // paths that become mount points, so that the agent cannot rename them
	left   []string        // the agent's own paths that are omitted because of a link that an agent may have made
	made   []string        // the created folders, each after the folders above it
	links  links
}

func newTable(l links) *table {
	return &table{access: map[string]access{}, pinned: map[string]bool{}, links: l}
}

// links maps paths to the same paths after all symbolic links. Most paths of a table lie in few folders, so links
// remembers the folders.
type links map[string]string

// eval returns an existing path after all symbolic links.
func (l links) eval(path string) (string, error) {
	if !filepath.IsAbs(path) || strings.Contains(path, "..") {
		return filepath.EvalSymlinks(path) // ".." after a link means the folder above the target
	}
	path = filepath.Clean(path)
	dir := filepath.Dir(path)
	if dir == path {
		return path, nil
	}
	if real, ok := l[path]; ok {
		return real, nil
	}
	dir, err := l.eval(dir)
	if err != nil {
		return "", err
	}
	real := filepath.Join(dir, filepath.Base(path))
	switch _, err = os.Readlink(real); {
	case err == nil:
		real, err = filepath.EvalSymlinks(real)
	case errors.Is(err, syscall.EINVAL):
		err = nil // not a link
	}
	if err != nil {
		return "", err
	}
	l[path] = real
	return real, nil
}

// makeFolder creates a folder and the folders above it, if they are missing. It returns false if this fails.
func (t *table) makeFolder(dir string, mode fs.FileMode) bool {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		missing = append(missing, d)
	}
	err := os.MkdirAll(dir, mode)
	if err == nil {
		slices.Reverse(missing)
		t.made = append(t.made, missing...)
	}
	return err == nil
}

// add sets the access of paths, after all links. It ignores paths that do not exist.
func (t *table) add(a access, paths ...string) {
	for _, path := range paths {
		if path == "" || !filepath.IsAbs(path) {
			continue
		}
		if real, err := t.links.eval(path); err == nil {
			t.put(a, real)
		}
	}
}

func (t *table) put(a access, real string) {
	if old, ok := t.access[real]; !ok || a < old {
		t.access[real] = a
	}
}

// pin makes a path and the folders above it mount points, so that the agent cannot rename them.
func (t *table) pin(path string) {
	real, err := t.links.eval(path)
	for ; err == nil && real != filepath.Dir(real); real = filepath.Dir(real) {
		t.pinned[real] = true
	}
}

// of returns the access of a path: that of the nearest path in the table at or above the path.
func (t *table) of(path string) access {
	for ; ; path = filepath.Dir(path) {
		if a, ok := t.access[path]; ok {
			return a
		}
		if path == filepath.Dir(path) {
			return read
		}
	}
}

// rules returns the rules of the table without those that have no effect. The rule for a path follows the rules for the
// folders above it.
func (t *table) rules() (list []rule) {
	for path := range t.pinned {
		if _, ok := t.access[path]; !ok && t.of(path) == write {
			t.access[path] = write
		}
	}
	paths := slices.SortedFunc(maps.Keys(t.access), func(a, b string) int {
		return cmp.Compare(strings.TrimSuffix(a, "/")+"/", strings.TrimSuffix(b, "/")+"/")
	})
	open := map[string]bool{}
	for _, path := range paths {
		a := t.access[path]
		info, err := os.Lstat(path)
		if a < devices && (err != nil || !isReachable(path, open)) {
			continue
		}
		if path != "/" {
			above := t.of(filepath.Dir(path))
			empty := above == hidden || above == private || above == devices || above == procs
			pin := t.pinned[path] && above == write // in a read-only folder nothing can be renamed
			if a == above && !pin || a == hidden && empty {
				continue
			}
		}
		r := rule{path: path, access: a}
		if err == nil {
			r.file, r.socket = !info.IsDir(), info.Mode()&fs.ModeSocket != 0
		}
		list = append(list, r)
	}
	return list
}

// table computes the table for the spec.
func (s Spec) table() (*table, error) {
	t := newTable(links{})
	homes := s.homes()
	if len(homes) == 0 {
		return nil, errors.New("the home is not known")
	}
	s.Home = homes[0]
	temporary := make(chan []string, 1)
	go func() { temporary <- s.temporary() }() // a full /tmp takes as long as the rest of the table
	for _, dir := range s.Hide {
		t.makeFolder(dir, 0o700) // if Perlica cannot create the folder, the agent cannot either
	}
	t.put(read, "/")
	t.put(devices, "/dev")
	t.put(procs, "/proc")
	if os.Getuid() == 0 { // root owns these files, so the agent could write them
		t.add(read, "/proc/sys", "/proc/sysrq-trigger")
		t.add(private, "/proc/irq", "/proc/bus", "/proc/acpi", "/proc/fs", "/proc/scsi") // an empty folder starts faster
	}
	t.put(private, "/run")
	t.add(private, "/var/run", s.variable("XDG_RUNTIME_DIR"))
	t.add(read, resolvers()...)
	if s.Mode == Protect {
		t.shareSystem()
		for _, home := range homes {
			if err := t.shareHome(home); err != nil && home == s.Home { // if it is the other home, this home stays read-only
				return nil, err
			}
		}
	} else {
		t.put(private, "/tmp")
		t.add(private, "/var/tmp")
		t.add(read, homes...)
		t.add(hidden, secretFiles...)
		own := s.below(s.Own)
		for _, path := range below(homes, slices.Concat(secrets, s.Foreign)) {
			if !slices.Contains(own, path) {
				t.add(hidden, path)
			}
		}
	}
	own := slices.Concat(s.caches(t), s.below(s.Own))
	loose := s.loose(t.links, homes, own)
	for _, path := range own {
		if loose.hasLink(path) {
			t.left = append(t.left, path)
		} else {
			t.add(write, path)
		}
	}
	t.add(private, filepath.Join(s.Home, ".cache"))
	t.add(write, s.Work...)
	t.add(write, worktrees(s.Work)...)
	t.add(read, s.Search...)
	t.add(read, s.Program)
	t.add(read, s.Keep...)
	mounted := mounts()
	t.add(hidden, slices.Concat(s.Hide, below(homes, usual), kernelFolders(mounted), s.sockets(t, <-temporary))...)
	t.coverAliases(mounted, homes)
	for _, path := range s.Show {
		real, err := t.links.eval(path)
		if a := t.of(real); err == nil && a != read && a != write {
			t.put(read, real)
		}
	}
	for _, path := range slices.Concat(s.Hide, s.Work, s.Keep, s.Search, []string{s.Program}) {
		t.pin(path)
	}
	return t, nil
}

// loose returns a table for the loosest sandbox. In it, an agent can write to each path to which an earlier agent could
// have written in any mode.
func (s Spec) loose(l links, homes, own []string) *table {
	t := newTable(l)
	t.put(read, "/")
	t.shareSystem()
	for _, home := range homes {
		_ = t.shareHome(home) // an unreadable home stays read-only
	}
	t.add(write, s.Work...)
	for _, path := range own {
		t.put(write, path)
	}
	return t
}

// hasLink reports whether a path contains a symbolic link in a folder to which the table lets an agent write. The agent
// could have made such a link.
func (t *table) hasLink(path string) bool {
	if _, err := t.links.eval(path); err != nil {
		return false // the path does not exist, or its links form a loop
	}
	for p := filepath.Clean(path); p != filepath.Dir(p); p = filepath.Dir(p) {
		target, err := os.Readlink(p)
		if err != nil {
			continue // not a link
		}
		dir, err := t.links.eval(filepath.Dir(p))
		if err != nil || t.of(dir) == write || t.hasLink(from(dir, target)) {
			return true
		}
	}
	return false
}

// coverAliases makes other mounts of the homes read-only, and hides other mounts of hidden paths.
func (t *table) coverAliases(mounted []mount, homes []string) {
	var covered []string
	for path, a := range t.access {
		if a == hidden {
			covered = append(covered, path)
		}
	}
	t.add(read, aliases(mounted, homes)...)
	t.add(hidden, aliases(mounted, covered)...)
}

// below returns the absolute paths of names, which may be relative to the home.
func (s Spec) below(names []string) []string { return below([]string{s.Home}, names) }

// below returns the absolute paths of names, which may be relative to each of the homes.
func below(homes, names []string) (paths []string) {
	for _, home := range homes {
		for _, name := range names {
			if !filepath.IsAbs(name) {
				name = filepath.Join(home, name)
			}
			paths = append(paths, name)
		}
	}
	return paths
}

// accountHome returns the home directory of the user's account in the system, or "". It is a variable so that tests can
// replace it.
var accountHome = func() string {
	account, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return ""
	}
	return account.HomeDir
}

// homes returns Spec.Home and the home of the user's account. They may differ, because Spec.Home follows the variable
// HOME.
func (s Spec) homes() (homes []string) {
	for _, home := range []string{s.Home, accountHome()} {
		if filepath.IsAbs(home) && !slices.Contains(homes, filepath.Clean(home)) {
			homes = append(homes, filepath.Clean(home))
		}
	}
	return homes
}

// variable returns the value of a variable in Environ, or "".
func (s Spec) variable(name string) string {
	for _, kv := range slices.Backward(s.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// system are the folders directly below the root to which the agent must never write.
var system = []string{"bin", "boot", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "lost+found", "nix",
	"opt",
	"proc", "root", "run", "sbin", "snap", "sys", "usr", "var"}

// shareSystem lets the agent write to all folders directly below the root except those in system. It also lets it write
// to /var/tmp.
func (t *table) shareSystem() {
	entries, _ := os.ReadDir("/") // if this fails, no folder becomes writable
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(system, e.Name()) {
			t.put(write, "/"+e.Name())
		}
	}
	t.add(write, "/var/tmp")
}

// shareHome lets the agent write to the entries of the home without a dot. The home itself and the entries with a dot
// are read-only, because shells, editors and desktops start programs from there. A new entry with a dot would have the
// same effect.
func (t *table) shareHome(home string) error {
	if home == "/" {
		return nil
	}
	t.add(read, home)
	entries, err := os.ReadDir(home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the home cannot be read: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(home, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
			t.keepTargets(path, e)
		case e.Type()&fs.ModeSymlink == 0:
			t.add(write, path)
		}
	}
	return nil
}

// keepTargets makes the target of path read-only if path is a symbolic link, because many people keep their dotfiles in
// a visible folder. For the folder .config it does the same with the links in it.
func (t *table) keepTargets(path string, e fs.DirEntry) {
	if e.Type()&fs.ModeSymlink != 0 {
		t.add(read, path)
		t.pin(path)
		return
	}
	if e.Name() == ".config" {
		entries, _ := os.ReadDir(path) // an unreadable folder has no targets
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				t.add(read, filepath.Join(path, e.Name()))
				t.pin(filepath.Join(path, e.Name()))
			}
		}
	}
}
