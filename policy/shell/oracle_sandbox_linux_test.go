package shell

import (
	"bufio"
	"crypto/rand"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// wardenEnv is the environment variable with which the test binary starts as the warden. The warden runs the commands
// in a sandbox (see oracle_warden_linux_test.go).
const wardenEnv = "PERLICA_ORACLE_WARDEN"

func TestMain(m *testing.M) {
	if os.Getenv(wardenEnv) == "" {
		os.Exit(m.Run())
	}
	if err := watch(); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// sandbox is a running warden process that waits for commands.
type sandbox struct {
	process *os.Process
	to      *os.File
	answers *bufio.Scanner
}

// unprivileged is the id of the user that runs the commands if the tests run as root.
const unprivileged = 65534

// openSandbox starts a warden, in a user namespace if possible. It skips the test if this is impossible.
func openSandbox(t *testing.T) *sandbox {
	t.Helper()
	s, err := newSandbox(t, true)
	if err != nil && os.Getuid() == 0 {
		// Root does not need a user namespace.
		s, err = newSandbox(t, false)
	}
	if err != nil {
		noSandbox(t, err)
	}
	return s
}

// noSandbox skips the test if the system does not provide the namespaces. With PERLICA_REQUIRE_ORACLE it fails the
// test instead.
func noSandbox(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("PERLICA_REQUIRE_ORACLE") != "" {
		t.Fatalf("the oracle is required and cannot run: %v", err)
	}
	t.Skipf("NOT TESTED: the comparison with a real shell: there is no sandbox: %v", err)
}

func newSandbox(t *testing.T, userNamespace bool) (*sandbox, error) {
	o, err := newOrders(t)
	if err != nil {
		return nil, err
	}
	sys := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	if userNamespace {
		uid, gid := os.Getuid(), os.Getgid()
		if uid == 0 {
			uid, gid = unprivileged, unprivileged
		}
		sys.Cloneflags |= unix.CLONE_NEWUSER
		sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
		sys.Credential = &syscall.Credential{NoSetGroups: true}
	} else {
		o.Owner = unprivileged
	}
	s, err := startWarden(sys)
	if err != nil {
		return nil, err
	}
	t.Cleanup(s.closeWarden)
	// If even the command ":" fails, the system does not allow such a sandbox.
	for _, line := range []any{o, ":"} {
		d, err := s.exchangeLine(line)
		if err == nil && d.Err != "" {
			err = errors.New(d.Err)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newOrders returns the orders for the warden: the tools to copy, and facts by which the warden recognizes the
// machine's own root directory.
func newOrders(t *testing.T) (orders, error) {
	marker := filepath.Join(t.TempDir(), "marker")
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		return orders{}, err
	}
	var st unix.Stat_t
	if err := unix.Stat("/", &st); err != nil {
		return orders{}, err
	}
	tools, err := findTools()
	return orders{Token: rand.Text(), Marker: marker, Dev: st.Dev, Ino: st.Ino, Tools: tools}, err
}

func startWarden(sys *syscall.SysProcAttr) (*sandbox, error) {
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p, err := os.StartProcess("/proc/self/exe", []string{"oracle"}, &os.ProcAttr{
		Dir: "/", Env: []string{wardenEnv + "=1"}, Files: []*os.File{inRead, outWrite, os.Stderr}, Sys: sys,
	})
	inRead.Close()
	outWrite.Close()
	if err != nil {
		inWrite.Close()
		outRead.Close()
		return nil, step("new namespaces", err)
	}
	s := &sandbox{process: p, to: inWrite, answers: bufio.NewScanner(outRead)}
	s.answers.Buffer(nil, 1<<20)
	return s, nil
}

// exchangeLine sends one line of JSON to the warden and reads the answer.
func (s *sandbox) exchangeLine(line any) (effect, error) {
	var d effect
	if err := json.NewEncoder(s.to).Encode(line); err != nil {
		return d, err
	}
	if !s.answers.Scan() {
		return d, fmt.Errorf("the warden is gone: %v", s.answers.Err())
	}
	return d, json.Unmarshal(s.answers.Bytes(), &d)
}

// tryCommand lets the warden run a command and returns the effect.
func (s *sandbox) tryCommand(t *testing.T, command string) effect {
	t.Helper()
	d, err := s.exchangeLine(command)
	if err != nil || d.Err != "" {
		t.Fatalf(`%v %s: got %q; want err == nil && d.Err == ""`, err, d.Err, command)
	}
	return d
}

// closeWarden ends the warden and every process in its namespaces. If the test process ends early, the warden ends,
// too, because its input pipe closes.
func (s *sandbox) closeWarden() {
	s.to.Close()
	_ = s.process.Kill()
	_, _ = s.process.Wait()
}

// toolNames are the programs that the generated commands use. Only bash must exist.
var toolNames = []string{
	"bash", "sh", "awk", "base64", "basename", "cat", "chgrp", "chmod", "cp", "csplit", "cut", "date", "dd",
	"dirname", "echo",
	"env", "expr", "false", "find", "flock", "grep", "head", "install", "ln", "link", "ls", "mkdir", "mkfifo",
	"mktemp", "mv",
	"nice", "nohup", "paste", "printf", "pwd", "readlink", "realpath", "rev", "rm", "rmdir", "sed", "seq", "setsid",
	"shred",
	"shuf", "sleep", "sort", "split", "tac", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true", "truncate",
	"uniq", "unlink", "wc", "xargs",
}

// findTools maps paths below /tools to the files of the machine: the tools and their libraries.
func findTools() (map[string]string, error) {
	tools := map[string]string{}
	for _, name := range toolNames {
		if file := findIn(name, "/usr/bin", "/bin"); file != "" {
			tools["bin/"+name] = file
			if err := addLibraries(tools, file); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	if tools["bin/bash"] == "" {
		return nil, errors.New("there is no bash")
	}
	return tools, nil
}

func findIn(name string, dirs ...string) string {
	for _, dir := range dirs {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, name)
		}
	}
	return ""
}

// addLibraries adds the loader and the libraries of a program, and the libraries that these need.
func addLibraries(tools map[string]string, file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if section := f.Section(".interp"); section != nil {
		data, err := section.Data()
		if err != nil {
			return err
		}
		interp := string(data[:max(0, len(data)-1)])
		tools["lib/"+filepath.Base(interp)] = interp
	}
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, name := range needed {
		if tools["lib/"+name] != "" {
			continue
		}
		dirs, _ := filepath.Glob("/usr/lib/*-linux-gnu*")
		lib := findIn(name, append(dirs, "/lib64", "/usr/lib64", "/lib", "/usr/lib")...)
		if lib == "" {
			return fmt.Errorf("its library %s is not found", name)
		}
		tools["lib/"+name] = lib
		if err := addLibraries(tools, lib); err != nil {
			return err
		}
	}
	return nil
}
