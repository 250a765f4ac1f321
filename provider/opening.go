package provider

import (
	"encoding/json"

	"github.com/coder/acp-go-sdk"
)

// opening holds the members that all requests for a session share, apart from the working directory and the
// servers.
type opening struct {
	dirs   []string       // additional root directories
	append string         // text that is added after the agent's own system prompt
	meta   bool           // append is sent as _meta.systemPrompt
	offers map[string]any // sessionCapabilities as the agent wrote them
}

// systemPrompt is the protocol's member systemPrompt of a request for a session. The SDK does not have it
// yet.
type systemPrompt struct {
	Mode    string      `json:"mode"`
	Content []textBlock `json:"content"`
}

// AddDirectories sets additional root directories for the next session that is opened. It reports whether the
// agent offered this in its answer to initialize. Otherwise nothing is sent.
func (c *Conn) AddDirectories(dirs []string) bool {
	if c.opening.offers["additionalDirectories"] == nil {
		return false
	}
	c.opening.dirs = dirs
	return true
}

// AppendSystem adds a text after the agent's own system prompt in the next session that is opened. It reports
// whether the agent accepts the text: either the agent offered this in its answer to initialize, or meta is
// set and the text goes as _meta.systemPrompt. Otherwise nothing is sent.
func (c *Conn) AppendSystem(text string, meta bool) bool {
	offered := c.opening.offers["systemPrompt"] != nil
	if offered || meta {
		c.opening.append, c.opening.meta = text, !offered
	}
	return offered || meta
}

// storeOffers stores the session capabilities of the agent's answer to initialize.
func (o *opening) storeOffers(initialized json.RawMessage) {
	var r struct {
		Can struct {
			Sessions map[string]any `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
	}
	_ = json.Unmarshal(initialized, &r) // an answer of another form offers nothing
	o.offers = r.Can.Sessions
}

// inMeta returns the member _meta with the system text, or nil if the agent takes the text in systemPrompt.
func (o *opening) inMeta() map[string]any {
	if o.append == "" || !o.meta {
		return nil
	}
	return map[string]any{"systemPrompt": map[string]string{"append": o.append}}
}

func (o *opening) system() *systemPrompt {
	if o.append == "" || o.meta {
		return nil
	}
	return &systemPrompt{"append", []textBlock{{o.append, "text"}}}
}

func (o *opening) newRequest(dir string, servers []acp.McpServer) any {
	return struct {
		acp.NewSessionRequest
		SystemPrompt *systemPrompt `json:"systemPrompt,omitempty"`
	}{acp.NewSessionRequest{Meta: o.inMeta(), AdditionalDirectories: o.dirs, Cwd: dir, McpServers: servers}, o.system()}
}

func (o *opening) resumeRequest(id, dir string, servers []acp.McpServer) any {
	return struct {
		acp.ResumeSessionRequest
		SystemPrompt *systemPrompt `json:"systemPrompt,omitempty"`
	}{acp.ResumeSessionRequest{Meta: o.inMeta(), AdditionalDirectories: o.dirs, SessionId: acp.SessionId(id), Cwd: dir,
		McpServers: servers}, o.system()}
}

func (o *opening) loadRequest(id, dir string, servers []acp.McpServer) any {
	return struct {
		acp.LoadSessionRequest
		SystemPrompt *systemPrompt `json:"systemPrompt,omitempty"`
	}{acp.LoadSessionRequest{Meta: o.inMeta(), AdditionalDirectories: o.dirs, SessionId: acp.SessionId(id), Cwd: dir,
		McpServers: servers}, o.system()}
}
