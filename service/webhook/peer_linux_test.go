package webhook_test

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/provider/descent"
	"github.com/perlica/perlica/service/webhook"
)

// addrVar makes this test binary a process that sends one message and exits with the status.
const addrVar = "PERLICA_TEST_WEBHOOK"

// runnerVar makes this test binary a Perlica that runs agents. Its child does the rest.
const runnerVar = "PERLICA_TEST_RUNNER"

// TestPost runs in the other process.
func TestPost(t *testing.T) {
	addr := os.Getenv(addrVar)
	if addr == "" {
		t.Skip("it is for the child of TestAgentsAreRefused")
	}
	asRunner(t)
	body := `{"id":"1","chat":"c","contact":"p","text":"/allow"}`
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/messages",
		strings.NewReader(body))
	if err != nil {
		os.Exit(1)
	}
	req.Header.Set(webhook.TimestampHeader, stamp)
	req.Header.Set(webhook.SignatureHeader, webhook.Sign(secret, stamp, []byte(body)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		os.Exit(1)
	}
	os.Exit(resp.StatusCode - 200)
}

// again starts this test binary as another process and returns its exit code.
func again(t *testing.T, env ...string) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.StartProcess(self, []string{self, "-test.run=^TestPost$"}, &os.ProcAttr{
		Env: append(os.Environ(), env...), Files: []*os.File{nil, nil, os.Stderr},
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return state.ExitCode()
}

// asRunner makes this process a Perlica that runs agents if runnerVar is set. A child then runs the test.
func asRunner(t *testing.T) {
	if os.Getenv(runnerVar) != "yes" {
		return
	}
	if descent.Announce("ask") != nil || os.Unsetenv(runnerVar) != nil {
		os.Exit(1)
	}
	os.Exit(again(t))
}

// TestAgentsAreRefused checks loopback messages. A message of a process below a Perlica that runs agents is refused,
// even with a valid signature. A message of another process is accepted.
func TestAgentsAreRefused(t *testing.T) {
	c := open(t, func(o *webhook.Options) { o.Handover = time.Millisecond })
	addr := addrVar + "=" + c.Addr().String()
	if got := again(t, addr) + 200; got == http.StatusForbidden {
		t.Fatal("a process that no agent started was refused")
	}
	if got := again(t, addr, runnerVar+"=yes") + 200; got != http.StatusForbidden {
		t.Fatalf("a process of an agent got the status %d", got)
	}
}
