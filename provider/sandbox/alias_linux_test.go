package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAliases checks folders that are mounted at two places. Through a second mount of the home, an agent can neither
// read secrets nor write startup files. A second mount of a hidden folder is hidden, too.
func TestAliases(t *testing.T) {
	if base := os.Getenv("PERLICA_TEST_ALIASES"); base != "" {
		aliasesInside(t, base)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: the sandbox: only root can mount a folder twice")
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestAliases$", "-test.v")
	cmd.Env = append(os.Environ(), "PERLICA_TEST_ALIASES="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// aliasesInside is the part of TestAliases that runs in a new mount namespace, in which it can mount folders.
func aliasesInside(t *testing.T, base string) {
	home, other, hide := filepath.Join(base, "home"), filepath.Join(base, "other"), filepath.Join(base, "hide")
	for _, dir := range []string{filepath.Join(home, ".ssh"), filepath.Join(home, "work"), other, hide,
		filepath.Join(base, "shown")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, ".bashrc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for from, at := range map[string]string{home: other, hide: filepath.Join(base, "shown")} {
		if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	for mode, want := range map[Mode]map[string]access{
		Protect: {other: read, filepath.Join(other, ".bashrc"): read, filepath.Join(base, "shown"): hidden},
		Project: {filepath.Join(other, ".ssh"): hidden, filepath.Join(base, "shown"): hidden},
	} {
		spec := Spec{Mode: mode, Home: home, Work: []string{filepath.Join(home, "work")}, Hide: []string{hide}}
		rules, err := spec.table()
		if err != nil {
			t.Fatal(err)
		}
		for path, a := range want {
			if got := rules.of(path); got != a {
				t.Errorf("%s: %s has the access %d, want %d", mode, path, got, a)
			}
		}
	}
}
