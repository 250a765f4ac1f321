package descent

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// roleVar turns this test binary into another process. Its value is the role and the arguments of the role.
const roleVar = "DESCENT_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := strings.Fields(os.Getenv(roleVar)); len(role) > 0 {
		roles[role[0]](role[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// said is a role's report about its own line of descent.
type said struct {
	Agents, Runners int
	Limit           string
	Err             string
	Hidden, Partial bool
	Gap             int // the number of the process that cannot be read
	Raised          bool
	Above           bool // the line ends at a process that the system hides
}

func say(s said) {
	l, err := Self()
	s.Agents, s.Limit, s.Hidden, s.Partial = len(l.Agents), l.Limit(), l.Hidden, l.Partial
	s.Above = l.links[len(l.links)-1].hiddenAbove
	for _, a := range l.Agents {
		if a.Runner != 0 {
			s.Runners++
		}
	}
	if err != nil {
		s.Err = err.Error()
	}
	var gap *gapError
	if errors.As(err, &gap) {
		s.Gap = gap.PID
	}
	_ = json.NewEncoder(os.Stdout).Encode(s) // if this fails, the test gets no report and fails
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

var roles map[string]func(args []string)

func init() {
	roles = map[string]func([]string){
		"self": func([]string) { // a Perlica that runs agents
			must(Announce("ask"))
			say(said{})
		},
		"runner": func([]string) { // leaves an orphan that waits for a byte on descriptor 3
			must(Announce("reads"))
			c := role("orphan")
			c.Env = []string{roleVar + "=orphan"}
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			c.Stdout, c.ExtraFiles = os.Stdout, []*os.File{os.NewFile(3, "")}
			must(c.Start())
		},
		"orphan": func([]string) {
			_, err := os.NewFile(3, "").Read(make([]byte, 1))
			must(err)
			_, branded := ownBrand()
			free := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
			say(said{Raised: branded && unix.Prlimit(0, unix.RLIMIT_LOCKS, &free, nil) == nil})
		},
		"bind": func(args []string) { // mounts the first argument over the second; PARENT means the parent's number
			to := strings.ReplaceAll(args[1], "PARENT", strconv.Itoa(os.Getppid()))
			if args[0] == "proc" || args[0] == "tmpfs" {
				must(unix.Mount(args[0], to, args[0], 0, strings.Join(args[2:], ",")))
			} else {
				must(unix.Mount(args[0], to, "", unix.MS_BIND, ""))
			}
			say(said{})
		},
		"hidepid": func([]string) {
			must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
			must(unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"))
			c := role("undumpable")
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			c.Stdout = os.Stdout
			must(c.Run())
		},
		"undumpable": func([]string) {
			say(said{}) // this process's parent belongs to another user
			c := role("say")
			c.Stdout = os.Stdout
			must(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
			must(c.Run())
		},
		"say": func([]string) { say(said{}) },
	}
}

// role returns a command that starts this test binary again, in one of the roles above. Every user may start the
// binary.
func role(words ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), roleVar+"="+strings.Join(words, " "))
	c.Stderr = os.Stderr
	return c
}

// hear runs a child process and returns its report. It skips the test if the system does not allow the process to
// start.
func hear(t *testing.T, c *exec.Cmd) (s said) {
	t.Helper()
	c.Stderr = nil
	out, err := c.Output()
	if err != nil {
		t.Skipf("this needs a right: %v", err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	return s
}

// TestBrand checks that an orphan of a Perlica that has ended still counts as an agent's process. The orphan has no
// mark, has its own session and tries to raise its limit. Its mode is the mode of the run. The test fails if Announce
// does not lower the limit.
func TestBrand(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := role("runner")
	c.Stdout, c.ExtraFiles = in, []*os.File{r}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()  // the orphan has its own copy
	_ = in.Close() // the orphan has its own copy
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	var s said
	if err := json.NewDecoder(out).Decode(&s); err != nil {
		t.Fatal(err)
	}
	if s.Raised {
		t.Skip("this user may raise each limit")
	}
	if s.Agents != 1 || s.Runners != 0 || s.Limit != "reads" {
		t.Fatalf("the orphan is not known: %+v", s)
	}
}

// TestRunnerIsNoAgent checks that a Perlica that brands itself remains a person's process.
func TestRunnerIsNoAgent(t *testing.T) {
	if s := hear(t, role("self")); s.Agents != 0 || s.Err != "" {
		t.Fatalf("a Perlica that runs agents is an agent's: %+v", s)
	}
}

// own returns the command in its own namespaces, which needs no privilege.
func own(c *exec.Cmd, flags uintptr) *exec.Cmd {
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  flags | syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	return c
}

// TestGap mounts something over entries of /proc. Each such mount must make the reading of the ancestors fail. If it
// hides an entry of the parent, the error must also name the parent.
func TestGap(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("1 (init) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 1 1 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		gap  bool
	}{
		{"a folder over the parent", []string{dir, "/proc/PARENT"}, true},
		{"another process over the parent", []string{"/proc/1", "/proc/PARENT"}, true},
		{"a file over its state", []string{file, "/proc/PARENT/stat"}, true},
		{"a file over its environment", []string{file, "/proc/PARENT/environ"}, true},
		{"a file over its limits", []string{file, "/proc/PARENT/limits"}, true},
		{"a file over its own state", []string{file, "/proc/self/stat"}, false},
		{"an empty /proc", []string{"tmpfs", "/proc"}, false},
		{"a part of /proc", []string{"/proc/1", "/proc"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := hear(t, own(role(append([]string{"bind"}, c.args...)...), 0))
			if s.Err == "" || c.gap != (s.Gap == os.Getpid()) {
				t.Fatalf("it is not a gap: %+v", s)
			}
		})
	}
}

// TestNamespaces checks that a process in a namespace that needs no privilege needs a terminal, even if its whole line
// is visible.
func TestNamespaces(t *testing.T) {
	if s := hear(t, role("say")); s.Err != "" || s.Agents > 0 && !branded() {
		t.Fatalf("a plain child: %+v", s)
	}
	if s := hear(t, own(role("say"), 0)); s.Err != "" || !s.Hidden {
		t.Errorf("in a mount namespace of its own: %+v", s)
	}
	if s := hear(t, own(role("bind", "proc", "/proc"), syscall.CLONE_NEWPID)); s.Err != "" || !s.Hidden || !s.Partial {
		t.Errorf("in a namespace of processes of its own: %+v", s)
	}
	if s := hear(t, own(role("say"), syscall.CLONE_NEWPID)); s.Err == "" {
		t.Errorf("with the /proc of another namespace: %+v", s)
	}
}

// branded reports whether the tests run below an agent.
func branded() bool {
	l, _ := Self() // the known part is enough
	return len(l.Agents) > 0
}

// TestHidepid checks that Perlica can read the line of a process up to an ancestor that the system hides, without an
// error. This includes a process of the same user that cannot be dumped, such as sshd's.
func TestHidepid(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this takes root")
	}
	c := role("hidepid")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	in := json.NewDecoder(bytes.NewReader(out))
	for _, parent := range []string{"another user's process", "a process that cannot be dumped"} {
		var s said
		if err := in.Decode(&s); err != nil || s.Err != "" || !s.Above {
			t.Errorf("with hidepid=2, below %s: %v, %+v", parent, err, s)
		}
	}
}

// TestApart checks for each process of the table whether it may answer the question of another process.
func TestApart(t *testing.T) {
	k := func(pid int, name string) link {
		return link{Process: Process{PID: pid, Name: name}, ticks: uint64(pid), spaces: [3]string{"m", "p", "u"}}
	}
	init, sshd, manager, server := k(1, "init"), k(20, "sshd"), k(30, "systemd"), k(40, "tmux: server")
	shell := k(50, "bash")
	asked := []link{k(100, "perlica"), shell, server, manager, init}
	elsewhere := k(60, "bash")
	elsewhere.spaces[0] = "other"
	for _, c := range []struct {
		name     string
		line     []link
		apart    bool
		terminal bool
	}{
		{"the same shell", []link{k(200, "perlica"), shell, server, manager, init}, false, false},
		{"a login", []link{k(200, "perlica"), k(70, "bash"), sshd, init}, false, false},
		{"a terminal of its own", []link{k(200, "perlica"), k(70, "bash"), k(65, "foot"), init}, false, false},
		{"systemd-run", []link{k(200, "perlica"), manager, init}, true, true},
		{"cron", []link{k(200, "perlica"), k(70, "sh"), k(25, "cron"), init}, true, true},
		{"another number of the same process", []link{k(200, "perlica"), {Process: Process{PID: 40}, ticks: 41}}, true, true},
		{"docker exec", []link{k(200, "perlica"), k(70, "bash")}, true, true},
		{"docker exec of both", []link{k(200, "perlica"), shell}, false, false},
	} {
		err := Line{links: c.line}.checkShared(asked)
		var apart *ApartError
		if errors.As(err, &apart) != c.apart || c.apart && apart.Terminal != c.terminal {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if !moved([]link{elsewhere, shell, init}) || moved([]link{elsewhere, init}) ||
		moved([]link{elsewhere, manager, init}) {
		t.Error("a service in namespaces of its own cannot be told from a process that left its parent's")
	}
	if kind := elsewhere.otherNamespace(shell); kind != "mount" {
		t.Errorf("they are apart by %q", kind)
	}
}
