// Package login lets a person log in to an agent or log out. The log records the start and the end of a login, but not
// the texts that were typed and shown.
package login

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider/process"
)

// ErrRecord means that the log could not record the start or the end of a login.
var ErrRecord = errors.New("the event log cannot be written")

// Terminal describes a command in the person's terminal.
type Terminal struct {
	Agent agents.Agent
	// Args follow the agent's command.
	Args []string
	// Env has NAME=value pairs in addition to the variables that Agent selects from Environ.
	Env []string
	Dir string // absolute
	// Environ is the environment from which the command's variables are selected.
	Environ []string
	// Limit is a permission mode. Runs that the command starts cannot use a looser mode.
	Limit   string
	Signals <-chan os.Signal
	// Starts is called when the start of the command is recorded on disk. In command, secrets are masked.
	Starts func(command []string)
}

// InTerminal runs an agent's command on this process's standard streams, and returns the exit code. The start is
// recorded on disk before the command runs, and the end is recorded after it. If the log cannot record one of them, the
// error is ErrRecord.
func InTerminal(ctx context.Context, r *kernel.Runner, t Terminal) (code int, err error) {
	argv := slices.Concat(t.Agent.Command, t.Args)
	t.Agent.Env = append(slices.Clone(t.Agent.Env), "TERM", "COLORTERM") // the command may draw on the terminal
	env, err := t.Agent.Environ(t.Environ)
	if err != nil {
		return 0, err
	}
	env = append(env, t.Env...)
	masked := redact.Args(argv)
	what := fact.Login{Provider: t.Agent.ID, Command: masked, Cwd: t.Dir}
	err = recorded(ctx, r, what, func() (ended fact.LoginEnded, err error) {
		t.Starts(masked)
		code, ended.Signal, err = process.Attached(process.Spec{Agent: t.Agent.ID, Argv: argv, Env: env, Dir: t.Dir,
			Limit: t.Limit}, t.Signals)
		ended.ExitCode = code
		return ended, err
	})
	return code, err
}

// ByAgent calls the function "do", in which a running agent logs its person in or out. The parameter "what" has the
// names of the agent and of the ACP method. ByAgent records the start on disk before the call of the function, and the
// end after it. If the log cannot record one of them, the error is ErrRecord.
func ByAgent(ctx context.Context, r *kernel.Runner, what fact.Login, do func() error) error {
	what.Command = redact.Args(what.Command)
	return recorded(ctx, r, what, func() (fact.LoginEnded, error) { return fact.LoginEnded{}, do() })
}

// recorded calls the function "do", and records its start and its end. It records the end even if ctx is canceled
// during the call.
func recorded(ctx context.Context, r *kernel.Runner, what fact.Login, do func() (fact.LoginEnded, error)) error {
	ctx = context.WithoutCancel(ctx)
	record := func(typ event.Type, payload any) error {
		if _, err := r.Log().Append(ctx, event.NewFact(typ, "perlica", event.Refs{}, payload)); err != nil {
			return fmt.Errorf("%w: %w", ErrRecord, err)
		}
		return nil
	}
	if err := record(event.LoginStarted, what); err != nil {
		return err
	}
	ended, err := do()
	ended.Provider, ended.Method = what.Provider, what.Method
	if err != nil {
		ended.Error = err.Error()
	}
	err = errors.Join(err, record(event.LoginEnded, ended))
	_, _ = r.Log().Checkpoint(ctx) // the events are valid without a checkpoint
	return err
}
