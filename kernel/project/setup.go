package project

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/policy"
)

// Choice has the choices of a front end's user. The session or the configuration replaces an empty field.
type Choice struct {
	// Provider is the id of an agent in the configuration or the registry.
	Provider string
	// Command is the command line of an agent. It replaces Provider.
	Command string
	// Env names additional environment variables that the agent gets.
	Env []string
	// Dir is the agent's absolute working directory.
	Dir         string
	Model, Mode string
	// Append follows the agent's own system prompt.
	Append string
	// AddDirs are further absolute root directories of the session.
	AddDirs []string
	// Servers are MCP servers in addition to the configured ones.
	Servers []acp.McpServer
	// Schema is the JSON Schema for the answer of a model provider. Nil allows any text.
	Schema json.RawMessage
	// RequireSandbox makes an agent without a sandbox an error.
	RequireSandbox bool
}

// ErrNoSandbox means that the choice requires a sandbox, and the agent has none.
var ErrNoSandbox = errors.New("--require-sandbox: the agent's sandbox is off; nothing was sent")

// A GoneError means that neither the configuration nor the registry knows the session's agent. Either the agent was
// started by a command line, or the configuration no longer mentions it.
type GoneError struct{ Provider string }

var (
	providerGone = message.New("project.provider-gone",
		"the session belongs to the agent %s, which is not known here")
	otherProvider = message.New("project.other-provider",
		"the session belongs to the agent %s, not to %s: a session stays with its agent")
)

// Tell returns the error's sentence.
func (e *GoneError) Tell() *message.Text { return providerGone.With(e.Provider) }

func (e *GoneError) Error() string { return e.Tell().Text }

// An OtherAgentError means that the session belongs to another agent than the chosen one.
type OtherAgentError struct{ Session, Chosen string }

// Tell returns the error's sentence.
func (e *OtherAgentError) Tell() *message.Text { return otherProvider.With(e.Session, e.Chosen) }

func (e *OtherAgentError) Error() string { return e.Tell().Text }

// Resolver returns a resolver for the agents that can be used here.
func (p *Project) Resolver() agents.Resolver {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return agents.Resolver{Config: p.Config, Self: self, LookPath: exec.LookPath, Attended: p.Attended}
}

// Agent returns the agent that the choice names. If it names none, Agent returns the session's agent or the default
// agent. The errors are *agents.Error, *GoneError, *OtherAgentError and ErrNoSandbox.
func (p *Project) Agent(c Choice, s sessions.Session) (agent agents.Agent, err error) {
	res := p.Resolver()
	switch {
	case c.Command != "":
		agent, err = res.AdHoc(c.Command)
	case c.Provider != "":
		agent, err = res.Named(c.Provider)
	case s.Provider != "":
		agent, err = res.Named(s.Provider)
		if unknown := (*agents.Error)(nil); errors.As(err, &unknown) && unknown.Unknown {
			err = &GoneError{s.Provider}
		}
	default:
		agent, err = res.Default()
	}
	if err == nil && s.Provider != "" && s.Provider != agent.ID {
		err = &OtherAgentError{s.Provider, agent.ID}
	}
	agent.Env = append(agent.Env, c.Env...)
	if err == nil && agent.Model {
		err = res.UseModel(&agent, c.Model, c.Schema, p.Dirs, p.environ)
	}
	if err == nil {
		agent.Sandbox = p.Sandbox(agent, append([]string{cmp.Or(c.Dir, p.Dir)}, c.AddDirs...))
		if agent.Sandbox == nil && c.RequireSandbox {
			err = ErrNoSandbox
		}
	}
	return agent, err
}

// environ returns a variable of the project's environment, or "". If the variable occurs several times, environ returns
// the last value.
func (p *Project) environ(name string) string {
	for _, kv := range slices.Backward(p.Environ) {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			return v
		}
	}
	return ""
}

// Setup returns the setup for an agent session that answers the inputs of the session s. An empty s means a new
// session.
func (p *Project) Setup(c Choice, agent agents.Agent, s sessions.Session) kernel.Setup {
	if agent.Model {
		c.Model = "" // the command line already names the model
	}
	earlier := s.Choice
	if c.Mode != "" {
		earlier.Mode, earlier.ModeName = "", ""
	}
	if c.Model != "" {
		earlier.Model = ""
	}
	return kernel.Setup{
		Earlier: earlier,
		Agent:   agent, Session: s.ID, Dir: cmp.Or(c.Dir, p.Dir), Model: c.Model, Mode: cmp.Or(c.Mode, agent.Mode),
		Servers: p.Servers(), System: p.Config.SystemPrompt, Append: c.Append, AddDirs: c.AddDirs, Extra: c.Servers,
		Budget: p.budget(agent.ID),
		Home:   p.Dirs.Home, Temp: TempDirs(), Limit: policy.Mode(p.Config.Permissions),
	}
}

// Conversation returns the setup for a conversation in the session id. If the session has no turn yet, provider is the
// id of the agent. In a conversation, Perlica can ask a person.
func (p *Project) Conversation(ctx context.Context, r *kernel.Runner, id event.SessionID,
	provider string) (kernel.Setup, error) {
	s, err := findSession(ctx, r, id)
	if err != nil {
		return kernel.Setup{}, err
	}
	var c Choice
	if s.Provider == "" {
		c.Provider = provider
	}
	agent, err := p.Agent(c, s)
	if err != nil {
		return kernel.Setup{}, err
	}
	setup := p.Setup(c, agent, s)
	setup.Forms, setup.Notices = p.Mode() != policy.ModeDeny, true
	setup.Limit = p.Mode()
	return setup, nil
}

// Mode returns the permission mode of front ends that can ask a person.
func (p *Project) Mode() policy.Mode {
	return cmp.Or(policy.Mode(p.Config.Permissions), policy.ModeAsk)
}

// Answering returns the permission mode, and the time for which questions stay open. The parameter "present" says
// that a person can be asked here. The parameter "wait" is the time for answers from other front ends. If nobody can
// answer, the time is 0.
func (p *Project) Answering(present bool, wait time.Duration) (policy.Mode, time.Duration) {
	mode := p.Mode()
	switch {
	case mode == policy.ModeDeny:
		return mode, 0
	case wait > 0:
		return mode, wait
	case present:
		return mode, p.Config.AnswerTimeout
	}
	return mode, 0
}

// defaultWindow is the context window, in tokens, that Perlica assumes for an unknown agent.
const defaultWindow = 200_000

// budget returns the maximum number of tokens that the transcript in a prompt may have.
func (p *Project) budget(agent string) int {
	return int(float64(cmp.Or(p.Config.ContextWindows[agent], defaultWindow)) * p.Config.BudgetRatio)
}

// TempDirs returns the directories for temporary files, to which any process may write.
func TempDirs() []string {
	dirs := []string{os.TempDir()}
	if os.PathSeparator == '/' && os.TempDir() != "/tmp" {
		dirs = append(dirs, "/tmp")
	}
	return dirs
}

// Servers returns the configured MCP servers as ACP describes them.
func (p *Project) Servers() []acp.McpServer {
	servers := []acp.McpServer{}
	for _, s := range p.Config.MCPServers {
		servers = append(servers, server(s))
	}
	return servers
}

func server(s config.MCPServer) acp.McpServer {
	switch s.Type {
	case "http":
		return acp.McpServer{Http: &acp.McpServerHttpInline{Name: s.Name, Type: "http", Url: s.URL,
			Headers: headers(s.Headers)}}
	case "sse":
		return acp.McpServer{Sse: &acp.McpServerSseInline{Name: s.Name, Type: "sse", Url: s.URL, Headers: headers(s.Headers)}}
	}
	env := []acp.EnvVariable{}
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, acp.EnvVariable{Name: k, Value: s.Env[k]})
	}
	return acp.McpServer{Stdio: &acp.McpServerStdio{Name: s.Name, Command: s.Command, Args: append([]string{}, s.Args...),
		Env: env}}
}

func headers(m map[string]string) []acp.HttpHeader {
	list := []acp.HttpHeader{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, acp.HttpHeader{Name: k, Value: m[k]})
	}
	return list
}
