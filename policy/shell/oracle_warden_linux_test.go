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

// The warden is this test binary as process 1 of new user, mount, process, network and IPC namespaces. Its root
// directory is a new tmpfs with copied tools, without any file of the machine. The warden reads commands, runs them and
// reports their effects. Before each command, it removes all files and creates the files of the map world again. The
// commands have no capabilities.

// orders are the first message that the warden reads.
type orders struct {
	Token  string // the warden runs and removes nothing unless /tools/token has this content
	Marker string // a file of the machine; if it is visible, the warden runs nothing
	Dev    uint64 // device number of the machine's root directory
	Ino    uint64
	Owner  int               // the user of the commands
	Tools  map[string]string // path below /tools to a file of the machine
}

// effect is the result of one command.
type effect struct {
	Err      string   // the reason why the warden cannot continue
	TimedOut bool     // the warden ended the command after commandTime
	Outside  []string // changed files outside the working directory and /tmp
	Gone     []string // directories of guardedDirs that lost all their files
	Output   string
}

// commandTime is the time limit of one command.
const commandTime = 2 * time.Second

// warden runs commands in a throwaway root directory.
type warden struct {
	orders
	dev uint64 // device number of the tmpfs
}

// watch is the main loop of the warden. For each line of JSON that it reads, it writes one line.
func watch() error {
	// Linux drops capabilities for one thread only. The loop must stay on the thread that drops them and starts the
	// commands.
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

// step adds the name of the failed step to an error.
func step(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// enterRoot makes a new tmpfs the root directory. Then the process cannot reach the machine's files any longer.
func (w *warden) enterRoot() error {
	if os.Getpid() != 1 {
		return errors.New("not in a process namespace of its own")
	}
	if err := keepFiles(); err != nil {
		return step("close inherited files", err)
	}
	// After this call, mounts of this process are invisible to the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return step("make mounts private", err)
	}
	const root = "/tmp" // this directory exists everywhere, and only this process sees the mount
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
	// If proc cannot be mounted, only /dev/fd and process substitutions are missing.
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

// keepFiles sets close-on-exec for the open files, so that commands do not inherit files that the parent of the tests
// left open.
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

// copyTools copies the tools to /tools. It makes /tools read-only, so that no command can change the tools.
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

// sealed returns an error unless the root directory is the throwaway tmpfs. The warden calls it before every removal
// and every command, so that a mistake cannot harm the machine.
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

// limitCommands takes rights and resources from the processes that this thread starts.
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
	// The bounding set applies to processes that this thread starts. The thread itself keeps its capabilities.
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return step("drop capabilities", err)
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// tryCommand runs one command with newly created files and returns its effect.
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

// runCommand runs a command as process 1 of another process namespace, so that all its processes end with it.
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
