// Package sandbox puts an agent into a sandbox of the system.
//
// The package makes three promises. A requested mode holds completely, or the agent does not start. Perlica's
// folders, sockets and other processes are out of the agent's reach in every mode but off. The applied rules can be
// read and recorded.
//
// The central idea is a table of paths. Each path has one access, and the nearest path above a file decides. Spec
// describes the needs of one agent, and the table becomes the arguments of bubblewrap (bwrap). Landlock alone is no
// mode. Where the kernel has it, Landlock closes abstract sockets, which no mount can hide. The package starts no
// agent: provider/process does.
package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/perlica/perlica/provider/proxy"
)

// Mode is the reach of an agent.
type Mode string

// The modes, from the loosest to the strictest. The empty mode means Off.
const (
	Off     Mode = "off"     // everything that the user can reach
	Protect Mode = "protect" // everything but Perlica, other processes and the places from which programs start
	Project Mode = "project" // writes to its project only, and reads no secrets
	Offline Mode = "offline" // as in Project, and connects to listed hosts only
)

// Modes lists the modes, the loosest first.
func Modes() []Mode { return []Mode{Off, Protect, Project, Offline} }

// Stricter returns the stricter of two modes.
func Stricter(a, b Mode) Mode {
	if slices.Index(Modes(), a) < slices.Index(Modes(), b) {
		return b
	}
	return a
}

// Spec describes the sandbox of one agent. Paths are absolute. A path that does not exist is left out.
type Spec struct {
	Mode Mode
	Home string
	Work []string // folders in which the agent works: it may write there in every mode
	Own  []string // the agent's own configuration and data, relative to Home or absolute
	// Foreign lists the configuration of other agents, relative to Home. It counts as secret.
	Foreign []string
	Hide    []string // folders of Perlica: New creates a missing one, so that it stays hidden
	Keep    []string // files and folders that the agent may only read, although it may write around them
	Show    []string // files and folders that the agent may read, although they lie in a hidden folder
	Program string   // Perlica's own program
	Search  []string // the folders of PATH
	Environ []string // the variables that name sockets

	Hosts []proxy.Host // the hosts of the mode Offline
	Enter []string     // the command line that calls proxy.Enter, for the mode Offline
}

// ErrUnavailable means that this machine cannot provide the requested sandbox.
var ErrUnavailable = errors.New("the sandbox is not available")

// Error explains why a requested sandbox cannot be had. It wraps ErrUnavailable.
type Error struct {
	Mode Mode
	Why  string
	Do   string // the next step
}

func (e *Error) Error() string {
	return "sandbox " + string(e.Mode) + " is not available: " + e.Why + "; nothing was sent"
}

// Unwrap returns ErrUnavailable.
func (e *Error) Unwrap() error { return ErrUnavailable }

// Usage reports that the command line or the configuration asked for something that cannot be had.
func (e *Error) Usage() bool { return true }

// Hint names the next step.
func (e *Error) Hint() string { return e.Do }

// Sandbox is ready to start processes inside.
type Sandbox struct {
	Mode    Mode
	bwrap   string
	args    []string
	hosts   []proxy.Host
	enter   []string // nil unless the mode is Offline
	table   *table
	sockets []string // the covered sockets
	// Rules are the rules as they are applied, one for each path, and the paths that were left out.
	Rules   []string
	version func() string
	// Scoped says that Landlock keeps the agent from abstract sockets of other programs.
	Scoped bool
}

// install names the package with bubblewrap.
const install = "install bubblewrap (Debian, Ubuntu, Fedora, Arch: the package bubblewrap), or choose --sandbox off"

// Find returns the path of bubblewrap. It takes the first bwrap on PATH that only the system can replace. The error is
// an *Error about the mode.
func Find(mode Mode) (path string, err error) {
	if runtime.GOOS != "linux" {
		return "", &Error{mode, "Perlica has sandboxes on Linux only", "choose --sandbox off"}
	}
	why := "the program bwrap is not on PATH"
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path, err := exec.LookPath(filepath.Join(dir, "bwrap"))
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		if isSystems(path) {
			return path, nil
		}
		why = "an agent could have replaced " + path
	}
	return "", &Error{mode, why, install}
}

// New computes the rules of a sandbox on this machine. It creates the missing folders of spec.Hide and the caches of
// installed tools. The error is an *Error. New starts nothing, so a sandbox can still fail to start: see Explain.
func New(spec Spec) (*Sandbox, error) {
	b, _, err := newSandbox(spec)
	return b, err
}

// newSandbox is New. It also returns the folders that it made, each one after the folders above it.
func newSandbox(spec Spec) (b *Sandbox, made []string, err error) {
	path, err := Find(spec.Mode)
	if err != nil {
		return nil, nil, err
	}
	if spec.Mode == Offline {
		spec.Show = append(slices.Clone(spec.Show), spec.Enter[0])
	}
	table, err := spec.table()
	if err != nil {
		return nil, nil, &Error{spec.Mode, err.Error(), "make it readable, or choose --sandbox off"}
	}
	b = &Sandbox{Mode: spec.Mode, table: table, bwrap: path, version: versionOf(path), Scoped: canScope(path)}
	b.args = []string{"--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try", "--die-with-parent",
		"--cap-drop", "ALL", "--unsetenv", "SSH_AUTH_SOCK", "--unsetenv", "SSH_AGENT_PID"}
	if spec.Mode != Protect {
		b.args = append(b.args, "--setenv", "TMPDIR", "/tmp", "--unsetenv", "TMP", "--unsetenv", "TEMP")
	}
	for _, r := range table.rules() {
		b.args = append(b.args, r.args()...)
		b.Rules = append(b.Rules, r.String())
		if r.socket {
			b.sockets = append(b.sockets, r.path)
		}
	}
	if spec.Mode == Offline {
		b.args = append(b.args, "--unshare-net")
		b.hosts, b.enter = spec.Hosts, append(slices.Clone(spec.Enter), strings.Join(proxy.Locals(spec.Hosts), ","), "--")
		for _, h := range spec.Hosts {
			b.Rules = append(b.Rules, "connect "+h.String())
		}
	}
	for _, path := range table.left {
		b.Rules = append(b.Rules, "left out "+path+": an agent could have made a link in it")
	}
	return b, table.made, nil
}

// versionOf returns a function that waits for the version of a bwrap program.
func versionOf(bwrap string) func() string {
	read := sync.OnceValue(func() string {
		out, err := exec.Command(bwrap, "--version").Output()
		if err != nil {
			return ""
		}
		return strings.TrimPrefix(strings.TrimSpace(string(out)), "bubblewrap ")
	})
	go read() // runs while the agent starts; the next call waits for it
	return read
}

// Writes reports whether the rules let a process inside write to a path, after the links of the path. The owner and the
// mode of a file do not count.
func (b *Sandbox) Writes(path string) bool {
	a := b.table.of(followed(path))
	return a != hidden && a != read
}

// Reads reports whether the rules let a process inside read a path, after the links of the path.
func (b *Sandbox) Reads(path string) bool { return b.table.of(followed(path)) != hidden }

// followed returns the target of a path after all links of its existing part.
func followed(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if dir := filepath.Dir(path); err != nil && dir != path {
		return filepath.Join(followed(dir), filepath.Base(path))
	}
	return real
}

// Connects reports whether a process inside can connect to a host. The port 0 means any port. Outside of the mode
// Offline every host is in reach.
func (b *Sandbox) Connects(host string, port int) bool {
	return b.Mode != Offline || slices.ContainsFunc(b.hosts, func(h proxy.Host) bool { return h.Admits(host, port) })
}

// Version returns the version of bubblewrap, or "" if it cannot be read.
func (b *Sandbox) Version() string { return b.version() }

// Open starts the proxy of the mode Offline for the process that cmd describes. In another mode it returns nil. The
// caller calls Started after the start, and Close after the end of the process. record gets each connection.
func (b *Sandbox) Open(cmd *exec.Cmd, record func(proxy.Connection)) (*proxy.Proxy, error) {
	if b == nil || b.Mode != Offline {
		return nil, nil
	}
	return proxy.Open(cmd, b.hosts, record)
}

// Command returns the command line that runs a program inside. dir is the working directory. In the mode Offline the
// process needs the proxy of Open.
func (b *Sandbox) Command(dir, path string, args ...string) []string {
	argv := append([]string{b.bwrap}, b.args...)
	if dir != "" {
		argv = append(argv, "--chdir", dir)
	}
	argv = append(append(argv, "--"), b.enter...)
	return append(append(argv, path), args...)
}

// removeLeft removes the empty files that bubblewrap has made in the places of sockets that vanished during a start.
// Otherwise their programs could not make the sockets again.
func (b *Sandbox) removeLeft() {
	for _, path := range b.sockets {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.Size() == 0 && info.Mode().Perm()&0o222 == 0 {
			_ = os.Remove(path) // bubblewrap has just made it, so it can be removed
		}
	}
}

// Explain returns an *Error if this machine cannot start the sandbox. It starts a program that does nothing. The
// caller asks after an agent ended without a word.
func (b *Sandbox) Explain() error {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	argv := append([]string{b.bwrap, "--as-pid-1"}, b.args...) // so that no process of bwrap is left to reap
	argv = append(argv, "--", self, "--version")
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	b.removeLeft()
	said, fault, found := strings.Cut(strings.TrimSpace(string(out)), "bwrap: ")
	if err == nil || !found || said != "" || strings.HasPrefix(fault, "execvp") {
		return nil
	}
	fault, _, _ = strings.Cut(fault, "\n")
	if slices.ContainsFunc(b.sockets, func(path string) bool { return strings.Contains(fault, path) }) {
		return nil // a program outside has just removed its socket
	}
	e := &Error{b.Mode, "bubblewrap says: " + fault, "'perlica sandbox check' says more; or choose --sandbox off"}
	for _, word := range []string{"namespace", "uid map", "proc", "slave", "root", "loopback"} {
		if strings.Contains(fault, word) {
			e.Do = "the system forbids user namespaces or mounts here, as containers often do: " +
				"allow them, or choose --sandbox off"
		}
	}
	return e
}
