//go:build unix

package config

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFindRefusesAnotherUsersWorkspace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	base := t.TempDir()
	home := filepath.Join(base, "home")
	makePath(t, home, true)
	makePath(t, filepath.Join(base, "a", DirName), true)
	for _, tt := range []struct {
		homeOwner, owner int
		ok               bool
	}{{1000, 1000, true}, {1000, 0, true}, {1000, 1001, false}, {0, 1001, true}} {
		if err := errors.Join(os.Chown(home, tt.homeOwner, -1), os.Chown(filepath.Join(base, "a", DirName), tt.owner, -1)); err != nil {
			t.Skip(err)
		}
		if _, err := Find(filepath.Join(base, "a"), home); (err == nil) != tt.ok {
			t.Errorf("%+v: got %v", tt, err)
		}
	}
}

// Opening a pipe would wait for ever for somebody to write.
func TestConfigurationThatIsAPipe(t *testing.T) {
	p := newPlace(t)
	if err := syscall.Mkfifo(p.ws.ConfigFile(), 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := p.load(nil); !errors.Is(err, errIrregular) {
		t.Errorf("got %v", err)
	}
}
