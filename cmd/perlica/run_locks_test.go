//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNoLocks checks the error on a disk where file locks do not work. The error must not blame another process. The
// first three calls of fcntl must work, because each process first checks its three standard files.
func TestNoLocks(t *testing.T) {
	w := newWorld(t)
	w.run("run", "hello").exits(0)
	trace := []string{"-f", "-o", filepath.Join(t.TempDir(), "trace"), "-e", "trace=fcntl", "-e",
		"inject=fcntl:error=ENOLCK:when=4+"}
	if out, err := exec.Command("strace", append(trace, "true")...).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: a disk without locks is reported: strace is missing or may not trace: %v, %.200s", err, out)
	}
	for code, args := range map[int][]string{7: {"run", "hello"}, 1: {"log", "tail"}} {
		cmd := w.command(args...)
		path, err := exec.LookPath("strace")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args = append(append([]string{"strace"}, trace...), append([]string{cmd.Path}, cmd.Args[1:]...)...)
		cmd.Path = path
		j := w.startCmd(cmd)
		j.exits(code)
		j.says("the disk of the event log does not support locks")
		j.says("hint: a log needs a disk with working locks")
	}
}
