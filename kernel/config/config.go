// Package config turns files, environment, flags and trust into one checked value.
//
// Every value names its origin. The package reports several mistakes at once, with file, line and the nearest valid
// key. A project file comes with the repository, so it can only tighten the settings until a person has trusted
// exactly its bytes. An unknown key or a bad value is an error and never becomes a default. The package starts
// nothing, opens no log and reads no global state: the caller passes directories, environment and flags.
//
// The main idea is one table of keys (keys.go). Decoding, defaults, names of environment variables, trust, the file
// of `perlica init` and docs/configuration.md all come from this table.
package config

import (
	"time"

	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider/sandbox"
)

// Config is the whole configuration after all layers: flags over environment over project file over user file over
// defaults. Config does not change after Load.
type Config struct {
	// DefaultProvider is "" for the first installed agent of the registry.
	DefaultProvider string
	// ContextID is a valid context name. It selects the set of databases.
	ContextID string
	// Permissions is ask, reads, deny or allow. "" lets the terminal decide.
	Permissions string
	// StreamSync syncs the agent's output to disk before it is shown.
	StreamSync bool
	// Redact holds regular expressions of texts to mask, in addition to the built-in ones.
	Redact []string
	// RedactBeforeHash masks the texts on the log too.
	RedactBeforeHash bool
	// AnswerTimeout is the time after which an open question counts as a no.
	AnswerTimeout time.Duration
	// BudgetRatio is the share of a context window that history may fill.
	BudgetRatio    float64
	ContextWindows map[string]int
	Logs           Logs
	Chat           Chat
	// Editor is for perlica acp. ClientTools is refuse or judge. Mode is ask or leave. Answers is ordinary, asked
	// or none.
	Editor struct{ ClientTools, Mode, Answers string }
	// Web is for perlica web. "" means the usual address, or that the setting is absent.
	Web struct{ Listen, PublicURL, Cert, Key, Proxy string }
	// Team is for a team of machines. An empty URL means that there is no team.
	Team struct {
		// URL is the connection string of the hub.
		URL string
		// Default sends the inputs of run to the team.
		Default bool
		// Projects maps the names of the projects that this machine serves to their directories.
		Projects map[string]string
	}
	// Providers holds the providers that any layer mentions; see Provider.
	Providers  map[string]Provider
	MCPServers []MCPServer   // user file first, then project file
	Rules      []policy.Rule // user file first, then project file, in order
	// SystemPrompt is the text of prompts/system.md, once it is trusted.
	SystemPrompt string
	Service      Service

	// Sandbox is the sandbox of agents. SandboxWrite lists further places to which they may write.
	Sandbox      sandbox.Mode
	SandboxWrite []string
	// SandboxHosts are the hosts of agents in the sandbox offline. Nil means those of the registry.
	SandboxHosts []string

	Project Project
	// Withheld lists the settings of the project file that need trust first, one per line.
	Withheld []string
	// Notes lists reserved keys that are set and have no effect, one per line.
	Notes []string
	// Warnings lists settings that are valid and probably not intended, one per line.
	Warnings []string

	settings []setting
}

// Project describes the project files that Load found in the workspace.
type Project struct {
	// Digest is the digest of config.toml and prompts/system.md as Load read them. It is "" if both are absent.
	Digest string `json:"digest"`
	// Trusted says that `perlica config trust` or PERLICA_TRUST_PROJECT trusts the digest.
	Trusted bool `json:"trusted"`
}

// Logs are the limits of the debug trail.
type Logs struct {
	MaxSizeMB  int
	MaxFiles   int
	MaxTotalMB int
	Level      string
}

// Chat is the configuration of the chat.
type Chat struct {
	// Idle is the time after which an idle agent is ended.
	Idle time.Duration
	// Notify is off, bell or osc9.
	Notify string
	// Thoughts shows the agent's thoughts.
	Thoughts bool
	// Queue lets Enter during a turn queue the next input.
	Queue bool
}

// Service is the configuration of the messaging bridge.
type Service struct {
	// Channels holds the channels that any layer mentions. The bridge serves local unless it is false.
	Channels map[string]bool
	Telegram Telegram
	Webhook  Webhook
	IMessage IMessage
	// Language is the language for contacts that have not chosen one.
	Language string
	// Ack is the acknowledgement of a message. "" means no acknowledgement.
	Ack string
	// Stream shows an answer while it arrives.
	Stream bool
	// Team lets the bridge ask the questions of a team's workers.
	Team bool
	// Agents is the maximum number of agents that run at the same time.
	Agents int
	// Idle is the time after which an idle agent is ended.
	Idle time.Duration
	// MaxAge is the maximum age of a message that gets an answer.
	MaxAge time.Duration
	// Grace is the time that a turn has to finish when the bridge stops.
	Grace time.Duration
	// Web is the address on which the bridge also serves the page. "" turns the page off.
	Web string
}

// Telegram is the configuration of the channel of that name. "" means the channel's default.
type Telegram struct {
	Token   Secret
	BaseURL string
}

// Webhook is the configuration of the channel of that name. "" and 0 mean the channel's default.
type Webhook struct {
	Secret      Secret
	ReplyURL    string
	Listen      string
	AllowRemote bool
	Format      string
	TextLimit   int
	Buttons     bool
	Dedupes     bool
}

// IMessage is the configuration of the channel of that name. "" means the channel's default.
type IMessage struct {
	Command string
	SMS     bool
}

// Provider is the configuration of one agent.
type Provider struct {
	ID      string
	Enabled bool
	// Command is the program. "" means the registry's program.
	Command string
	// Args are the arguments of Command. Nil means the registry's arguments, and empty means no arguments.
	Args []string
	// Env names further variables that the agent gets.
	Env            []string
	ConnectTimeout time.Duration
	RequestTimeout time.Duration
	MaxLineBytes   int
	// Mode is the agent's mode. "" is the registry's asking mode, and "none" leaves the agent in its first mode.
	Mode string
	// Sandbox is the sandbox of this agent, if it is stricter than Config.Sandbox.
	Sandbox sandbox.Mode
	// SandboxHosts replaces Config.SandboxHosts for this agent if it is not nil.
	SandboxHosts []string
	// Model is for a model without an agent. "" means the registry's value, if it has one.
	Model struct {
		// API is the protocol of the model. If the registry has none either, the provider is an agent.
		API     string
		Name    string
		BaseURL string
		Proxy   string
		Blind   bool
		Key     Secret
		// KeyCommand is a program, with its arguments, that prints the key. Nil means that Key is used.
		KeyCommand []string
		// Options are members of the request's body.
		Options map[string]any
		// Price is nil if the price is unknown.
		Price map[string]any
	}
}

// MCPServer is one [[mcp.servers]]. The agent gets it in session/new.
type MCPServer struct {
	Name    string            `json:"-"`
	Type    string            `json:"type"` // stdio, http or sse
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Origin  string            `json:"-"` // file:line
}

// Provider returns the configuration of a provider. It returns the defaults if no layer mentions the provider.
func (c *Config) Provider(id string) Provider {
	if p, ok := c.Providers[id]; ok {
		return p
	}
	p := Provider{ID: id}
	for i := range table {
		if row := &table[i]; row.section() == providerSection && row.def != nil {
			row.store(target{provider: &p}, row.def)
		}
	}
	return p
}
