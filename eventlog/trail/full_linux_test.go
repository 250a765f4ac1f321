package trail

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestFullDiskCostsLinesOnly limits the size of files. This acts like a full disk and needs no root. The write that
// reaches the limit is cut short, and later writes fail.
func TestFullDiskCostsLinesOnly(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 1000}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit.Max = before.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)
	dir := t.TempDir()
	tr := open(t, Options{Dir: dir})
	pad := strings.Repeat("x", 300)
	for range 10 {
		tr.Logger().Info("line", "pad", pad)
	}
	lost := tr.Lost()
	if lost < 7 {
		t.Errorf("Lost = %d", lost)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	tr.Logger().Info("room again")
	b, err := os.ReadFile(files(t, dir, fileExt)[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "{") || !strings.Contains(last, "room again") {
		t.Errorf("the last line is not whole: %q", last)
	}
	if tr.Lost() != lost {
		t.Errorf("Lost = %d, want %d", tr.Lost(), lost)
	}
}
