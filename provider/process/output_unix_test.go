//go:build unix

package process

import (
	"os"
	"testing"
)

// TestOutputEndsWithTheAgent checks that a child that keeps writing after the agent has ended does not keep the output
// open.
func TestOutputEndsWithTheAgent(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	exited := make(chan struct{})
	o := &Output{f: r, exited: exited}
	ended := make(chan struct{})
	defer close(ended)
	go o.EndWithAgent(ended)
	go func() {
		b := make([]byte, 4096)
		for {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 1000)
	if n, err := o.Read(b); n != 1000 || err != nil {
		t.Fatalf("got %d, %v; want n == 1000 && err == nil", n, err)
	}
	close(exited)
	read := 0
	for {
		n, err := o.Read(b)
		read += n
		if err != nil {
			break
		}
		if o.rest > restLimit+len(b) {
			t.Fatalf("read %d bytes after the agent had gone", o.rest)
		}
	}
	if o.rest < restLimit {
		t.Errorf("ended after %d bytes", o.rest)
	}
	r.Close()
}
