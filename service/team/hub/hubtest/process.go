//go:build linux

package hubtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// programs is the folder of the newest installed PostgreSQL, or "".
var programs = sync.OnceValue(func() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian's folders; the pattern is well formed
	slices.SortFunc(found, func(a, b string) int { return version(a) - version(b) })
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
})

func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // another folder counts as the oldest
	return n
}

// owner is the user that runs the servers: this user, or another one for root, because PostgreSQL
// refuses root.
var owner = sync.OnceValue(func() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.Atoi(u.Uid) // these users have numeric ids on Unix
			gid, _ := strconv.Atoi(u.Gid)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
})

// command is a program that runs as the system's user who owns the files of the server.
type command struct{ *exec.Cmd }

func (s *Server) command(name string, args ...string) command {
	path := filepath.Join(programs(), name)
	if _, err := os.Stat(path); err != nil {
		path = name
	}
	c := exec.Command(path, args...)
	c.Dir = s.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "PGHOST=" + s.dir, "PGUSER=owner", "LC_ALL=C"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: owner(), Pdeathsig: syscall.SIGKILL}
	return command{c}
}

func (c command) output() (string, error) {
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, errs.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// children returns the processes that the server started.
func (s *Server) children() (pids []int) {
	entries, _ := os.ReadDir("/proc") // without /proc there is nothing to find
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && parent(pid) == s.process.Process.Pid {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stat returns the fields of a process after its name, from its state on.
func stat(pid int) []string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

func parent(pid int) int {
	f := stat(pid)
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1]) // always a number
	return n
}

func isAlive(pid int) bool {
	f := stat(pid)
	return len(f) > 0 && f[0] != "Z"
}
