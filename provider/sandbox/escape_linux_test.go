package sandbox_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// world has the facts about the machine that the hostile child gets. The child gets more facts than an agent could find
// out.
type world struct {
	Home, Project, Other string // Other is a folder of the home without a dot
	Log, State           string // Perlica's log in the project, and the folder of its keys
	OtherLog             string // the log of another project
	Perlica              string // Perlica's program
	Victim               int    // the number of a process outside
	VictimAddress        uint64 // the address of a secret in the victim's memory
	Handle               string // the file handle of Log
	HandleType           int32
	Abstract             string            // an abstract socket of a program outside
	Sockets              map[string]string // the paths of sockets of programs outside, by the name of the program
	Segment              int               // a System V shared memory segment
	Terminal             string            // the terminal of a person
	Search               string            // a folder of PATH in the home
	Token                string            // the content of every secret file
	Service, Listed      string            // addresses of programs outside that repeat bytes, over TCP and UDP
	Proxy                string            // the address of the proxy of another agent, in that agent's network
}

// escape is one attempt to act outside of the sandbox.
type escape struct {
	name string
	// from is the loosest mode that refuses the attempt.
	from string
	// free says that an ordinary user can always succeed without a sandbox. The test then requires success in the modes
	// that do not refuse the attempt.
	free bool
	try  func(world) error // makes the attempt; nil means success
}

// escapes has all attempts, in the order of docs/sandbox.md.
var escapes = []escape{
	{"read the log of the project", "protect", true, func(w world) error { return w.reads(w.Log) }},
	{"write into the folder of the log", "protect", true, func(w world) error { return w.marks(filepath.Dir(w.Log)) }},
	{"read the log of another project", "protect", true, func(w world) error { return w.reads(w.OtherLog) }},
	{"read Perlica's keys", "protect", true, func(w world) error { return w.reads(filepath.Join(w.State, "key")) }},
	{"write Perlica's state", "protect", true, func(w world) error { return w.marks(w.State) }},
	{"change the project's configuration of Perlica", "protect", true, func(w world) error {
		return touch(filepath.Join(w.Project, ".perlica_config", "config.toml"))
	}},
	{"rename the folder .perlica_config", "protect", true, func(w world) error {
		return swap(filepath.Join(w.Project, ".perlica_config"))
	}},
	{"rename the folder of the project", "protect", true, func(w world) error { return swap(w.Project) }},
	{"rename a folder above the project", "protect", true, func(w world) error { return swap(filepath.Dir(w.Project)) }},
	{"replace Perlica's program", "protect", true, func(w world) error { return swap(w.Perlica) }},
	{"write Perlica's program", "protect", true, func(w world) error { return touch(w.Perlica) }},
	{"read the log through /proc/self/root", "protect", true, func(w world) error {
		return w.reads("/proc/self/root" + w.Log)
	}},
	{"read the log through /proc/1/root", "protect", false, func(w world) error {
		return w.reads("/proc/1/root" + w.Log)
	}},
	{"read the log through /proc/PID/root", "protect", true, func(w world) error {
		return w.reads("/proc/" + strconv.Itoa(w.Victim) + "/root" + w.Log)
	}},
	{"read the log through /proc/PID/cwd", "protect", true, func(w world) error {
		return w.reads("/proc/" + strconv.Itoa(w.Victim) + "/cwd/" + filepath.Base(w.Log))
	}},
	{"read the environment of a process outside", "protect", true, func(w world) error {
		return contains("/proc/"+strconv.Itoa(w.Victim)+"/environ", w.Token)
	}},
	{"see the command line of a process outside", "protect", true, func(w world) error { return w.onVictim(nil) }},
	{"find a key of the session's keyring", "protect", false, func(w world) error {
		_, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", w.Token, 0)
		return err
	}},
	{"signal a process outside", "protect", true, func(w world) error { return w.onVictim(unix.Kill(w.Victim, 0)) }},
	{"trace a process outside", "protect", false, func(w world) error { return w.onVictim(unix.PtraceSeize(w.Victim)) }},
	{"read the memory of a process outside", "protect", false, func(w world) error {
		var b [8]byte
		_, err := unix.ProcessVMReadv(w.Victim, []unix.Iovec{{Base: &b[0], Len: 8}},
			[]unix.RemoteIovec{{Base: uintptr(w.VictimAddress), Len: 8}}, 0)
		return w.onVictim(err)
	}},
	{"take an open file of a process outside", "protect", false, func(w world) error {
		fd, err := unix.PidfdOpen(w.Victim, 0)
		if err == nil {
			_, err = unix.PidfdGetfd(fd, 0, 0)
		}
		return w.onVictim(err)
	}},
	{"enter the namespaces of a process outside", "protect", false, func(w world) error {
		fd, err := unix.PidfdOpen(w.Victim, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNS)
		}
		return w.onVictim(err)
	}},
	{"attach shared memory of a program outside", "protect", true, func(w world) error {
		_, err := unix.SysvShmAttach(w.Segment, 0, 0)
		return err
	}},
	{"mount a file system", "protect", false, func(w world) error {
		at := filepath.Join(w.Project, "mounted")
		_ = os.Mkdir(at, 0o700) // only the result of the mount matters
		err := unix.Mount("x", at, "tmpfs", 0, "")
		if err == nil {
			err = unix.Unmount(at, 0)
		}
		return err
	}},
	{"chroot", "protect", false, func(w world) error { return unix.Chroot("/") }},
	{"unshare, and unmount the cover of the log", "protect", false, inNamespace(func(w world) error {
		for dir := filepath.Dir(w.Log); dir != "/"; dir = filepath.Dir(dir) {
			_ = unix.Unmount(dir, unix.MNT_DETACH) // only the result of the read matters
		}
		return w.reads(w.Log)
	})},
	{"unshare, and bind the project without its covers", "protect", false, inNamespace(func(w world) error {
		at := filepath.Join(w.Project, "at")
		err := errors.Join(os.MkdirAll(at, 0o700), unix.Mount(w.Project, at, "", unix.MS_BIND, ""))
		rel, _ := filepath.Rel(w.Project, w.Log)
		return errors.Join(err, w.reads(filepath.Join(at, rel)))
	})},
	{"unshare, and open the tree without its covers", "protect", false, inNamespace(func(w world) error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, w.Project, unix.OPEN_TREE_CLONE)
		rel, _ := filepath.Rel(w.Project, w.Log)
		return errors.Join(err, w.reads("/proc/self/fd/"+strconv.Itoa(fd)+"/"+rel))
	})},
	{"unshare, and make the home writable again", "protect", false, inNamespace(func(w world) error {
		_ = unix.Mount("", w.Home, "", unix.MS_REMOUNT|unix.MS_BIND, "") // only the result of the write matters
		return touch(filepath.Join(w.Home, ".bashrc"))
	})},
	{"unshare, and mount a /proc that shows processes outside", "protect", false, inNamespace(func(w world) error {
		err := unix.Mount("proc", "/proc", "proc", 0, "")
		return errors.Join(err, contains("/proc/"+strconv.Itoa(w.Victim)+"/environ", w.Token))
	})},
	{"open the log by its file handle", "protect", false, handle},
	{"unshare, and open the log by its file handle", "protect", false, inNamespace(handle)},
	{"write a setting of the kernel", "protect", false, func(w world) error {
		return touch("/proc/sys/kernel/core_pattern")
	}},
	{"restart the machine (sysrq)", "protect", false, func(w world) error { return touch("/proc/sysrq-trigger") }},
	{"change the handling of interrupts", "protect", false, func(w world) error {
		return touch("/proc/irq/default_smp_affinity")
	}},
	{"make a control group", "protect", false, func(w world) error {
		dir := "/sys/fs/cgroup/perlica-test-" + strconv.Itoa(os.Getpid())
		err := os.Mkdir(dir, 0o700)
		_ = os.Remove(dir) // this attempt has created the folder
		return err
	}},
	{"reach an abstract socket", "protect", true, func(w world) error { return dial("@" + w.Abstract) }},
	{"reach the SSH agent", "protect", true, reach("ssh")},
	{"reach a listening socket at an unknown place", "protect", true, reach("unknown")},
	{"reach the session's D-Bus", "protect", true, reach("bus")},
	{"reach systemd (systemd-run --user)", "protect", true, reach("systemd")},
	{"reach Wayland", "protect", true, reach("wayland")},
	{"reach Docker", "protect", true, reach("docker")},
	{"reach a tmux server", "protect", true, reach("tmux")},
	{"reach a tmux server that starts later", "protect", true, reach("tmux-later")},
	{"reach a screen session", "protect", true, reach("screen")},
	{"reach a channel of Perlica", "protect", true, reach("perlica")},
	{"type into a terminal (TIOCSTI)", "protect", false, func(w world) error {
		f, err := os.OpenFile(w.Terminal, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		c := byte('y')
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
		if errno != 0 {
			return errno
		}
		return nil
	}},
	{"write to a person's terminal", "protect", true, func(w world) error {
		f, err := os.OpenFile(w.Terminal, os.O_WRONLY|unix.O_NOCTTY, 0)
		if err == nil {
			_, err = f.WriteString("x")
		}
		return err
	}},
	{"open /dev/tty", "protect", false, func(w world) error {
		_, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		return err
	}},
	{"change a shell's startup file", "protect", true, func(w world) error {
		return touch(filepath.Join(w.Home, ".bashrc"))
	}},
	{"make a missing startup file", "protect", true, func(w world) error {
		return os.WriteFile(filepath.Join(w.Home, ".zshenv"), nil, 0o600)
	}},
	{"replace a startup file by renaming", "protect", true, func(w world) error {
		return swap(filepath.Join(w.Home, ".bashrc"))
	}},
	{"change a startup file that is a link into a visible folder", "protect", true, func(w world) error {
		return touch(filepath.Join(w.Other, "dotfiles", "profile"))
	}},
	{"change a linked folder of .config", "protect", true, func(w world) error {
		return w.marks(filepath.Join(w.Other, "dotfiles", "fish"))
	}},
	{"make a desktop start a program", "protect", true, func(w world) error {
		return w.marks(filepath.Join(w.Home, ".config", "autostart"))
	}},
	{"make a unit of systemd", "protect", true, func(w world) error {
		return w.marks(filepath.Join(w.Home, ".config", "systemd", "user"))
	}},
	{"change the settings of git", "protect", true, func(w world) error {
		return touch(filepath.Join(w.Home, ".gitconfig"))
	}},
	{"put a program into a folder of PATH", "protect", true, func(w world) error { return w.marks(w.Search) }},
	{"rename a folder above a folder of PATH", "protect", true, func(w world) error {
		return swap(filepath.Dir(w.Search))
	}},
	{"rename a folder above a linked startup file", "protect", true, func(w world) error {
		return swap(filepath.Join(w.Other, "dotfiles"))
	}},
	{"change a crontab", "protect", false, func(w world) error { return w.marks("/var/spool/cron") }},
	{"change a file of /etc", "protect", false, func(w world) error { return w.marks("/etc") }},
	{"write a startup file through a symbolic link", "protect", true, func(w world) error {
		link := filepath.Join(w.Project, "link")
		_ = os.Remove(link) // removes the link of an earlier attempt
		return errors.Join(os.Symlink(filepath.Join(w.Home, ".bashrc"), link), touch(link))
	}},
	{"write a startup file through a hard link", "protect", true, func(w world) error {
		link := filepath.Join(w.Project, "hard")
		_ = os.Remove(link) // removes the link of an earlier attempt
		return errors.Join(os.Link(filepath.Join(w.Home, ".bashrc"), link), touch(link))
	}},
	{"win a race of a folder and a link", "protect", false, race},
	{"gain rights by a set-user-id program", "protect", false, func(w world) error {
		n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if err == nil && n == 1 {
			err = unix.EPERM
		}
		return err
	}},
	{"read a private key (.ssh)", "project", true, func(w world) error {
		return w.reads(filepath.Join(w.Home, ".ssh", "id"))
	}},
	{"read the credentials of another agent", "project", true, func(w world) error {
		return w.reads(filepath.Join(w.Home, ".other-agent", "token"))
	}},
	{"write a visible folder of the home", "project", true, func(w world) error { return w.marks(w.Other) }},
	{"write into the shared folder /tmp", "project", true, func(w world) error {
		f, err := os.CreateTemp("/tmp", "perlica-escape-")
		if err != nil {
			return err
		}
		fmt.Println("made", f.Name()) // the test checks that the file exists outside
		return f.Close()
	}},
	{"reach a service of this machine over TCP", "offline", true, func(w world) error { return talk("tcp", w.Service) }},
	{"reach a name server or another service over UDP", "offline", true, func(w world) error {
		return talk("udp", w.Service)
	}},
	{"reach a service of this machine through the proxy", "offline", true, func(w world) error {
		return w.through(portOf("localhost", w.Service))
	}},
	{"name an address to the proxy", "offline", true, func(w world) error {
		return w.through(portOf("127.0.0.2", w.Service))
	}},
	{"reach a private address by a name that the proxy admits", "offline", true, func(w world) error {
		return w.through(portOf("inside.example.org", w.Service))
	}},
	{"reach another port of a listed host", "offline", true, func(w world) error {
		return w.through(portOf("listed.example.net", w.Service))
	}},
	{"reach a host that is not listed", "offline", true, func(w world) error {
		return w.through(portOf("other.example.com", w.Service))
	}},
	{"reach the proxy of another agent", "protect", false, func(w world) error {
		if "http://"+w.Proxy == os.Getenv("HTTP_PROXY") {
			return errors.New("it is this agent's own")
		}
		return talk("tcp", w.Proxy)
	}},
}

// talk sends a byte to an address and waits for the answer.
func talk(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only the answer matters
	if _, err = c.Write([]byte("x")); err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	return err
}

// through asks the proxy to connect to an address and checks its answer. Without a proxy it connects to the Service
// directly, because all names lead there in this test.
func (w world) through(address string) error {
	proxy := strings.TrimPrefix(os.Getenv("HTTP_PROXY"), "http://")
	if proxy == "" {
		return talk("tcp", w.Service)
	}
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only the answer matters
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", address); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err == nil && answer.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(answer.Body)
		err = fmt.Errorf("%s: %s", answer.Status, why)
	}
	return err
}

// portOf returns the host with the port of another address.
func portOf(host, address string) string {
	_, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort(host, port)
}

// reads tries to read a file and checks that its content is the secret Token.
func (w world) reads(path string) error { return contains(path, w.Token) }

// marks tries to create a file in a folder. It prints the path, and the test checks that the file exists outside.
func (w world) marks(dir string) error {
	path := filepath.Join(dir, "mark")
	err := os.WriteFile(path, nil, 0o600)
	if err == nil {
		fmt.Println("made", path) // the test checks that the file exists outside
	}
	return err
}

// onVictim returns the error of an attempt on the victim. After a success it checks the command line, to prove that
// the process is the victim. A process may have another number inside the sandbox.
func (w world) onVictim(err error) error {
	if err != nil {
		return err
	}
	return contains("/proc/"+strconv.Itoa(w.Victim)+"/cmdline", w.Token)
}

func contains(path, token string) error {
	b, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(b, []byte(token)) {
		err = errors.New("another content")
	}
	return err
}

// touch tries to open a file for writing. It writes nothing.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		err = f.Close()
	}
	return err
}

// swap tries to rename a path, and then renames it back.
func swap(path string) error {
	err := os.Rename(path, path+".moved")
	if err == nil {
		err = os.Rename(path+".moved", path)
	}
	return err
}

func dial(address string) error {
	c, err := net.Dial("unix", address)
	if err == nil {
		err = c.Close()
	}
	return err
}

func reach(name string) func(world) error {
	return func(w world) error { return dial(w.Sockets[name]) }
}

// inNamespace returns an attempt that makes another attempt in a new user and mount namespace, with all rights there.
func inNamespace(try func(world) error) func(world) error {
	return func(w world) error {
		if os.Getenv("PERLICA_ESCAPE_INSIDE") != "" {
			return try(w)
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "PERLICA_ESCAPE_INSIDE=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
		}
		return nil
	}
}

func handle(w world) error {
	raw, err := base64.StdEncoding.DecodeString(w.Handle)
	if err != nil {
		return err
	}
	dir, err := unix.Open(w.Project, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(dir, unix.NewFileHandle(w.HandleType, raw), unix.O_RDONLY)
	if err != nil {
		return err
	}
	return contains("/proc/self/fd/"+strconv.Itoa(fd), w.Token)
}

// race tries to write a startup file of the home through a name in the project. Another goroutine makes this name a
// folder and a link to the home by turns.
func race(w world) error {
	name := filepath.Join(w.Project, "race")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.RemoveAll(name) // the loop continues after an error
			_ = os.Mkdir(name, 0o700)
			_ = os.RemoveAll(name)
			_ = os.Symlink(w.Home, name)
		}
	}()
	defer func() { close(stop); <-done }()
	err := errors.New("never")
	for range 2000 {
		if err = touch(filepath.Join(name, ".bashrc")); err == nil {
			return nil
		}
	}
	return err
}

// runEscape is the main function of the hostile child. With the name of an attempt it makes this attempt. Without a
// name it starts a process for each attempt.
func runEscape() {
	var w world
	if err := json.Unmarshal([]byte(os.Getenv("PERLICA_ESCAPE_WORLD")), &w); err != nil {
		panic(err)
	}
	if name := os.Getenv("PERLICA_ESCAPE"); name != "" {
		for _, e := range escapes {
			if e.name != name {
				continue
			}
			if err := e.try(w); err != nil {
				fmt.Println(strings.ReplaceAll(err.Error(), "\n", "; "))
				os.Exit(1)
			}
			os.Exit(0)
		}
		os.Exit(2)
	}
	for _, e := range escapes {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "PERLICA_ESCAPE="+e.name)
		out, err := cmd.CombinedOutput()
		result := "possible"
		if err != nil {
			result = "refused"
		}
		fmt.Printf("%s\t%s\t%s\n", e.name, result, strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "; "))
	}
}
