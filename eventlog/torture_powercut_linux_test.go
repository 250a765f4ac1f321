package eventlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ioctlShutdown stops a Linux file system at once. With shutdownNoFlush, the file system's data in memory is lost
// (include/uapi/linux/fs.h of newer kernels, fs/ext4/ext4.h of older ones).
const (
	ioctlShutdown   = 0x8004587d
	shutdownNoFlush = 2
)

// A drive is an ext4 file system in a file. A test can cut its power.
type drive struct{ image, at string }

// newDrive makes and mounts a drive. It skips the test if that is not possible.
func newDrive(t *testing.T) drive {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("power cuts need root: a file system is mounted and shut down")
	}
	for _, tool := range []string{"mkfs.ext4", "mount", "umount"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("power cuts need %s", tool)
		}
	}
	dir := t.TempDir()
	d := drive{filepath.Join(dir, "image"), filepath.Join(dir, "mounted")}
	if err := errors.Join(os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, 256<<20),
		os.Mkdir(d.at, 0o700)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Skipf("mkfs.ext4: %v, %.200s", err, out)
	}
	if err := d.mountDrive(); err != nil {
		t.Skipf("power cuts need loop devices and ext4: %v", err)
	}
	t.Cleanup(func() {
		if err := d.unmountDrive(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d drive) mountDrive() error {
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.at).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w, %.200s", err, out)
	}
	return nil
}

func (d drive) unmountDrive() error {
	if out, err := exec.Command("umount", d.at).CombinedOutput(); err != nil {
		return fmt.Errorf("umount: %w, %.200s", err, out)
	}
	return nil
}

// cutPower stops the file system. Data that is not on the disk is lost.
func (d drive) cutPower() error {
	f, err := os.Open(d.at)
	if err != nil {
		return err
	}
	return errors.Join(unix.IoctlSetPointerInt(int(f.Fd()), ioctlShutdown, shutdownNoFlush), f.Close())
}

// performOn runs the script s on the drive and cuts the power shortly after the nth line of output. Then it checks
// the log. Only output before the cut counts. A sync during the cut may succeed and still lose its data. After a real
// power cut, no process would see the result of that sync.
func (d drive) performOn(t *testing.T, s script, nth int, moment time.Duration) (acked, found int, err error) {
	t.Helper()
	if err := os.Mkdir(filepath.Dir(s.Path), 0o700); err != nil {
		return 0, 0, err
	}
	cmd := s.command(t)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	var mu sync.Mutex
	var heard bytes.Buffer // guarded by mu
	due, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		for n := 1; lines.Scan(); n++ {
			mu.Lock()
			heard.Write(append(lines.Bytes(), '\n'))
			mu.Unlock()
			if n == nth {
				close(due)
			}
		}
	}()
	select {
	case <-due:
	case <-ended:
	}
	// Wait in a loop, because a timer is not precise enough to cut the power at every moment of a commit.
	for start := time.Now(); time.Since(start) < moment; {
		runtime.Gosched()
	}
	mu.Lock()
	acked, _ = said(heard.Bytes())
	mu.Unlock()
	if err := d.cutPower(); err != nil {
		t.Skipf("this kernel cannot shut ext4 down: %v", err)
	}
	<-ended
	_ = cmd.Wait() // The log of this process failed, as expected.
	if err := errors.Join(d.unmountDrive(), d.mountDrive()); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil { // the power cut may have removed the folder
		return acked, 0, err
	}
	found, err = checkLog(s.Path, acked, tell(s))
	return acked, found, err
}

// TestTorturePowerCuts cuts the power while writers run. A writer that syncs too little must lose events within the
// same number of cuts, or within twenty.
func TestTorturePowerCuts(t *testing.T) {
	if *tortureCuts == 0 {
		t.Skip("power cuts are made with -powercuts N, by root")
	}
	d := newDrive(t)
	dice := rand.New(rand.NewPCG(*tortureSeed, 4))
	one := func(name string, i int, pragma string) (int, int, error) {
		s := script{Path: filepath.Join(d.at, fmt.Sprint(name, i), logName), Seed: *tortureSeed + uint64(i), Runs: 20,
			Sync: pragma}
		return d.performOn(t, s, 1+dice.IntN(60), time.Duration(dice.IntN(3000))*time.Microsecond)
	}
	var sumAcked, sumFound int
	for i := range *tortureCuts {
		acked, found, err := one("cut", i, "")
		if err != nil {
			t.Errorf("cut %d: %v", i, err)
		}
		sumAcked, sumFound = sumAcked+acked, sumFound+found
	}
	t.Logf("seed %d: %d power cuts; %d events acknowledged, %d found", *tortureSeed, *tortureCuts, sumAcked, sumFound)
	for i := range max(20, *tortureCuts) {
		acked, found, err := one("normal", i, "NORMAL")
		if errors.Is(err, errLost) {
			t.Logf("synchronous=NORMAL: cut %d lost %d of %d acknowledged events", i+1, acked-found, acked)
			return
		}
	}
	t.Error("synchronous=NORMAL lost nothing: these are no power cuts")
}
