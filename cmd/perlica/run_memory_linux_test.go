//go:build !race

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jmoiron/sqlx"
)

// crowdAgent is an agent that asks 40 questions of 1 MB each and does not wait for answers.
const crowdAgent = `import json, sys
def send(**m): print(json.dumps(dict(m, jsonrpc="2.0")), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        send(id=m["id"], result={"protocolVersion": 1})
    elif m.get("method") == "session/new":
        send(id=m["id"], result={"sessionId": "s"})
    elif m.get("method") == "session/prompt":
        for i in range(40):
            send(id=1000+i, method="session/request_permission", params={"sessionId": "s",
                "toolCall": {"toolCallId": str(i), "kind": "execute", "rawInput": {"command": "echo " + "a"*(1<<20)}},
                "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "name": "No", "kind": "reject_once"}]})
`

// TestLargeQuestionsFitInMemory checks that memory has the text of an open question only once.
func TestLargeQuestionsFitInMemory(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("NOT TESTED: the memory of a run: python3 is not installed")
	}
	w := newWorld(t)
	agent := filepath.Join(w.home, "agent.py")
	if err := os.WriteFile(agent, []byte(crowdAgent), 0o600); err != nil {
		t.Fatal(err)
	}
	j := w.start("run", "--permissions", "ask", "--wait-permissions", "10m", "--agent", "python3 "+agent, "x")
	w.eventually("40 questions", func() error {
		db, err := sqlx.Open("sqlite", "file:"+logFile(w.project)+"?mode=ro")
		if err != nil {
			return err
		}
		defer db.Close()
		var n int
		if err := db.Get(&n, "SELECT count(*) FROM events WHERE type = 'interaction.requested'"); err != nil {
			return err
		}
		if n < 40 {
			return errors.New("not yet")
		}
		return nil
	})
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", j.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kb int
	if _, err := fmt.Sscan(peak, &kb); err != nil {
		t.Fatal(err)
	}
	if kb > 200_000 {
		t.Errorf("40 open questions of 1 MB take %d kB", kb)
	}
	j.signal(syscall.SIGINT)
	j.wait()
}
