package local

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/provider/descent"
)

// socketVar makes this test binary a phone that sends one message.
const socketVar = "PERLICA_TEST_SOCKET"

// runnerVar makes this test binary a Perlica that runs agents. Its child does the rest.
const runnerVar = "PERLICA_TEST_RUNNER"

// TestCall runs in the other process. It ends when the bridge closes the connection or has the
// message.
func TestCall(t *testing.T) {
	path := os.Getenv(socketVar)
	if path == "" {
		t.Skip("it is for the child of TestAgentsAreRefused")
	}
	if os.Getenv(runnerVar) == "yes" {
		if descent.Announce("ask") != nil || os.Unsetenv(runnerVar) != nil {
			os.Exit(1)
		}
		if _, err := call(t, path).Wait(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		os.Exit(1)
	}
	// An error is ignored, because the bridge may have closed the connection already.
	_, _ = conn.Write([]byte(`{"hello":{"contact":"p","name":"p"}}` + "\n" + `{"message":{"id":"1","text":"/allow"}}` +
		"\n"))
	_, _ = conn.Read(make([]byte, 100))
	os.Exit(0)
}

// call starts another process as a phone.
func call(t *testing.T, path string, env ...string) *os.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.StartProcess(self, []string{self, "-test.run=^TestCall$"}, &os.ProcAttr{
		Env: append(append(os.Environ(), socketVar+"="+path), env...), Files: []*os.File{nil, nil, os.Stderr},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAgentsAreRefused checks a phone that is a child process of a Perlica that runs agents. The bridge closes its
// connection and reads nothing from it. Another phone is heard.
func TestAgentsAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	c, err := Listen(path, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	person := call(t, path)
	list, cursor, err := c.Poll(t.Context(), "")
	if err != nil || len(list) != 1 {
		t.Fatalf("a process that no agent started was not heard: %v, %v", list, err)
	}
	c.confirmUpTo(cursor)
	if _, err := person.Wait(); err != nil {
		t.Fatal(err)
	}
	// the bridge closed the connection; otherwise the process would wait for an answer
	if _, err := call(t, path, runnerVar+"=yes").Wait(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, _, _ := c.Poll(ctx, cursor); len(list) > 0 {
		t.Fatalf("a process of an agent was heard: %v", list)
	}
}
