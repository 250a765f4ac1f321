package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/provider/process"
	"github.com/perlica/perlica/provider/sandbox"
)

// Agent describes how to start and prepare one ACP agent.
type Agent struct {
	ID      string   // the provider's id: "claude"
	Command []string // argv; the first word is looked up on PATH
	Env     []string // names of additional environment variables that the agent gets
	Asking  Asking   // how Perlica makes the agent ask before it acts; the zero value leaves the agent as it is
	Orderly bool     // the agent is known to send nothing about a turn after the turn's answer
	Model   bool     // Perlica's own model agent: Perlica records its HTTP requests and allows them

	Sandbox *sandbox.Spec // the sandbox of its process; nil means that it has none
}

// Asking describes how Perlica puts an agent into the mode in which it asks before it acts. At most one of
// Mode and Option is set. Env is for agents that have no such mode and read a setting at their start.
type Asking struct {
	Mode   string   `json:"mode"`   // an id for session/set_mode
	Option string   `json:"option"` // a config option's id for session/set_config_option
	Value  string   `json:"value"`  // the value of Option
	Env    []string `json:"env"`    // NAME=value, added to the agent's environment by Agent.Environ

	// Stricter lists other modes, in which the agent may do less than in the asking mode.
	Stricter []string `json:"stricter,omitempty"`
}

// Environ returns the environment of an agent: the variables that process.Environ passes with a.Env, and the settings
// that make the agent ask. A setting is left out if a.Env names its variable and the parameter "parent" contains this
// variable.
func (a Agent) Environ(parent []string) ([]string, error) {
	env, err := process.Environ(parent, a.Env)
	if err != nil {
		return nil, err
	}
	for _, kv := range a.Asking.Env {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(env, func(set string) bool { return strings.HasPrefix(set, name+"=") }) {
			env = append(env, kv)
		}
	}
	return env, nil
}

// Launch starts the agent's process in the background, before Start is called. Start takes the result as
// Options.Launched, and its other options must be the same. Nothing is written to the process until then. The
// caller must call End of the result. The result is nil if the process cannot be described; Start then
// returns the reason.
func (a Agent) Launch(opt Options) *process.Launched {
	opt.setDefaults()
	spec, err := a.spec(opt)
	if err != nil {
		return nil
	}
	return process.Launch(spec)
}

// spec describes how to start the agent's process.
func (a Agent) spec(opt Options) (process.Spec, error) {
	environ, err := a.Environ(opt.Environ)
	return process.Spec{
		Agent: a.ID, Argv: a.Command, Env: environ, Dir: opt.Dir, Stderr: opt.Stderr, Redact: opt.Redact,
		Grace: opt.Grace, Limit: opt.Permissions, Sandbox: a.Sandbox, Connected: opt.Connected, Launched: opt.Launched,
	}, err
}

// Exit describes how an agent's process ended.
type Exit struct {
	Code   int    // -1 if a signal ended it
	Signal string // the name of that signal; empty without one
	Forced string // the strongest signal that Perlica sent after closing the input: "", "SIGTERM" or "SIGKILL"
	Rest   int    // the number of processes that the agent left running and that Perlica ended
	// Orphans describes the processes among Rest without the environment variable by which Perlica finds the agent's
	// processes. Each entry has the process number and the command line.
	Orphans []string
}

// Exit returns how the process ended. The value is complete after End has returned. ok is false while the
// process runs.
func (c *Conn) Exit() (e Exit, ok bool) {
	e.Code, e.Signal, ok = c.proc.ExitState()
	if !ok {
		return Exit{}, false
	}
	f := c.proc.Forced()
	switch {
	case f.Kill && e.Code != 0: // with code 0 the process ended by itself just before the signal
		e.Forced = "SIGKILL"
	case f.Term:
		e.Forced = "SIGTERM"
	}
	e.Rest = len(f.Rest)
	for _, s := range f.Rest {
		if s.Orphan {
			e.Orphans = append(e.Orphans, fmt.Sprintf("%d (%s)", s.PID, s.Command))
		}
	}
	return e, true
}

// String describes the exit in one line.
func (e Exit) String() string {
	s := fmt.Sprintf("left by itself with code %d", e.Code)
	switch {
	case e.Forced != "":
		s = "stayed when its input was closed; ended by " + e.Forced
	case e.Signal != "":
		s = "was ended by " + e.Signal
	}
	if e.Rest == 1 {
		s += "; 1 process that it left behind was ended too"
	} else if e.Rest > 1 {
		s += fmt.Sprintf("; %d processes that it left behind were ended too", e.Rest)
	}
	return s
}
