package acp

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/coder/acp-go-sdk"
)

// sdkClient is a client of the Go SDK that allows everything once.
type sdkClient struct {
	mu    sync.Mutex
	text  strings.Builder
	asked int
}

func (c *sdkClient) RequestPermission(_ context.Context, p acp.RequestPermissionRequest) (acp.RequestPermissionResponse,
	error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(p.Options[0].OptionId)}, nil
}

func (c *sdkClient) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := n.Update.AgentMessageChunk; m != nil && m.Content.Text != nil {
		c.text.WriteString(m.Content.Text.Text)
	}
	return nil
}

func (c *sdkClient) ReadTextFile(context.Context, acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	return acp.ReadTextFileResponse{}, io.EOF
}

func (c *sdkClient) WriteTextFile(context.Context, acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	return acp.WriteTextFileResponse{}, io.EOF
}

func (c *sdkClient) CreateTerminal(context.Context, acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	return acp.CreateTerminalResponse{}, io.EOF
}

func (c *sdkClient) KillTerminal(context.Context, acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	return acp.KillTerminalResponse{}, io.EOF
}

func (c *sdkClient) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	return acp.ReleaseTerminalResponse{}, io.EOF
}

func (c *sdkClient) TerminalOutput(context.Context, acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	return acp.TerminalOutputResponse{}, io.EOF
}

func (c *sdkClient) WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (
	acp.WaitForTerminalExitResponse, error) {
	return acp.WaitForTerminalExitResponse{}, io.EOF
}

// TestGoSDKClient checks the client of the Go SDK. It runs turns in two sessions at the same time
// with a question, and cancels one.
func TestGoSDKClient(t *testing.T) {
	client := &sdkClient{}
	inr, inw := io.Pipe()
	outr, outw := io.Pipe()
	w := newWorld(t, nil, func(o *Options) { o.In, o.Out = inr, outw })
	conn := acp.NewClientSideConnection(client, inw, outr)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if _, err := conn.Initialize(ctx, acp.InitializeRequest{ProtocolVersion: 1}); err != nil {
		t.Fatal(err)
	}
	var turns sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		s, err := conn.NewSession(ctx, acp.NewSessionRequest{Cwd: w.path(name), McpServers: []acp.McpServer{}})
		if err != nil {
			t.Fatal(err)
		}
		turns.Go(func() {
			for script, want := range map[string]acp.StopReason{
				"@say " + name: acp.StopReasonEndTurn, "@ask execute Build command=make": acp.StopReasonEndTurn,
			} {
				r, err := conn.Prompt(ctx, acp.PromptRequest{SessionId: s.SessionId,
					Prompt: []acp.ContentBlock{acp.TextBlock(script)}})
				if err != nil || r.StopReason != want {
					t.Errorf("%s: %v %v", script, r.StopReason, err)
				}
			}
		})
	}
	turns.Wait()
	client.mu.Lock()
	defer client.mu.Unlock()
	if text := client.text.String(); client.asked != 2 || !strings.Contains(text, "one") ||
		!strings.Contains(text, "two") {
		t.Errorf("%d questions, text %q", client.asked, text)
	}
	_ = inw.Close() // as an editor does
}
