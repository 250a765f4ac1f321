//go:build unix

package eventlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/perlica/perlica/eventlog/store"
)

// childHold holds the write lock of a log until its standard input ends.
func childHold(path string) {
	w, err := store.OpenWritable(context.Background(), path)
	if err != nil {
		panic(err)
	}
	if _, err := w.DB.Exec(`BEGIN IMMEDIATE`); err != nil {
		panic(err)
	}
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

func TestWriteLockHolderNamesTheProcess(t *testing.T) {
	path := closedLog(t)
	if pid, err := store.WriteLockHolder(path); pid != 0 || err != nil {
		t.Errorf("before: %d, %v", pid, err)
	}
	cmd := child(t, "hold", path)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if pid, err := store.WriteLockHolder(path); pid != cmd.Process.Pid || err != nil {
		t.Errorf("while %d holds it: %d, %v", cmd.Process.Pid, pid, err)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
	if pid, err := store.WriteLockHolder(path); pid != 0 || err != nil {
		t.Errorf("after: %d, %v", pid, err)
	}
}
