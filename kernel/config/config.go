// Package config turns files, environment, flags and trust into one checked value.
//
// It promises that every value says where it came from, that several mistakes are
// reported at once with file, line and the nearest valid key, and that a project
// file, which comes with the repository, can only tighten until a person has
// trusted exactly these bytes. It refuses to guess: an unknown key or a bad value is
// an error, never a default. It starts nothing, opens no log and reads nothing
// ambient: directories, environment and flags are handed in.
//
// The one idea a reader needs: there is one table of keys (keys.go). Decoding,
// defaults, names of environment variables, trust, the file `perlica init` writes
// and docs/configuration.md are all read off it.
package config

import (
	"time"

	"github.com/perlica/perlica/policy"
)

// Config is the whole configuration after all layers: flags over environment over
// project file over user file over defaults. It is not changed after Load.
type Config struct {
	DefaultProvider  string        // "" means: the first installed agent of the registry
	ContextID        string        // the set of databases; a valid context name
	Permissions      string        // ask, reads, deny or allow; "" means: by terminal
	StreamSync       bool          // what the agent says is on disk before it is shown
	Redact           []string      // regular expressions of what is masked, beside what always is
	RedactBeforeHash bool          // on the log, too
	AnswerTimeout    time.Duration // how long a question stays open; then no
	BudgetRatio      float64       // the share of a context window that history may fill
	ContextWindows   map[string]int
	Logs             Logs
	Chat             Chat
	Editor           struct{ ClientTools, Mode, Answers string }          // of perlica acp: refuse or judge; ask or leave; ordinary, asked or none
	Web              struct{ Listen, PublicURL, Cert, Key, Proxy string } // of perlica web; "" means: none, and the usual address
	Team             struct {                                             // of a team of machines; "" means: none
		URL      string            // of its hub, a connection string
		Default  bool              // inputs of run go there
		Projects map[string]string // the directories of the projects that are served here, by name
	}
	Providers    map[string]Provider // those any layer mentions; see Provider
	MCPServers   []MCPServer         // user file first, then project file
	Rules        []policy.Rule       // user file first, then project file, in order
	SystemPrompt string              // prompts/system.md, once trusted
	Service      Service

	Project  Project
	Withheld []string // what the project file may not do before it is trusted, a line each
	Notes    []string // reserved keys that are set and do nothing, a line each
	Warnings []string // what is accepted and probably not meant, a line each

	settings []setting
}

// Project is what Load found in the workspace.
type Project struct {
	Digest  string `json:"digest"`  // of config.toml and prompts/system.md as read; "" when there is neither
	Trusted bool   `json:"trusted"` // by `perlica config trust` or PERLICA_TRUST_PROJECT
}

// Logs are the limits of the debug trail.
type Logs struct {
	MaxSizeMB  int
	MaxFiles   int
	MaxTotalMB int
	Level      string
}

// Chat is how the chat behaves.
type Chat struct {
	Idle     time.Duration // an agent that has nothing to do is ended after this
	Notify   string        // off, bell or osc9
	Thoughts bool          // they are shown
	Queue    bool          // Enter during a turn queues the next input
}

// Service is the configuration of the messaging bridge.
type Service struct {
	Channels map[string]bool // that any layer mentions; local is served unless it is false
	Telegram Telegram
	Webhook  Webhook
	IMessage IMessage
	Language string        // in which those are spoken to who have chosen none
	Ack      string        // "" means: none
	Stream   bool          // an answer is shown as it comes
	Team     bool          // the questions of a team's workers are asked
	Agents   int           // that live at a time
	Idle     time.Duration // after which an agent is ended
	MaxAge   time.Duration // of a message that is answered
	Grace    time.Duration // of a turn when the bridge stops
	Web      string        // where the page is served, too; "": it is not
}

// Telegram is what the channel of that name needs. "" means: as the channel has it.
type Telegram struct {
	Token   Secret
	BaseURL string
}

// Webhook is what the channel of that name needs. "" and 0 mean: as the channel has it.
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

// IMessage is what the channel of that name needs. "" means: as the channel has it.
type IMessage struct {
	Command string
	SMS     bool
}

// Provider is the configuration of one agent.
type Provider struct {
	ID             string
	Enabled        bool
	Command        string   // "" means: as the registry has it
	Args           []string // nil means: as the registry has it; empty means no arguments
	Env            []string // names of further variables handed to the agent
	ConnectTimeout time.Duration
	RequestTimeout time.Duration
	MaxLineBytes   int
	Mode           string   // "" is the registry's asking mode, "none" leaves the agent as it is
	Model          struct { // of a model without an agent; "" means: as the registry has it, or none
		API        string // empty, and unknown to the registry: the provider is an agent
		Name       string
		BaseURL    string
		Proxy      string
		Blind      bool
		Key        Secret
		KeyCommand []string       // a program that prints the key, and its arguments; nil means: Key
		Options    map[string]any // members of the request's body
		Price      map[string]any // nil: unknown
	}
}

// MCPServer is one [[mcp.servers]], handed to the agent in session/new.
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

// Provider returns the configuration of a provider, which is the defaults when no
// layer mentions it.
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
