package fact

import "github.com/perlica/perlica/interaction"

// PolicyDecided is the payload of policy.decided: a rule or a mode answered instead of a
// person.
type PolicyDecided struct {
	Title    string `json:"title"`
	Effect   string `json:"effect"`
	By       string `json:"by"` // rule, mode, standing, tier
	Rule     any    `json:"rule,omitempty"`
	Approval string `json:"approval,omitempty"` // the id of the standing approval that answered
	Why      string `json:"why"`
	Option   string `json:"option,omitempty"`
}

// ReplySent is the payload of acp.reply.sent and acp.reply.failed: what the agent was answered.
type ReplySent struct {
	RequestID string `json:"request_id"`
	Outcome   string `json:"outcome"` // selected, cancelled
	Option    string `json:"option,omitempty"`
	Kind      string `json:"kind,omitempty"` // of the option
	By        string `json:"by"`
	Error     string `json:"error,omitempty"` // of acp.reply.failed
}

// Rejected is the payload of interaction.answer_rejected, as package interaction writes it.
type Rejected struct {
	interaction.Answer
	Why string `json:"why"`
}
