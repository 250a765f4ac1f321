package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"
)

// clientFolder has the tests with a client in the TypeScript SDK, and the version of the SDK.
var clientFolder = filepath.Join("testdata", "client")

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReplayToTheTypeScriptClient replays recorded sessions to clients. One is a session of claude, for the test in
// docs/replay.md. The others are recorded frames of claude, codex and opencode, for a client that repeats the
// original client.
func TestReplayToTheTypeScriptClient(t *testing.T) {
	if v, err := exec.Command("node", "-p", "parseInt(process.versions.node)").Output(); err != nil {
		t.Skip("NOT TESTED: a replay to the client of the TypeScript SDK: node is not installed")
	} else if n, err := strconv.Atoi(strings.TrimSpace(string(v))); err != nil || n < 20 {
		t.Skipf("NOT TESTED: a replay to the client of the TypeScript SDK: node is %s, and it takes 20", v)
	}
	if _, err := os.Stat(filepath.Join(clientFolder, "node_modules", "@agentclientprotocol", "sdk")); err != nil {
		t.Skip("NOT TESTED: a replay to the client of the TypeScript SDK: run 'npm ci' in " + clientFolder)
	}
	claude := absolute(t, filepath.Join("..", "..", "provider", "replay", "testdata", "claude.frames"))
	records := t.TempDir()
	files, err := filepath.Glob(filepath.Join("..", "..", "provider", "testdata", "frames", "*.ndjson"))
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		toRecord(t, file, filepath.Join(records, strings.TrimSuffix(filepath.Base(file), ".ndjson")+".frames"))
	}
	if err := os.Symlink(claude, filepath.Join(records, "claude.frames")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "--test", "client.test.mjs", "corpus.test.mjs")
	cmd.Dir = clientFolder
	cmd.Env = append(os.Environ(), "RECORD="+claude, "RECORDS="+records)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// toRecord converts recorded frames from the tests of package provider to a file for replay.
func toRecord(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.WriteString(`{"perlica_frames":1}` + "\n")
	enc := json.NewEncoder(&out)
	for line := range bytes.Lines(b) {
		var l struct {
			From string
			Line json.RawMessage
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if err := enc.Encode(map[string]any{"ms": 0, "from": l.From, "line": string(l.Line)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(to, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The part of docs/replay.md about a client in Go begins here.

type client struct {
	acp.Client // panics for each method that this agent does not call
	asked      chan string
}

func (c client) SessionUpdate(context.Context, acp.SessionNotification) error { return nil }

func (c client) RequestPermission(_ context.Context, p acp.RequestPermissionRequest) (acp.RequestPermissionResponse,
	error) {
	c.asked <- *p.ToolCall.Title
	for _, o := range p.Options {
		if o.Kind == acp.PermissionOptionKindAllowOnce {
			return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(o.OptionId)}, nil
		}
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
}

func TestYesterday(t *testing.T) {
	agent := exec.Command("perlica", "agent", "replay", "../../provider/replay/testdata/claude.frames")
	in, err := agent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	c := client{asked: make(chan string, 1)}
	conn := acp.NewClientSideConnection(c, in, out)
	if _, err := conn.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: 1}); err != nil {
		t.Fatal(err)
	}
	s, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: t.TempDir(), McpServers: []acp.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := conn.Prompt(t.Context(), acp.PromptRequest{
		SessionId: s.SessionId, Prompt: []acp.ContentBlock{acp.TextBlock("WRITE out.txt hello")},
	})
	if err != nil || res.StopReason != acp.StopReasonEndTurn || <-c.asked != "Write out.txt" {
		t.Errorf("%+v, %v", res, err)
	}
	if err := in.Close(); err != nil { // The agent ends when its input is closed.
		t.Error(err)
	}
	if err := agent.Wait(); err != nil {
		t.Error(err)
	}
}

// The part of docs/replay.md ends here.

// TestReplayInDocs compares the programs in docs/replay.md with the files of this folder.
func TestReplayInDocs(t *testing.T) {
	page := documents(t)["docs/replay.md"]
	for file, language := range map[string]string{filepath.Join(clientFolder, "client.test.mjs"): "js",
		"replay_client_test.go": "go"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(page, "```"+language+"\n")
		block, _, ok2 := strings.Cut(rest, "```\n")
		if !ok || !ok2 || !strings.Contains(string(b), block) {
			t.Errorf("docs/replay.md does not show a part of %s", file)
		}
	}
}
