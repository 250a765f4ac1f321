package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFind checks that Find ignores a bwrap that an agent could have made, even if it is a link to a program of the
// system.
func TestFind(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Find(Project)
	var fault *Error
	if !errors.As(err, &fault) || !strings.Contains(err.Error(), "is not on PATH") {
		t.Errorf("%v", err)
	}
	made, linked := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(made, "bwrap"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/bin/env", filepath.Join(linked, "bwrap")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{made, linked} {
		t.Setenv("PATH", dir)
		if path, err := Find(Project); !errors.As(err, &fault) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %q, %v", dir, path, err)
		}
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		if path, err := Find(Project); err == nil && filepath.Dir(path) == dir {
			t.Errorf("took %s", path)
		}
	}
}

// TestFindRelative checks that Find ignores a bwrap in a relative folder of PATH.
func TestFindRelative(t *testing.T) {
	t.Chdir("/usr")
	t.Setenv("PATH", "bin")
	if path, err := Find(Project); err == nil {
		t.Errorf("took %s", path)
	}
}

// TestReadSmall checks that readSmall returns "" for a pipe, a device, a folder and a huge file, and does not block.
func TestReadSmall(t *testing.T) {
	dir := t.TempDir()
	pipe, huge, small := filepath.Join(dir, "pipe"), filepath.Join(dir, "huge"), filepath.Join(dir, "small")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(small, []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(huge, []byte(strings.Repeat("x", 1<<17)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "", "/dev/zero": "", dir: "", huge: "", small: "text"} {
		if got := readSmall(path); got != want {
			t.Errorf("%s: %d bytes", path, len(got))
		}
	}
}

// TestRestrictCloses checks that after Restrict a program does not inherit an open file of Perlica and has a new
// session keyring. It checks this with Landlock and without it.
func TestRestrictCloses(t *testing.T) {
	for _, scoped := range []bool{false, true} {
		fd, err := unix.Open("/", unix.O_PATH, 0) // without O_CLOEXEC
		if err != nil {
			t.Fatal(err)
		}
		before, noKeys := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
		var after int
		var out []byte
		done := make(chan struct{})
		go func() {
			defer close(done)
			box := &Sandbox{Scoped: scoped && canScope("/bin/sh")}
			if err = box.Restrict(); err != nil {
				return
			}
			after, _ = unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
			out, err = exec.Command("/bin/sh", "-c", "readlink /proc/self/fd/*; true").CombinedOutput()
		}()
		<-done
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if line == "/\n" {
				t.Errorf("Landlock %v: the program inherits the folder", scoped)
			}
		}
		if noKeys == nil && before == after {
			t.Errorf("Landlock %v: the session keyring stays", scoped)
		}
	}
}

// TestExplain checks that Explain returns an *Error with the next step for an error message of bubblewrap, and not for
// other output.
func TestExplain(t *testing.T) {
	bwrap := filepath.Join(t.TempDir(), "bwrap")
	for _, c := range []struct{ says, hint string }{
		{"bwrap: No permissions to create new namespace", "the system forbids user namespaces"},
		{"bwrap: Can't find source path /x", "'perlica sandbox check' says more"},
		{"bwrap: execvp /x: no such file", ""},
		{"the agent says", ""},
	} {
		script := "#!/bin/sh\ncat >&2 <<'X'\n" + c.says + "\nX\nexit 1\n"
		if err := os.WriteFile(bwrap, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		err := (&Sandbox{Mode: Project, bwrap: bwrap}).Explain()
		var fault *Error
		if errors.As(err, &fault) != (c.hint != "") || fault != nil && !strings.Contains(fault.Do, c.hint) {
			t.Errorf("%s: %v", c.says, err)
		}
	}
}
