package sandbox

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWatch removes a hidden socket before the start of the sandbox. In a read-only folder the start fails, and Entered
// must return false. In a writable folder the start succeeds, and no file may remain at the path of the socket.
func TestWatch(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Mode: Protect, Home: home, Environ: os.Environ()}
	if _, err := Find(Protect); err != nil {
		t.Skip("NOT TESTED: the sandbox:", err)
	}
	for _, c := range []struct {
		dir     string
		removed bool
		want    bool
	}{{".hidden", false, true}, {".hidden", true, false}, {"visible", false, true}, {"visible", true, true}} {
		socket := filepath.Join(home, c.dir, "socket")
		if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(spec)
		if err != nil {
			t.Fatal(err)
		}
		if b.Explain() != nil && os.Getenv("PERLICA_REQUIRE_SANDBOX") == "" {
			t.Skip("NOT TESTED: the sandbox:", b.Explain())
		}
		if c.removed {
			_ = l.Close() // nothing was read
		}
		argv := b.Command("/", "/bin/sh", "-c", "read x; exit 3")
		cmd := exec.Command(argv[0], argv[1:]...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		w, err := b.Watch(cmd)
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Entered(); got != c.want {
			t.Errorf("%+v: entered: %t", c, got)
		}
		_ = in.Close() // nothing was written
		_ = cmd.Wait() // the test looks at the exit code
		if code := cmd.ProcessState.ExitCode(); (code == 3) != c.want {
			t.Errorf("%+v: exit code %d", c, code)
		}
		if err := b.Explain(); err != nil {
			t.Errorf("%+v: the machine has a fault: %v", c, err)
		}
		if _, err := os.Lstat(socket); (err == nil) == c.removed {
			t.Errorf("%+v: in the place of the socket: %v", c, err)
		}
		_ = l.Close() // nothing was read
	}
}
