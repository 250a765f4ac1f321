// Package agents finds the configured and the known agents, probes them, and sets their mode and their model. A probe
// sends no prompt.
//
// The package makes no call and records nothing. It decides nothing about the permissions of an agent.
package agents

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"
	"mvdan.cc/sh/v3/shell"
	"mvdan.cc/sh/v3/syntax"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/registry"
)

// Agent is an agent together with its settings from the configuration.
type Agent struct {
	provider.Agent
	// Mode is the configured mode. Empty means the asking mode.
	Mode           string
	ConnectTimeout time.Duration
	RequestTimeout time.Duration
	MaxLine        int // bytes
	// Why is a sentence about the automatic choice of this agent. It is empty if a person named the agent.
	Why string
}

// Predictable is the id of the built-in agent.
const Predictable = "predictable"

// An Error means that an agent cannot be used. It names the reason and the next step.
type Error struct {
	ID   string
	Why  string
	Hint string
	message.Coded
	// Unknown means that neither the configuration nor the registry has the id.
	Unknown bool
	// State is the agent's state if the registry knows the agent and its program was not found.
	State State
}

func newError(id string, why *message.Text, hint string) *Error {
	return &Error{ID: id, Why: why.Text, Coded: why.Coded, Hint: hint}
}

// Tell returns the error's sentence with its code.
func (e *Error) Tell() *message.Text { return &message.Text{Text: e.Why, Coded: e.Coded} }

func (e *Error) Error() string { return e.Why }

// Resolver finds agents. Self is the path of the perlica executable. LookPath finds programs, as exec.LookPath does.
// Attended means that a person reads the notices. Only then the built-in agent may be the default: a script would
// mistake its echo for an answer.
type Resolver struct {
	Config   *config.Config
	Self     string
	LookPath func(string) (string, error)
	Attended bool
}

// Find returns the path of a program. If "name" is registry.Self, which means Perlica itself, Find returns Self.
func (r Resolver) Find(name string) (string, error) {
	if name == registry.Self {
		return r.Self, nil
	}
	return r.LookPath(name)
}

// Default returns the provider that the configuration names. Without such a provider, Default returns
// the first installed agent of the registry. If no agent is installed, Default returns the built-in
// agent when r is attended, and otherwise an *Error.
func (r Resolver) Default() (Agent, error) {
	if id := r.Config.DefaultProvider; id != "" {
		return r.Named(id)
	}
	for _, k := range registry.All() {
		if k.Model != nil || k.ID == Predictable {
			continue // A key in the environment must not turn a first try into a paid call.
		}
		if a, err := r.Named(k.ID); err == nil {
			a.Why = k.Name + " is the first installed agent that Perlica knows"
			return a, nil
		}
	}
	a, err := r.Named(Predictable)
	switch {
	case err != nil:
		return Agent{}, newError("", allDisabled, "see 'perlica config show'")
	case !r.Attended:
		return Agent{}, &Error{
			Why: "no agent was chosen, and no agent that Perlica knows is installed",
			Hint: "choose one with --provider NAME: 'perlica provider list' names all and how to install them; " +
				"--provider predictable is the built-in agent, which only echoes",
		}
	}
	a.Why = "no agent that Perlica knows is installed, so the built-in agent answers: it only echoes; " +
		"'perlica provider list' shows how to install an agent"
	return a, nil
}

// Named returns the provider with this id, from the configuration or the registry.
func (r Resolver) Named(id string) (Agent, error) {
	c := r.Config.Provider(id)
	known, isKnown := registry.Lookup(id)
	if !c.Enabled {
		return Agent{}, newError(id, disabledAgent.With(id), "set providers."+id+".enabled = true")
	}
	a := Agent{
		Agent: provider.Agent{ID: id},
		Mode:  c.Mode, ConnectTimeout: c.ConnectTimeout, RequestTimeout: c.RequestTimeout, MaxLine: c.MaxLineBytes,
	}
	if isKnown {
		a.Agent = known.Agent(nil)
	}
	a.Env = append(a.Env, c.Env...)
	switch c := withModel(c, known); {
	case c.Command != "":
		a.Command = append([]string{c.Command}, c.Args...)
	case c.Model.API != "":
		if err := r.model(&a, c); err != nil {
			return Agent{}, err
		}
	case isKnown:
		argv, ok := known.Find(r.Find)
		if !ok {
			return Agent{}, r.missing(known)
		}
		if c.Args != nil {
			argv = append(argv[:1], c.Args...)
		}
		a.Command = argv
	default:
		e := newError(id, noProvider.With(id), "see 'perlica provider list'")
		e.Unknown = true
		if near := registry.Nearest(id, slices.Collect(maps.Keys(r.Config.Providers))...); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return Agent{}, e
	}
	return a, nil
}

// missing returns an error with the reason why the program of a registry's agent was not found.
func (r Resolver) missing(k registry.Known) *Error {
	e := newError(k.ID, notInstalled.With(k.Name), "install it: "+k.Install)
	e.State = Missing
	if _, err := r.Find(k.Program); k.Program != "" && err == nil {
		e.State = NeedsAdapter
		e.Why = fmt.Sprintf("'%s' is on PATH, but it does not speak the Agent Client Protocol, and its adapter %s is missing",
			k.Program, k.Commands[0][0])
		e.Hint = "install the adapter: " + k.Install
	}
	if k.Installer() != nil {
		e.Hint += ", or 'perlica provider install " + k.ID + "'"
	}
	return e
}

// AskingOf returns the settings that make an agent ask before it acts. The parameter "info" is the agent's
// introduction of itself. If the registry knows settings for this name, AskingOf returns them, and otherwise the
// settings of a.
func (a Agent) AskingOf(info *acp.Implementation) provider.Asking {
	if k := a.Known(info); info != nil && (k.Asking.Mode != "" || k.Asking.Option != "") {
		return provider.Asking{Env: a.Asking.Env, Mode: k.Asking.Mode, Option: k.Asking.Option, Value: k.Asking.Value,
			Stricter: k.Asking.Stricter}
	}
	return a.Asking
}

// TakesAppend reports whether an agent with this introduction accepts a text for its system prompt as
// _meta.systemPrompt.append.
func (a Agent) TakesAppend(info *acp.Implementation) bool { return a.Known(info).Append }

// CountsSession reports whether an agent with this introduction reports the usage of the whole session after each turn.
// Other agents report the usage of the turn.
func (a Agent) CountsSession(info *acp.Implementation) bool { return a.Known(info).Sums }

// Known returns the registry's entry for the name in an agent's introduction. Without such an entry, Known looks up the
// agent's id. The command that started the agent does not matter.
func (a Agent) Known(info *acp.Implementation) registry.Known {
	if info != nil {
		if k, ok := registry.Introduced(info.Name); ok {
			return k
		}
	}
	k, _ := registry.Lookup(a.ID)
	return k
}

// HeldBack returns the names of set variables that hold a credential and are not passed to the agent. For any agent
// these are the variables in loginVars. If the registry does not know the agent, they are also the key variables of all
// known agents.
func (a Agent) HeldBack(environ, loginVars []string) (names []string) {
	_, known := registry.Lookup(a.ID)
	given, err := a.Environ(environ)
	if err != nil {
		return nil
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		secret := strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN")
		meant := slices.Contains(loginVars, name) || !known && secret && registry.Uses(name)
		if meant && value != "" && !slices.Contains(given, kv) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// CommandLine quotes the arguments for a shell, so that AdHoc can split the line into the same arguments. It returns an
// empty string if a shell cannot express an argument.
func CommandLine(argv []string) string {
	var words []string
	for _, arg := range argv {
		q, err := syntax.Quote(arg, syntax.LangBash)
		if err != nil {
			return ""
		}
		words = append(words, q)
	}
	return strings.Join(words, " ")
}

// AdHoc returns an agent for a command line. AdHoc splits the line like a shell and runs it without a shell. The id
// of the agent is the name of the program.
func (r Resolver) AdHoc(command string) (Agent, error) {
	argv, err := shell.Fields(command, nil)
	if err == nil && len(argv) == 0 {
		err = errors.New("the command is empty")
	}
	if err != nil {
		return Agent{}, &Error{Why: fmt.Sprintf("the agent's command line %q cannot be read: %v", command, err)}
	}
	id := filepath.Base(argv[0])
	c := r.Config.Provider("")
	return Agent{
		Agent:          provider.Agent{ID: id, Command: argv},
		ConnectTimeout: c.ConnectTimeout, RequestTimeout: c.RequestTimeout, MaxLine: c.MaxLineBytes,
	}, nil
}
