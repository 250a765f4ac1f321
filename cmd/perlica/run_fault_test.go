//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/eventlog/store/storetest"
)

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// sql changes a database without using perlica.
func (w *world) sql(path, statement string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		w.t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	_, _ = db.Exec(storetest.Editable) // fails if the file is not a log
	_, err = db.Exec(statement)
	if err := errors.Join(err, db.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// lock takes the write lock of a database. The caller releases the lock with release.
func (w *world) lock(path string) (release func()) {
	w.t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		w.t.Fatal(err)
	}
	conn, err := db.Conn(context.Background())
	if err == nil {
		_, err = conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return func() {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		if err := errors.Join(err, conn.Close(), db.Close()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// tmpfs puts the project's data on a small file system in memory. It skips the test if the user may not mount one.
func (w *world) tmpfs(size string) (remount func(options string)) {
	w.t.Helper()
	dir := filepath.Join(w.project, ".perlica_config")
	if err := os.Mkdir(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=700,size="+size, "perlica-test",
		dir).CombinedOutput(); err != nil {
		w.t.Skipf("no tmpfs: %v: %s", err, out)
	}
	w.t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			w.t.Errorf("umount: %v: %s", err, out)
		}
	})
	return func(options string) {
		w.t.Helper()
		if out, err := exec.Command("mount", "-o", "remount,"+options, dir).CombinedOutput(); err != nil {
			w.t.Fatalf("remount: %v: %s", err, out)
		}
	}
}

// fillUp writes a file until the disk is full.
func fillUp(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
}

// termios returns the mode of a terminal.
func termios(t *testing.T, f *os.File) string {
	t.Helper()
	cmd := exec.Command("stty", "-g")
	cmd.Stdin = f
	out, err := cmd.Output()
	if err != nil {
		t.Skip("stty: ", err)
	}
	return string(out)
}
