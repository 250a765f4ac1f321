package shell

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The warden is this test binary as process 1 of new user, mount, process, network and IPC namespaces. Its root is an
// empty tmpfs with copied tools, and no file of the machine is mounted in it. The warden runs the commands that it
// reads and reports their effects. Each command runs in a new world, without any capability.

// orders are the first message to the warden.
type orders struct {
	Token  string // the warden runs and removes nothing unless /tools/token has this content
	Marker string // a file of the machine; if it is visible, the warden runs nothing
	Dev    uint64 // device of the machine's root directory
	Ino    uint64
	Owner  int               // the user of the commands
	Tools  map[string]string // path below /tools to a file of the machine
}

// effect is the result of one command.
type effect struct {
	Err      string   // the warden cannot continue
	TimedOut bool     // it was ended after commandTime
	Outside  []string // files beyond the tree and /tmp that it made, changed or removed
	Gone     []string // guarded directories that lost all their files
	Output   string
}

// commandTime is the time limit of one command.
const commandTime = 2 * time.Second

// warden knows its own root directory.
type warden struct {
	orders
	dev uint64 // device of the tmpfs
}

// watch runs the warden: it reads one line of JSON and answers with one line.
func watch() error {
	// Capabilities belong to a thread. This thread starts the commands.
	runtime.LockOSThread()
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(nil, 1<<20)
	var w warden
	if !in.Scan() {
		return errors.New("no orders")
	}
	if err := json.Unmarshal(in.Bytes(), &w.orders); err != nil {
		return err
	}
	if err := w.enterRoot(); err != nil {
		return out.Encode(effect{Err: err.Error()})
	}
	if err := out.Encode(effect{}); err != nil {
		return err
	}
	for in.Scan() {
		var command string
		if err := json.Unmarshal(in.Bytes(), &command); err != nil {
			return err
		}
		d, err := w.tryCommand(command)
		if err != nil {
			d.Err = err.Error()
		}
		if err := out.Encode(d); err != nil || d.Err != "" {
			return err
		}
	}
	return in.Err()
}

// step adds the failed step to an error.
func step(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// enterRoot leaves the machine's files for a tmpfs, for good.
func (w *warden) enterRoot() error {
	if os.Getpid() != 1 {
		return errors.New("not in a process namespace of its own")
	}
	if err := keepFiles(); err != nil {
		return step("close inherited files", err)
	}
	// Later mounts are invisible outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return step("make mounts private", err)
	}
	const root = "/tmp" // exists everywhere; only this process sees the new mount
	if err := unix.Mount("oracle", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV,
		"size=64m,nr_inodes=20000,mode=755"); err != nil {
		return step("mount a tmpfs", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		return err
	}
	w.dev = st.Dev
	if err := w.copyTools(root); err != nil {
		return err
	}
	if err := os.Mkdir(root+"/proc", 0o755); err != nil {
		return err
	}
	// Without proc there is no /dev/fd and no process substitution. Everything else works.
	flags := uintptr(unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if unix.Mount("proc", root+"/proc", "proc", flags, "subset=pid") != nil {
		_ = unix.Mount("proc", root+"/proc", "proc", flags, "")
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := step("pivot_root", unix.PivotRoot(".", ".")); err != nil {
		return err
	}
	if err := step("unmount the machine's root", unix.Unmount(".", unix.MNT_DETACH)); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := w.sealed(); err != nil {
		return err
	}
	return w.limitCommands()
}

// keepFiles hides the open files from commands, because the parent of the tests may have left some open.
func keepFiles() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// copyTools fills /tools. No command can write there.
func (w *warden) copyTools(root string) error {
	tools := root + "/tools"
	for name, from := range w.Tools {
		data, err := os.ReadFile(from)
		if err != nil {
			return step("copy tools", err)
		}
		to := filepath.Join(tools, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"token": w.Token, "empty": ""} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte(text), 0o444); err != nil {
			return err
		}
	}
	if err := unix.Mount(tools, tools, "", unix.MS_BIND, ""); err != nil {
		return step("bind /tools", err)
	}
	return step("make /tools read-only", unix.Mount("", tools, "",
		unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""))
}

// sealed returns an error unless the root is the throwaway root. The warden calls it before every removal and every
// command.
func (w *warden) sealed() error {
	var sf unix.Statfs_t
	var st unix.Stat_t
	if err := errors.Join(unix.Statfs("/", &sf), unix.Stat("/", &st)); err != nil {
		return err
	}
	token, err := os.ReadFile("/tools/token")
	_, marker := os.Lstat(w.Marker)
	switch {
	case os.Getpid() != 1:
		return errors.New("not process 1")
	case int64(sf.Type) != unix.TMPFS_MAGIC || st.Dev != w.dev:
		return errors.New("/ is not the throwaway root")
	case st.Dev == w.Dev && st.Ino == w.Ino:
		return errors.New("/ is the machine's root")
	case err != nil || w.Token == "" || string(token) != w.Token:
		return errors.New("/tools/token is not the one of this run")
	case w.Marker == "" || !errors.Is(marker, fs.ErrNotExist):
		return errors.New("the machine's files can be seen")
	}
	return nil
}

// limitCommands takes away rights and resources that no command needs.
func (w *warden) limitCommands() error {
	for limit, value := range map[int]uint64{
		unix.RLIMIT_NPROC: 1000, unix.RLIMIT_FSIZE: 1 << 20, unix.RLIMIT_CPU: 60,
		unix.RLIMIT_NOFILE: 256, unix.RLIMIT_CORE: 0,
	} {
		if err := unix.Setrlimit(limit, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return step("set limits", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	// A process that this thread starts has no capabilities. The thread keeps its own.
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return step("drop capabilities", err)
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// tryCommand runs one command in a new world.
func (w *warden) tryCommand(command string) (effect, error) {
	if err := w.sealed(); err != nil {
		return effect{}, err
	}
	if err := w.rebuildWorld(); err != nil {
		return effect{}, step("build the world", err)
	}
	before, err := snapshot()
	if err != nil {
		return effect{}, err
	}
	d, err := w.runCommand(command)
	if err != nil {
		return d, step("run", err)
	}
	after, err := snapshot()
	d.Outside, d.Gone = changed(before, after), gone(before, after)
	return d, err
}

// runCommand starts the command as process 1 of another namespace, so that nothing outlives it.
func (w *warden) runCommand(command string) (effect, error) {
	var d effect
	fd, err := unix.MemfdCreate("output", unix.MFD_CLOEXEC)
	if err != nil {
		return d, err
	}
	output := os.NewFile(uintptr(fd), "output")
	defer output.Close()
	input, err := os.Open("/tools/empty")
	if err != nil {
		return d, err
	}
	defer input.Close()
	attr := &os.ProcAttr{
		Dir:   at.Dir,
		Env:   []string{"PATH=/tools/bin:/usr/bin:/bin", "HOME=" + at.Home, "USER=me", "LC_ALL=C", "TERM=dumb"},
		Files: []*os.File{input, output, output},
		Sys:   &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Setsid: true, Pdeathsig: unix.SIGKILL},
	}
	if w.Owner != 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(w.Owner), Gid: uint32(w.Owner)}
	}
	p, err := os.StartProcess("/tools/bin/bash", []string{"bash", "-c", command}, attr)
	if err != nil {
		return d, err
	}
	timer := time.AfterFunc(commandTime, func() { _ = p.Kill() })
	_, err = p.Wait()
	d.TimedOut = !timer.Stop()
	buf := make([]byte, 2000)
	n, _ := output.ReadAt(buf, 0)
	d.Output = string(buf[:n])
	return d, err
}
