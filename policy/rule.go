package policy

// Effect is what a rule or a decision says.
type Effect string

// The three effects, in the order in which rules are consulted: a matching deny
// wins over a matching ask, and that over a matching allow.
const (
	Deny  Effect = "deny"
	Ask   Effect = "ask"
	Allow Effect = "allow"
)

// Rule is one [[policy.rule]] of the configuration. A field that is empty matches
// everything; all the fields that are set must match.
type Rule struct {
	Effect   Effect   `toml:"effect" json:"effect"`
	Provider string   `toml:"provider" json:"provider,omitempty"` // provider id
	Kind     []string `toml:"kind" json:"kind,omitempty"`         // ACP tool kinds
	Path     string   `toml:"path" json:"path,omitempty"`         // "inside", "outside", or a glob
	Command  string   `toml:"command" json:"command,omitempty"`   // words; * is one word, ... the rest
	Reason   string   `toml:"reason" json:"reason,omitempty"`     // shown to whoever wonders

	// Origin names the file and line the rule was read from.
	Origin string `toml:"-" json:"origin,omitempty"`
}
