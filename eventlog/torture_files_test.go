package eventlog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog/store"
)

// meddlings are changes that another program may make to the files of an open log. kept means that the change
// destroys no acknowledged event. The log must then have all of these events afterwards.
var meddlings = map[string]struct {
	do   func(path string) error
	kept bool
}{
	"-wal removed":  {func(p string) error { return os.Remove(p + "-wal") }, true},
	"-wal moved":    {func(p string) error { return os.Rename(p+"-wal", p+"-wal.away") }, true},
	"-wal linked":   {func(p string) error { return os.Link(p+"-wal", p+"-wal.more") }, true},
	"-wal cut":      {func(p string) error { return os.Truncate(p+"-wal", 0) }, false},
	"-wal cut off":  {func(p string) error { return cutBy(p+"-wal", 1) }, false},
	"-wal replaced": {func(p string) error { return replaced(p+"-wal", false) }, false},
	"-wal zeroed":   {func(p string) error { return replaced(p+"-wal", true) }, false},
	"-shm removed":  {func(p string) error { return os.Remove(p + "-shm") }, true},
	"-shm replaced": {func(p string) error { return replaced(p+"-shm", false) }, true},
	"both removed":  {func(p string) error { return errors.Join(os.Remove(p+"-shm"), os.Remove(p+"-wal")) }, true},
	"log linked":    {func(p string) error { return os.Link(p, p+".more") }, true},
}

// cutBy removes the last n bytes of a file.
func cutBy(name string, n int64) error {
	fi, err := os.Stat(name)
	if err != nil || fi.Size() == 0 {
		return err
	}
	return os.Truncate(name, fi.Size()-n)
}

// replaced replaces a file by a file with as many zeros. If "same" is true, it overwrites the file itself.
func replaced(name string, same bool) error {
	fi, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !same {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, fi.Size()))
	return errors.Join(err, f.Close())
}

// TestTortureFiles changes the files of an open log at every failpoint of a commit. The log must still have all
// acknowledged events, or the writer must report a fault.
func TestTortureFiles(t *testing.T) {
	leaveToOtherBuild(t)
	dir, keys := quickDir(t), signingKeys(t)
	if store.Links(mustStat(t, dir)) == 1 {
		t.Skip("this system keeps open files in place")
	}
	s := script{Path: filepath.Join(dir, "whole.db"), Seed: *tortureSeed, Runs: 3, Waits: true, Keys: keys,
		passed: map[string]int{}}
	if err := s.perform(new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	passages, refused, went := s.passed, 0, 0
	for _, point := range []string{"begin", "commit", "committed", "anchored"} {
		for name, m := range meddlings {
			at := []int{passages[point]/2 + 1}
			if *tortureStates >= 5_000 {
				at = moments(passages[point])
			}
			for _, nth := range at {
				s := script{Path: filepath.Join(t.TempDir(), logName), Seed: *tortureSeed, Runs: 3, Waits: true, Keys: keys,
					Point: point, Nth: nth, Meddle: name}
				out, _ := s.command(t).Output()
				acked, why := said(out)
				if why == "" {
					went++
				} else {
					refused++
				}
				if err := s.checkSurvived(acked, why, m.kept); err != nil {
					t.Errorf("%s, %s %d: %v (writer: %q)", name, point, nth, err, why)
				}
			}
		}
	}
	if refused == 0 {
		t.Error("no writer noticed anything")
	}
	t.Logf("%d writers said no, %d went on", refused, went)
}

func mustStat(t *testing.T, name string) os.FileInfo {
	t.Helper()
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return fi
}

// checkSurvived checks a log after one of the meddlings. It first removes the additional names of the log's files. Then
// the log must have the acknowledged events.
func (s script) checkSurvived(acked int, why string, kept bool) error {
	for _, more := range []string{".more", "-wal.more"} {
		_ = os.Remove(s.Path + more) // most of these names do not exist
	}
	if _, err := checkLog(s.Path, acked, tell(s)); err == nil || why == "" || kept {
		return err
	}
	// The change destroyed data, and the writer has reported it. The other events must be readable.
	return checkFile(s.Path)
}

func checkFile(path string) error {
	r, err := store.OpenReader(context.Background(), path)
	if err != nil {
		return err
	}
	return errors.Join(r.CheckIntegrity(context.Background()), r.Close())
}
