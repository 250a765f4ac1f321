package fact

import "encoding/json"

// SessionCreated is the payload of session.created: a conversation, locked to one provider.
type SessionCreated struct {
	Name      string `json:"name,omitempty"`
	Provider  string `json:"provider"`
	Ephemeral bool   `json:"ephemeral"` // lists only on demand
}

// SessionRenamed is the payload of session.renamed. Those of session.selected and
// session.deleted are empty.
type SessionRenamed struct {
	Name string `json:"name"`
}

// SessionStarted is the payload of acp.session.started: the agent's own session.
type SessionStarted struct {
	Strategy     string            `json:"strategy"`
	Continued    string            `json:"continued,omitempty"` // "resume", "load": the agent knows the earlier turns
	Agent        *AgentName        `json:"agent,omitempty"`
	Capabilities json.RawMessage   `json:"capabilities"` // the agent's, as the protocol has them
	Mode         string            `json:"mode,omitempty"`
	Options      map[string]string `json:"options,omitempty"` // config options that were set
}

// AgentName is what an agent calls itself, in SessionStarted.
type AgentName struct {
	Meta    map[string]any `json:"_meta,omitempty"`
	Name    string         `json:"name"`
	Title   *string        `json:"title,omitempty"`
	Version string         `json:"version"`
}

// SessionClosed is the payload of acp.session.closed.
type SessionClosed struct {
	Requested bool   `json:"requested"` // whether the agent offers session/close
	Error     string `json:"error,omitempty"`
}
