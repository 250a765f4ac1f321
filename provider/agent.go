package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/provider/process"
)

// Agent says how one ACP agent is started and prepared.
type Agent struct {
	ID      string   // the provider's id: "claude"
	Command []string // argv; the first word is looked up on PATH
	Env     []string // names of further variables of the environment handed to the agent
	Asking  Asking   // the mode in which the agent asks; zero: leave the agent as it is
	Orderly bool     // it is known to say nothing of a turn behind its answer
	Model   bool     // it is Perlica's own that asks a model: its HTTP requests are agreed to, and recorded
}

// Asking is how an agent is put into the mode in which it asks before it acts.
// At most one of Mode and Option is set. Env is for agents that know no such mode
// but can be told when they start.
type Asking struct {
	Mode   string   `json:"mode"`   // an id for session/set_mode
	Option string   `json:"option"` // a config option's id for session/set_config_option
	Value  string   `json:"value"`  // the value of Option
	Env    []string `json:"env"`    // NAME=value, added to the agent's environment by Agent.Environ

	// Stricter are further modes, in which the agent does less than where it asks.
	Stricter []string `json:"stricter,omitempty"`
}

// Environ returns the environment of an agent: what process.Environ passes with a.Env, and
// the settings that make it ask, unless a.Env names one that parent sets.
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

// Launch begins to start the agent's process ahead of Start, in the background. Start takes it as
// Options.Launched; its other options must be the same. Nothing is written to the process before. The
// caller must call End of what is returned. It is nil where Start will say why there can be no process.
func (a Agent) Launch(opt Options) *process.Launched {
	opt.defaults()
	spec, err := a.spec(opt)
	if err != nil {
		return nil
	}
	return process.Launch(spec)
}

// spec is how the agent's process is started.
func (a Agent) spec(opt Options) (process.Spec, error) {
	environ, err := a.Environ(opt.Environ)
	return process.Spec{
		Agent: a.ID, Argv: a.Command, Env: environ, Dir: opt.Dir, Stderr: opt.Stderr, Redact: opt.Redact,
		Grace: opt.Grace, Limit: opt.Permissions, Launched: opt.Launched,
	}, err
}

// Exit says how an agent's process ended.
type Exit struct {
	Code   int    // -1 if a signal ended it
	Signal string // that signal; empty if none did
	Forced string // what it took beyond closing its input: "", "SIGTERM" or "SIGKILL"
	Rest   int    // processes that it left behind and that were ended too
	// Strays are those of them that had lost the agent's mark: number and command line.
	Strays []string
}

// Exit returns how the process ended. It is complete once End has returned; ok is false while
// the process runs.
func (c *Conn) Exit() (e Exit, ok bool) {
	e.Code, e.Signal, ok = c.proc.ExitState()
	if !ok {
		return Exit{}, false
	}
	f := c.proc.Forced()
	switch {
	case f.Kill && e.Code != 0: // with 0 it left in that moment
		e.Forced = "SIGKILL"
	case f.Term:
		e.Forced = "SIGTERM"
	}
	e.Rest = len(f.Rest)
	for _, s := range f.Rest {
		if s.Stray {
			e.Strays = append(e.Strays, fmt.Sprintf("%d (%s)", s.PID, s.Command))
		}
	}
	return e, true
}

// String is one line in words.
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
