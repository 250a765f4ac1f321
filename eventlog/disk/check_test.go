package disk_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/disk"
)

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// refused reports whether err is a *PathError for path.
func refused(err error, path string) bool {
	var e *disk.PathError
	return errors.As(err, &e) && e.Path == path
}

// TestCheckLinks checks that links are refused inside a project's folder, both as the file and as a folder in its
// path. In other folders, links are allowed.
func TestCheckLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "elsewhere", "file"), nil)
	project := filepath.Join(dir, ".perlica_config")
	write(t, filepath.Join(project, "own"), nil)
	for name, to := range map[string]string{
		filepath.Join(project, "folder"): filepath.Join(dir, "elsewhere"),
		filepath.Join(project, "file"):   filepath.Join(dir, "elsewhere", "file"),
		filepath.Join(project, "none"):   filepath.Join(dir, "not there"),
		filepath.Join(dir, "outside"):    filepath.Join(dir, "elsewhere", "file"),
		filepath.Join(dir, "config"):     project,
	} {
		if err := os.Symlink(to, name); err != nil {
			t.Skip(err) // the system does not permit links
		}
	}
	for path, link := range map[string]string{
		"elsewhere/file":              "",
		"outside":                     "",
		"config/own":                  "",
		".perlica_config/own":         "",
		".perlica_config/missing":     "",
		".perlica_config/file":        ".perlica_config/file",
		".perlica_config/none":        ".perlica_config/none",
		".perlica_config/folder/file": ".perlica_config/folder",
		".perlica_config/folder/new":  ".perlica_config/folder",
	} {
		err := disk.Check(filepath.Join(dir, path))
		if link == "" && err != nil || link != "" && !refused(err, filepath.Join(dir, link)) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		base := filepath.Join(project, "log"+strings.TrimPrefix(suffix, "-"))
		if err := os.Symlink(filepath.Join(dir, "elsewhere", "file"), base+suffix); err != nil {
			t.Fatal(err)
		}
		if err := disk.CheckDatabase(base); !refused(err, base+suffix) {
			t.Errorf("a link in the place of %q: %v", suffix, err)
		}
	}
}

// TestCheckJournal checks that a rollback journal is refused. The only exception is a journal without pages, which
// the creation of a log may leave.
func TestCheckJournal(t *testing.T) {
	begun := make([]byte, 512)
	copy(begun, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
	paged := append([]byte(nil), begun...)
	binary.BigEndian.PutUint32(paged[16:], 3)
	for name, c := range map[string]struct {
		journal, log, wal []byte
		taken             bool
	}{
		"none":                     {log: make([]byte, 8*8192), taken: true},
		"empty":                    {journal: []byte{}, log: make([]byte, 8*8192), taken: true},
		"over":                     {journal: make([]byte, 512), log: make([]byte, 8*8192), taken: true},
		"of a log being made":      {journal: begun, log: make([]byte, 8192), taken: true},
		"that cuts a log":          {journal: begun, log: make([]byte, 2*8192)},
		"beside a write-ahead log": {journal: begun, log: make([]byte, 8192), wal: []byte("frames")},
		"with pages":               {journal: paged, log: make([]byte, 8192)},
	} {
		path := filepath.Join(t.TempDir(), "e.db")
		for suffix, data := range map[string][]byte{"": c.log, "-wal": c.wal, "-journal": c.journal} {
			if data != nil {
				write(t, path+suffix, data)
			}
		}
		if err := disk.CheckJournal(path); c.taken && err != nil || !c.taken && !refused(err, path+"-journal") {
			t.Errorf("a journal %s: %v", name, err)
		}
	}
}

// TestScratch checks that NewScratch removes unused scratch folders. It must not remove scratch folders in use, or
// folders with other names.
func TestScratch(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, disk.ScratchPrefix+"dead", "half"), []byte("secret"))
	write(t, filepath.Join(dir, disk.ScratchPrefix+"file"), nil)
	write(t, filepath.Join(dir, "other", "half"), nil)
	one, err := disk.NewScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, one.Path("x"), []byte("unfinished"))
	two, err := disk.NewScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(one.Path("x")); err != nil || string(b) != "unfinished" {
		t.Errorf("of the one that works: %q, %v", b, err)
	}
	if fi, err := os.Stat(filepath.Dir(one.Path("x"))); err != nil || os.PathSeparator == '/' &&
		fi.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v", fi.Mode(), err)
	}
	if err := errors.Join(one.Close(), two.Close()); err != nil {
		t.Error(err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); err != nil || got != disk.ScratchPrefix+"file other" {
		t.Errorf("left are %s, %v", got, err)
	}
}
