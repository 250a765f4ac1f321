package provider

import (
	"encoding/json"

	"github.com/coder/acp-go-sdk"
)

// opening is what every request that opens a session has beside its working directory and servers.
type opening struct {
	dirs   []string       // further roots
	append string         // behind the agent's own system prompt
	meta   bool           // append goes as _meta.systemPrompt
	offers map[string]any // sessionCapabilities, as the agent wrote them
}

// systemPrompt is the protocol's systemPrompt of a request that opens a session. The SDK does not have it yet.
type systemPrompt struct {
	Mode    string      `json:"mode"`
	Content []textBlock `json:"content"`
}

// AddDirectories gives the session that is opened next further roots. It reports whether the agent has said
// in Initialize that it takes them; else nothing is sent of them.
func (c *Conn) AddDirectories(dirs []string) bool {
	if c.opening.offers["additionalDirectories"] == nil {
		return false
	}
	c.opening.dirs = dirs
	return true
}

// AppendSystem puts a text behind the agent's own system prompt in the session that is opened next. It reports
// whether the agent has said in Initialize that it takes one, or is known to take it as _meta.systemPrompt;
// else nothing is sent of it.
func (c *Conn) AppendSystem(text string, meta bool) bool {
	offered := c.opening.offers["systemPrompt"] != nil
	if offered || meta {
		c.opening.append, c.opening.meta = text, !offered
	}
	return offered || meta
}

// offered remembers what the agent says in its answer to initialize that it takes.
func (o *opening) offered(initialized json.RawMessage) {
	var r struct {
		Can struct {
			Sessions map[string]any `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
	}
	_ = json.Unmarshal(initialized, &r) // what has not the protocol's form offers nothing
	o.offers = r.Can.Sessions
}

// inMeta is the member _meta, by which a text goes that the agent did not offer to take; nil: none.
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

func (o *opening) new(dir string, servers []acp.McpServer) any {
	return struct {
		acp.NewSessionRequest
		SystemPrompt *systemPrompt `json:"systemPrompt,omitempty"`
	}{acp.NewSessionRequest{Meta: o.inMeta(), AdditionalDirectories: o.dirs, Cwd: dir, McpServers: servers}, o.system()}
}

func (o *opening) resume(id, dir string, servers []acp.McpServer) any {
	return struct {
		acp.ResumeSessionRequest
		SystemPrompt *systemPrompt `json:"systemPrompt,omitempty"`
	}{acp.ResumeSessionRequest{Meta: o.inMeta(), AdditionalDirectories: o.dirs, SessionId: acp.SessionId(id), Cwd: dir, McpServers: servers}, o.system()}
}

func (o *opening) load(id, dir string, servers []acp.McpServer) any {
	return struct {
		acp.LoadSessionRequest
		SystemPrompt *systemPrompt `json:"systemPrompt,omitempty"`
	}{acp.LoadSessionRequest{Meta: o.inMeta(), AdditionalDirectories: o.dirs, SessionId: acp.SessionId(id), Cwd: dir, McpServers: servers}, o.system()}
}
