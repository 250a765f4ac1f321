package logtrust

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// killed appends events in another process, which then kills itself with the log open. So the events stay in the
// write-ahead log.
func killed(t *testing.T, s Store, path string, types ...event.Type) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "LOGTRUST_LOG="+path, "LOGTRUST_DIR="+filepath.Dir(s.Dir),
		"PERLICA_TRUST_LOG="+strings.Join(s.Trusted, " "))
	if s.Keys == nil {
		cmd.Env = append(cmd.Env, "LOGTRUST_UNSIGNED=1")
	}
	for _, typ := range types {
		cmd.Args = append(cmd.Args, string(typ))
	}
	if out, err := cmd.CombinedOutput(); err == nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	if fi, err := os.Stat(path + "-wal"); err != nil || fi.Size() == 0 {
		t.Fatalf("nothing in the write-ahead log: %v", err)
	}
}

// TestKilled is not a test. It is the process that the function killed starts.
func TestKilled(t *testing.T) {
	path, dir := os.Getenv("LOGTRUST_LOG"), os.Getenv("LOGTRUST_DIR")
	if path == "" {
		t.Skip("it is run by others")
	}
	s := Store{Dir: filepath.Join(dir, "logs"), Trusted: strings.Fields(os.Getenv("PERLICA_TRUST_LOG"))}
	if os.Getenv("LOGTRUST_UNSIGNED") == "" {
		s.Keys = evidence.UseKeys(filepath.Join(dir, "keys"))
	}
	log, kept, err := s.Open(t.Context(), path, eventlog.Options{Context: "default", Keys: s.Keys})
	if err != nil || kept != nil {
		t.Fatal(err, kept)
	}
	for _, typ := range flag.Args() {
		appendRun(t, log, event.Type(typ))
	}
	p, err := os.FindProcess(os.Getpid())
	if err := errors.Join(err, p.Kill()); err != nil {
		t.Fatal(err)
	}
	select {}
}

// put replaces the file "to" with a copy of the file "from".
func put(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(elsewhere(t, from), to); err != nil {
		t.Fatal(err)
	}
}

// refused returns nil if Open refuses the log as unknown. Otherwise it returns an error.
func refused(ctx context.Context, s Store, path string) error {
	var unknown *UnknownError
	log, _, err := s.Open(ctx, path, eventlog.Options{Context: "default", Keys: s.Keys})
	if errors.As(err, &unknown) {
		return nil
	}
	if err == nil {
		err = log.Close()
	}
	return errors.Join(errors.New("it is known"), err)
}

// TestForgedWriteAheadLog checks that a known log becomes unknown if it gets a foreign write-ahead log.
func TestForgedWriteAheadLog(t *testing.T) {
	me, other := user(t), user(t)
	if now, err := identity(t.TempDir()); err != nil || now == "" {
		t.Skip("the system does not tell files apart", err)
	}
	path := filepath.Join(t.TempDir(), "eventlog.db")
	log, kept, err := me.Open(t.Context(), path, eventlog.Options{Context: "default", Keys: me.Keys})
	if err := errors.Join(err, kept, log.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, path, me.Keys, event.Requested, event.Responded, event.CallEnforced)
	forged := elsewhere(t, path)
	other.Trusted = me.Keys.VerifierKeys("perlica/of-any-name")
	killed(t, other, forged, event.Requested, event.Responded, event.CallEnforced)

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, forged+"-wal", path+"-wal")
	if err := os.WriteFile(path+"-shm", []byte("forged, too"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := refused(t.Context(), me, path); err != nil {
		t.Errorf("a write-ahead log that was added: %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(before) {
		t.Errorf("it was moved into the database: %v", err)
	}
	if err := errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm")); err != nil {
		t.Fatal(err)
	}
	killed(t, me, path, event.Requested)
	put(t, forged+"-wal", path+"-wal")
	if err := refused(t.Context(), me, path); err != nil {
		t.Errorf("one that was replaced: %v", err)
	}
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(me.Trust(t.Context(), r, ""), r.Close(), me.Check(t.Context(), path)); err != nil {
		t.Errorf("trusted: %v", err)
	}
}

// TestOwnWriteAheadLog checks that the write-ahead log of a killed process stays known, signed or not, even after the
// log was moved. A copy of the write-ahead log must not be known.
func TestOwnWriteAheadLog(t *testing.T) {
	me := user(t)
	me.Keys = nil
	if now, err := identity(t.TempDir()); err != nil || now == "" {
		t.Skip("the system does not tell files apart", err)
	}
	path := filepath.Join(t.TempDir(), "eventlog.db")
	killed(t, me, path, event.Requested, event.Responded)
	if err := me.Check(t.Context(), path); err != nil {
		t.Errorf("killed: %v", err)
	}
	moved := filepath.Join(t.TempDir(), "eventlog.db")
	if err := errors.Join(os.Rename(path, moved), os.Rename(path+"-wal", moved+"-wal"),
		me.Check(t.Context(), moved)); err != nil {
		t.Errorf("moved: %v", err)
	}
	put(t, moved+"-wal", moved+"-wal")
	if err := me.Check(t.Context(), moved); err == nil {
		t.Error("a copy of it is known")
	}
}
