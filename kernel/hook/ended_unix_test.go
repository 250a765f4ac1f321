//go:build unix

package hook_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
)

// checkEnded checks that the process whose number is in a file has ended.
func checkEnded(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("the daemon %d was left: %v", pid, err)
	}
}
