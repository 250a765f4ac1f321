//go:build unix

package eventlog

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/export"
)

// childImport imports an export and kills itself before the last line is read.
func childImport(path string) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "export.jsonl"))
	if err != nil {
		panic(err)
	}
	most := text[:strings.LastIndex(string(text), `{"end":`)]
	_, err = export.Import(context.Background(), io.MultiReader(strings.NewReader(string(most)), suicide{}), path, nil)
	panic(err)
}

type suicide struct{}

func (suicide) Read([]byte) (int, error) { return 0, syscall.Kill(syscall.Getpid(), syscall.SIGKILL) }

// TestWhatAKilledImportLeaves checks that an import removes the remains of a killed import. It must not remove the
// files of a running import.
func TestWhatAKilledImportLeaves(t *testing.T) {
	dir := t.TempDir()
	text := smallExport(t)
	if err := os.WriteFile(filepath.Join(dir, "export.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := child(t, "import", filepath.Join(dir, "killed.db"))
	if err := cmd.Run(); err == nil || !killed(cmd) {
		t.Fatalf("it was not killed: %v", err)
	}
	left := func() []string {
		list, _ := filepath.Glob(filepath.Join(dir, disk.ScratchPrefix+"*", "*.db"))
		return list
	}
	if len(left()) != 1 {
		t.Fatalf("a killed import left %v", left())
	}

	// Start an import that waits in the middle.
	in, out := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := export.Import(context.Background(), in, filepath.Join(dir, "slow.db"), nil)
		done <- err
	}()
	header, rest, _ := strings.Cut(text, "\n")
	// The import reads the second part only after it has handled the first one.
	for _, part := range []string{header + "\n", strings.Repeat(" ", 1<<17)} {
		if _, err := io.WriteString(out, part); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := export.Import(context.Background(), strings.NewReader(text), filepath.Join(dir, "quick.db"),
		nil); err != nil {
		t.Error(err)
	}
	if now := left(); len(now) != 1 {
		t.Errorf("there is %v", now)
	}
	go func() { // The blanks before the JSON make the line invalid.
		_, _ = io.WriteString(out, rest)
		_ = out.Close()
	}()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("the slow one: %v", err)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, ".*")); len(list) > 0 {
		t.Errorf("there is %v", list)
	}
}
