package attachment_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/perlica/perlica/service/attachment"
)

func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"report.pdf":         "report.pdf",
		"../../.ssh/keys":    "keys",
		`C:\windows\a.exe`:   "a.exe",
		"..":                 "file",
		"":                   "file",
		".bashrc":            "bashrc",
		"a b\n;rm -rf.txt":   "a_b__rm_-rf.txt",
		"发票 1.pdf":           "发票_1.pdf",
		"trailing. . .":      "trailing._._",
		"bad\xffutf8\x00.go": "bad_utf8_.go",
	} {
		if got := attachment.Name(in); got != want {
			t.Errorf("%q is called %q, want %q", in, got, want)
		}
	}
	if got := attachment.Name(strings.Repeat("长", 200) + ".tar.gz"); len(got) > 100 || !strings.HasSuffix(got, ".tar.gz") {
		t.Errorf("a long name is cut to %q", got)
	}
}

func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "files")
	path, err := attachment.Save(dir, "42:7", 0, "../a.txt", strings.NewReader("hello"), 5)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); string(got) != "hello" || err != nil || filepath.Dir(path) != dir {
		t.Fatalf("%s holds %q, %v", path, got, err)
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{dir: 0o700, path: 0o600} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s is %v, %v; want %v", name, info.Mode(), err, want)
			}
		}
	}
	again, err := attachment.Save(dir, "42:7", 0, "../a.txt", strings.NewReader("hello"), 5)
	if err != nil || again != path {
		t.Errorf("the same file again lies at %s, %v", again, err)
	}
	other, err := attachment.Save(dir, "42:8", 0, "a.txt", strings.NewReader("other"), 5)
	if err != nil || other == path {
		t.Errorf("another message's file lies at %s, %v", other, err)
	}
}

func TestHalfAFileIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := attachment.Save(dir, "1", 0, "a", strings.NewReader("123456"), 5); !errors.Is(err,
		attachment.ErrTooLarge) {
		t.Errorf("a file over the limit: %v", err)
	}
	if _, err := attachment.Save(dir, "1", 0, "a", io.MultiReader(strings.NewReader("12"),
		iotest.ErrReader(io.ErrUnexpectedEOF)), 5); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that breaks off: %v", err)
	}
	if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
