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
	// DefaultProvider is the id of the default provider. "" means the first installed agent of the registry.
	DefaultProvider string
	// ContextID is a valid name of a context. The context selects the set of databases.
	ContextID string
	// Permissions is ask, reads, deny or allow. "" means that the command chooses, depending on the terminal.
	Permissions string
	// StreamSync means that the agent's output is on disk before it is shown.
	StreamSync bool
	// RecordGit is the setting of record.git. It is nil if the setting is absent.
	RecordGit *bool
	// Redact holds regular expressions of texts to mask, in addition to the built-in ones.
	Redact []string
	// RedactBeforeHash means that secrets are masked before an event is hashed and written. Otherwise they are on the
	// log, and only exports and the debug trail mask them.
	RedactBeforeHash bool
	// AnswerTimeout is the time after which an open question counts as a no.
	AnswerTimeout time.Duration
	// BudgetRatio is the share of a model's context window that the transcript of earlier turns may fill.
	BudgetRatio    float64
	ContextWindows map[string]int
	Logs           Logs
	Chat           Chat
	// Editor is for perlica acp. ClientTools is "refuse" or "judge". Mode is "ask" or "leave". Answers is "ordinary",
	// "asked" or "none".
	Editor struct{ ClientTools, Mode, Answers string }
	// Web is for perlica web. "" means that a setting is absent. An absent Listen means the usual address.
	Web struct{ Listen, PublicURL, Cert, Key, Proxy string }
	// Team is for a team of machines. An empty URL means that there is no team.
	Team struct {
		// URL is the connection string of the hub.
		URL string
		// Default means that 'perlica run' and the chat send their inputs to the team.
		Default bool
		// Projects maps the names of the projects that this machine serves to their directories.
		Projects map[string]string
	}
	// Providers holds the providers that any layer mentions; see Provider.
	Providers  map[string]Provider
	MCPServers []MCPServer   // user file first, then project file
	Rules      []policy.Rule // user file first, then project file, in order
	Programs   []PolicyProgram
	Schedules  []Schedule
	Budgets    []Budget
	Hooks      []Hook
	Notify     []Notify
	SMTP       SMTP
	// SystemPrompt is the text of prompts/system.md. It is empty until the text is trusted.
	SystemPrompt string
	Service      Service

	// Sandbox is the sandbox of agents. SandboxWrite lists further paths that agents may write to.
	Sandbox      sandbox.Mode
	SandboxWrite []string
	// SandboxHosts are the hosts that agents in the sandbox mode offline may connect to. Nil means the registry's hosts.
	SandboxHosts []string

	Project Project
	// Withheld lists the settings of the project file that have no effect before the project is trusted, one per line.
	Withheld []string
	// Notes lists the reserved keys that the files set without effect, one per line.
	Notes []string
	// Warnings lists settings that are valid but probably not intended, one per line.
	Warnings []string

	settings []setting
}

// Project describes the project files that Load found in the workspace.
type Project struct {
	// Digest is the digest of config.toml and prompts/system.md as Load found them. It is "" if both are absent.
	Digest string `json:"digest"`
	// Trusted means that `perlica config trust` or PERLICA_TRUST_PROJECT trusts the digest.
	Trusted bool `json:"trusted"`
	// Once means that PERLICA_TRUST_PROJECT trusts the digest. The trust covers the present bytes of the programs, too.
	Once bool `json:"-"`
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
	// Idle is the time of inactivity after which the chat ends an agent.
	Idle time.Duration
	// Notify is off, bell or osc9.
	Notify string
	// Thoughts means that the chat shows the agent's thoughts.
	Thoughts bool
	// Queue means that Enter during a turn queues the typed text as the next input.
	Queue bool
}

// Service is the configuration of the messaging bridge.
type Service struct {
	// Channels has true for each channel that the bridge serves, and false for each channel that the configuration turns
	// off. The bridge also serves "local" if Channels does not have it.
	Channels map[string]bool
	Telegram Telegram
	Slack    Slack
	Discord  Discord
	Feishu   Feishu
	Webhook  Webhook
	IMessage IMessage
	Email    Email
	Matrix   Matrix
	Ntfy     Ntfy
	// Language is the language for contacts that have chosen none.
	Language string
	// Ack is the text that acknowledges a message. "" means no acknowledgement.
	Ack string
	// Stream means that the bridge shows an answer while it arrives.
	Stream bool
	// Team means that the bridge shows its contacts the questions of a team's workers.
	Team bool
	// Agents is the maximum number of agents that run at the same time.
	Agents int
	// Idle is the time of inactivity after which the bridge ends an agent.
	Idle time.Duration
	// MaxAge is the age of a message above which the bridge does not answer it.
	MaxAge time.Duration
	// Grace is the time that a turn has to finish after the bridge was told to stop.
	Grace time.Duration
	// Web is the address at which the bridge also serves the web page. "" means no page.
	Web string
}

// Telegram is the configuration of the channel "telegram". "" means the channel's default.
type Telegram struct {
	Token   Secret
	BaseURL string
}

// Slack is the configuration of the channel "slack". "" means the channel's default.
type Slack struct {
	AppToken Secret
	BotToken Secret
	BaseURL  string
}

// Discord is the configuration of the channel "discord". "" means the channel's default.
type Discord struct {
	Token   Secret
	BaseURL string
}

// Feishu is the configuration of the channel "feishu". "" means the channel's default.
type Feishu struct {
	AppID   string
	Secret  Secret
	BaseURL string
}

// Webhook is the configuration of the channel "webhook". "" and 0 mean the channel's default.
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

// IMessage is the configuration of the channel "imessage". "" means the channel's default.
type IMessage struct {
	Command string
	SMS     bool
}

// Matrix is the configuration of the channel "matrix". "" means the channel's default.
type Matrix struct {
	Server string
	Token  Secret
	Allow  []string
}

// Ntfy is the configuration of the channel "ntfy". "" means the channel's default.
type Ntfy struct {
	Server       string
	Topic, Token Secret
}

// Email is the configuration of the channel "email". "" means the channel's default. The servers are host names, each
// with a port if it is not the usual one.
type Email struct {
	Address  string
	IMAP     string
	SMTP     string
	User     string
	Password Secret
	Key      Secret
}

// Provider is the configuration of one agent.
type Provider struct {
	ID      string
	Enabled bool
	// Command is the program. "" means the registry's program.
	Command string
	// Args are the arguments of Command. Nil means the registry's arguments, and empty means no arguments.
	Args []string
	// Env names further environment variables that the agent gets.
	Env            []string
	ConnectTimeout time.Duration
	RequestTimeout time.Duration
	MaxLineBytes   int
	// Mode is the agent's mode. "" means the registry's asking mode, and "none" leaves the agent in its first mode.
	Mode string
	// Sandbox is the sandbox of this agent. It has an effect only if it is stricter than Config.Sandbox.
	Sandbox sandbox.Mode
	// SandboxHosts replaces Config.SandboxHosts for this agent if it is not nil.
	SandboxHosts []string
	// Model describes a model that Perlica calls without an agent. "" means the registry's value, if it has one.
	Model struct {
		// API is the protocol of the model. If neither the files nor the registry name it, the provider is an agent.
		API     string
		Name    string
		BaseURL string
		Proxy   string
		Blind   bool
		Key     Secret
		// KeyCommand is a program, with its arguments, that prints the key. Nil means that Key is used.
		KeyCommand []string
		// Options are additional members of the request's JSON body.
		Options map[string]any
		// Price is nil if the price is unknown.
		Price map[string]any
	}
}

// MCPServer is one [[mcp.servers]] table. The agent gets it in session/new.
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

// PolicyProgram is one [[policy.program]] table: a program that judges a request before a person is asked.
type PolicyProgram struct {
	Command []string
	Timeout time.Duration
	Origin  string // file:line
	Folder  string // the folder from which a relative path in Command starts
}

// Schedule is one [[schedule]] table. Exactly one of Cron and Every is set, and exactly one of Text and Flow. "" and 0
// mean that the other keys are absent.
type Schedule struct {
	ID, Cron    string
	Every       time.Duration
	Timezone    string
	Text, Flow  string
	Inputs      map[string]string
	Provider    string
	Permissions string
	Missed      string
	Overlap     string
	Jitter      time.Duration
	Origin      string // file:line
}

// Budget is one [[budget]] table. A nil limit or an empty condition means that the table does not have this key.
type Budget struct {
	Per           string
	Calls, Tokens *int
	Money         string // such as "20 EUR"

	Provider, Schedule, Flow, Contact, Project string

	Timezone, Scope, Unknown string
	Stop                     bool
	Origin                   string // file:line
}

// Hook is one [[hook]] table: a program that gets events.
type Hook struct {
	On      []string // types of events
	Command []string
	Timeout time.Duration
	Origin  string // file:line
	Folder  string // the folder from which a relative path in Command starts
}

// Notify is one [[notify]] table.
type Notify struct {
	When    []string
	To      string
	After   time.Duration
	Content bool
	Secret  Secret
	Origin  string // file:line
}

// SMTP is the user's server for mail. "" and 0 mean that a setting is absent. TLS is "starttls", "implicit" or "none".
type SMTP struct {
	Host, User, From, TLS string
	Port                  int
	Secret                Secret
}

// Provider returns the configuration of the provider with this id. If no layer mentions it, Provider returns the
// defaults.
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

// RecordsTree reports whether the state of the git work tree is recorded around each turn.
func (c *Config) RecordsTree() bool {
	if c.RecordGit != nil {
		return *c.RecordGit
	}
	return c.Project.Trusted
}
