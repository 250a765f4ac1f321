package acp

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider/process"
)

// Terminal says what runs in the person's terminal.
type Terminal struct {
	Agent   agents.Agent
	Args    []string // behind the agent's command: the client's
	Dir     string   // absolute
	Environ []string // what its environment is chosen from
	Limit   string   // the permission mode that runs which it starts do not loosen
	Signals <-chan os.Signal
	Starts  func(command []string) // called when that is on disk; secrets are masked
}

// Login runs an agent's command on this process's standard streams, as clients have it run for a login,
// and returns its exit code. That it runs is on disk before it does; how it ended follows. A log that
// cannot take the one or the other is a *RecordError.
func Login(ctx context.Context, r *kernel.Runner, t Terminal) (code int, err error) {
	argv := slices.Concat(t.Agent.Command, t.Args)
	t.Agent.Env = append(slices.Clone(t.Agent.Env), "TERM", "COLORTERM") // it draws there
	env, err := t.Agent.Environ(t.Environ)
	if err != nil {
		return 0, err
	}
	record := func(typ event.Type, payload any) error {
		if _, err := r.Log().Append(ctx, event.NewFact(typ, "perlica", event.Refs{}, payload)); err != nil {
			return &RecordError{err}
		}
		return nil
	}
	masked := redact.Args(argv)
	if err := record(event.LoginStarted, fact.Login{Provider: t.Agent.ID, Command: masked, Cwd: t.Dir}); err != nil {
		return 0, err
	}
	t.Starts(masked)
	code, sig, err := process.Attached(process.Spec{Agent: t.Agent.ID, Argv: argv, Env: env, Dir: t.Dir, Limit: t.Limit}, t.Signals)
	ended := fact.LoginEnded{Provider: t.Agent.ID, ExitCode: code, Signal: sig}
	if err != nil {
		ended.Error = err.Error()
	}
	err = errors.Join(err, record(event.LoginEnded, ended))
	_, _ = r.Log().Checkpoint(ctx) // what is on record counts without it
	return code, err
}
