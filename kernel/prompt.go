package kernel

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// makePrompt is what the agent is asked, as it will be on the wire, and the attachments in it.
func (run *run) makePrompt(ctx context.Context) (provider.Prompt, []file, *fact.Truncated, error) {
	if run.carried != nil {
		return run.t.Input.Prompt, nil, nil, nil
	}
	files, err := run.t.Input.files()
	if err != nil {
		return nil, nil, nil, err
	}
	blocks, cut, err := run.blocks(ctx, files)
	if err != nil {
		return nil, nil, nil, err
	}
	prompt, err := provider.NewPrompt(blocks)
	if err != nil {
		err = &InputError{err}
	}
	return prompt, files, cut, err
}

// blocks is what the agent is asked: the system text and the transcript where they
// belong, then the input's text, then its attachments.
func (run *run) blocks(ctx context.Context, files []file) ([]acp.ContentBlock, *fact.Truncated, error) {
	var blocks []acp.ContentBlock
	var cut *fact.Truncated
	first := !run.agent.prompted && !(run.agent.how != continuedAnew) // the agent knows nothing yet
	if first && run.t.System != "" {
		blocks = append(blocks, acp.TextBlock(run.t.System))
	}
	if first && !run.created {
		h, err := run.r.history(ctx, run.refs.Session, run.refs.Run, run.t.Budget)
		if err != nil {
			return nil, nil, err
		}
		if text := h.transcript(); text != "" {
			blocks = append(blocks, acp.TextBlock(text))
		}
		if h.dropped > 0 || h.gone > 0 {
			cut = &fact.Truncated{Kept: len(h.turns), Dropped: h.dropped, Gone: h.gone, Budget: run.t.Budget, Estimate: h.tokens}
		}
	}
	blocks = append(blocks, acp.TextBlock(run.t.Input.Text))
	for _, f := range files {
		blocks = append(blocks, run.attachment(f))
	}
	return blocks, cut, nil
}

// attachment makes of a file what the agent can take: an image, an embedded text, else a
// link.
func (run *run) attachment(f file) acp.ContentBlock {
	can := run.agent.info.AgentCapabilities.PromptCapabilities
	mime := http.DetectContentType(f.data)
	switch {
	case f.data == nil:
	case can.Image && strings.HasPrefix(mime, "image/"):
		return acp.ImageBlock(base64.StdEncoding.EncodeToString(f.data), mime)
	case can.EmbeddedContext && utf8.Valid(f.data):
		return acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: &acp.TextResourceContents{Uri: f.uri, Text: string(f.data)}})
	}
	return acp.ResourceLinkBlock(f.name, f.uri)
}

// extend adds to the agent's session what the setup has beside the usual. What the agent does not take is an
// InputError: it would be prompted in another session than was asked for.
func (s *agentSession) extend() error {
	refuse := func(what string) error {
		return &InputError{fmt.Errorf("%s does not take %s: nothing was sent", s.setup.Agent.ID, what)}
	}
	if text := s.setup.Append; text != "" && !s.conn.AppendSystem(text, s.setup.Agent.TakesAppend(s.info.AgentInfo)) {
		return refuse("a text for its system prompt")
	}
	if dirs := s.setup.AddDirs; len(dirs) > 0 && !s.conn.AddDirectories(dirs) {
		return refuse("further directories")
	}
	can := s.info.AgentCapabilities.McpCapabilities
	servers := slices.Clone(s.setup.Servers)
	for _, extra := range s.setup.Extra {
		switch {
		case s.setup.Agent.Model:
			return refuse("MCP servers, as a model without tools")
		case extra.Http != nil && !can.Http:
			return refuse("MCP servers over http")
		case extra.Sse != nil && !can.Sse:
			return refuse("MCP servers over sse")
		}
		servers = slices.DeleteFunc(servers, func(m acp.McpServer) bool { return serverName(m) == serverName(extra) })
		servers = append(servers, extra)
	}
	s.setup.Servers = servers
	return nil
}

func serverName(m acp.McpServer) string {
	switch {
	case m.Http != nil:
		return m.Http.Name
	case m.Sse != nil:
		return m.Sse.Name
	}
	return cmp.Or(m.Stdio, &acp.McpServerStdio{}).Name
}
