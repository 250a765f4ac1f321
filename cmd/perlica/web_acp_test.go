//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestTypeScriptWebSocket checks turns, a question and a cancel over a WebSocket, with a client in the TypeScript
// SDK.
func TestTypeScriptWebSocket(t *testing.T) {
	needsClient(t, "@agentclientprotocol/sdk")
	needsClient(t, "ws")
	w := newWorld(t)
	j, at := w.webServer()
	made := w.run("web", "token", "program", "--rights", "ask,approve")
	made.exits(0)
	cmd := exec.CommandContext(t.Context(), "node", "--test", absolute(t, filepath.Join(clientFolder, "ws.test.mjs")))
	cmd.Env = append(slices.Clone(w.env), "URL=ws"+strings.TrimPrefix(at, "http")+"/acp",
		"TOKEN="+strings.TrimSpace(made.stdout.String()), "PROJECT="+w.project)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	w.logged(3, "llm.requested")
	w.logged(1, "run.cancel_requested")
	w.logged(1, "interaction.answered", `"by":"program `)
	j.signal(syscall.SIGTERM)
	j.exits(0)
	w.audit()
}
