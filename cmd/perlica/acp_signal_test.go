//go:build linux

package main

import (
	"fmt"
	"syscall"
	"testing"
)

// TestEditorSignals checks that a signal from the client ends the turn, the agent and perlica. This also holds if
// the client does not close its end of the pipe.
func TestEditorSignals(t *testing.T) {
	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130, syscall.SIGHUP: 143} {
		t.Run(sig.String(), func(t *testing.T) {
			w := newWorld(t)
			cmd := w.command("acp")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			j := w.startCmd(cmd)
			say := func(format string, args ...any) {
				if _, err := fmt.Fprintf(in, format+"\n", args...); err != nil {
					t.Fatal(err)
				}
			}
			say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
			say(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, w.project)
			w.until(1, "acp.session.started")
			say(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"session-1","prompt":[{"type":"text","text":"@say begun\n@spawn 10m\n@hang"}]}}`)
			w.until(1, "acp.notification.received", "begun")
			j.signal(sig)
			j.exits(code)
			w.logged(1, "llm.requested")
			if n := w.count("llm.responded", `"stop_reason":"cancelled"`) + w.count("llm.outcome_unknown"); n != 1 {
				t.Errorf("%d outcomes", n)
			}
			w.logged(1, "run.cancel_requested")
			w.audit()
		})
	}
}
