// Package sandbox builds a sandbox around an agent with bubblewrap (bwrap) and Landlock on Linux.
//
// The package makes three promises. A requested mode holds completely, or the agent does not start. In every mode
// except off, the agent cannot reach Perlica's folders, sockets of other programs, or other processes. A caller can
// show and record the applied rules.
//
// A Spec describes the needs of one agent. The package turns it into a table that gives some paths an access, such as
// hidden or read. The access of a file is that of the nearest path in the table at or above the file. The table becomes
// the arguments of bwrap. Landlock only adds to bwrap: it closes abstract sockets, which no mount can hide, if the
// kernel supports this. Package provider/process starts the agent.
package sandbox

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/perlica/perlica/provider/proxy"
)

// Mode says how far an agent in the sandbox can reach.
type Mode string

// These are the modes, from the loosest to the strictest. Each comment describes the agent in this mode. The empty mode
// means Off.
const (
	Off     Mode = "off"     // can reach everything that the user can reach
	Protect Mode = "protect" // cannot reach Perlica and other processes, or change files from which programs start
	Project Mode = "project" // can write only to its project, and cannot read secrets
	Offline Mode = "offline" // as in Project, and can connect only to listed hosts
)

// Modes returns all modes, from the loosest to the strictest.
func Modes() []Mode { return []Mode{Off, Protect, Project, Offline} }

// Stricter returns the stricter of two modes.
func Stricter(a, b Mode) Mode {
	if slices.Index(Modes(), a) < slices.Index(Modes(), b) {
		return b
	}
	return a
}

// Spec describes the sandbox of one agent. Its paths are absolute. A path that does not exist has no effect.
type Spec struct {
	Mode Mode
	Home string
	Work []string // folders in which the agent works and may write in every mode
	Own  []string // the agent's own configuration and data, relative to Home or absolute
	// Foreign has the configuration of other agents, relative to Home. The modes Project and Offline hide it like
	// secrets.
	Foreign []string
	Hide    []string // folders of Perlica to hide; New creates a missing one, so that the agent cannot
	Keep    []string // files and folders that the agent may only read, even inside a writable folder
	Show    []string // files and folders that the agent may read, even inside a hidden folder
	Program string   // Perlica's own program, which the agent may only read
	Search  []string // the folders of PATH, which the agent may only read
	Environ []string // environment variables; New hides the sockets that they name

	Hosts []proxy.Host // in the mode Offline: the hosts to which the agent may connect
	Enter []string     // in the mode Offline: the command line of a program that calls proxy.Enter
}

// ErrUnavailable means that this machine cannot provide the requested sandbox.
var ErrUnavailable = errors.New("the sandbox is not available")

// Error has the reason why this machine cannot provide a requested sandbox. It wraps ErrUnavailable.
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

// Usage returns true, because the command line or the configuration asks for something impossible. The command then
// exits as for a wrong flag.
func (e *Error) Usage() bool { return true }

// Hint returns the next step for the person.
func (e *Error) Hint() string { return e.Do }

// Sandbox is a computed sandbox in which a caller can start processes.
type Sandbox struct {
	Mode    Mode
	bwrap   string
	args    []string
	hosts   []proxy.Host
	enter   []string // nil unless the mode is Offline
	table   *table
	sockets []string // the paths of hidden sockets, see removeLeft
	// Rules are the applied rules as texts, one for each path, and the paths of the agent that were omitted because of
	// a link.
	Rules []string
	// Scoped says that Landlock closes the abstract sockets of other programs for the agent.
	Scoped bool
}

// install is the next step for a person without bubblewrap.
const install = "install bubblewrap (Debian, Ubuntu, Fedora, Arch: the package bubblewrap), or choose --sandbox off"

// Find returns the path of bubblewrap: the first bwrap on PATH that no agent of this user could have replaced. The
// error is an *Error for this mode.
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
// installed tools. The error is an *Error. New starts nothing in the sandbox, so a process can still fail to start
// there. Then Explain gives the reason.
func New(spec Spec) (*Sandbox, error) {
	b, _, err := newSandbox(spec)
	return b, err
}

// newSandbox does the work of New. It also returns the folders that it created. Each folder follows the folders above
// it.
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
	b = &Sandbox{Mode: spec.Mode, table: table, bwrap: path, Scoped: canScope(path)}
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

// Writes reports whether the rules let a process inside write to a path, after all links. It ignores the owner and the
// mode of the file.
func (b *Sandbox) Writes(path string) bool {
	a := b.table.of(followed(path))
	return a != hidden && a != read
}

// Reads reports whether the rules let a process inside read a path, after all links.
func (b *Sandbox) Reads(path string) bool { return b.table.of(followed(path)) != hidden }

// followed returns the path after all symbolic links. The last names of the path need not exist.
func followed(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if dir := filepath.Dir(path); err != nil && dir != path {
		return filepath.Join(followed(dir), filepath.Base(path))
	}
	return real
}

// Connects reports whether a process inside can connect to a host. The port 0 means any port. In all modes except
// Offline it returns true.
func (b *Sandbox) Connects(host string, port int) bool {
	return b.Mode != Offline || slices.ContainsFunc(b.hosts, func(h proxy.Host) bool { return h.Admits(host, port) })
}

// Version returns the version of bubblewrap, or "" if it cannot be read.
// It reads the text that the program prints as its version, because a start of the program would take longer.
func (b *Sandbox) Version() string {
	data, err := os.ReadFile(b.bwrap)
	_, text, ok := bytes.Cut(data, []byte("\x00bubblewrap "))
	version, _, ended := bytes.Cut(text, []byte{0})
	if err != nil || !ok || !ended {
		return ""
	}
	return string(version)
}

// Open starts the proxy for the process that cmd describes, in the mode Offline. In another mode it returns nil. The
// proxy calls the function "record" with each connection. The caller must call Started after the start of the process,
// and Close after its end.
func (b *Sandbox) Open(cmd *exec.Cmd, record func(proxy.Connection)) (*proxy.Proxy, error) {
	if b == nil || b.Mode != Offline {
		return nil, nil
	}
	return proxy.Open(cmd, b.hosts, record)
}

// Command returns the command line that runs the program path in the sandbox, with the working directory dir. In the
// mode Offline the caller must also call Open for this process.
func (b *Sandbox) Command(dir, path string, args ...string) []string {
	argv := append([]string{b.bwrap}, b.args...)
	if dir != "" {
		argv = append(argv, "--chdir", dir)
	}
	argv = append(append(argv, "--"), b.enter...)
	return append(append(argv, path), args...)
}

// removeLeft removes the empty files that bubblewrap has created in place of sockets that vanished during a start.
// Otherwise the programs of these sockets could not create them again.
func (b *Sandbox) removeLeft() {
	for _, path := range b.sockets {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.Size() == 0 && info.Mode().Perm()&0o222 == 0 {
			_ = os.Remove(path) // bubblewrap has just made it, so it can be removed
		}
	}
}

// Explain starts a program in the sandbox that does nothing. If bubblewrap fails, it returns an *Error with the reason.
// A caller can find out in this way why an agent has ended without any output.
func (b *Sandbox) Explain() error {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	argv := append([]string{b.bwrap, "--as-pid-1"}, b.args...) // so that no process of bwrap remains
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
