// Package login has a person log in to an agent, and out of it. That it begins and how it ended is on the
// log; what is typed and shown is not.
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

// ErrRecord is the error of a log that could not take what was to be recorded.
var ErrRecord = errors.New("the event log can be written no more")

// Terminal says what runs in the person's terminal.
type Terminal struct {
	Agent   agents.Agent
	Args    []string // behind the agent's command
	Env     []string // NAME=value, beside what Agent is given of Environ
	Dir     string   // absolute
	Environ []string // what its environment is chosen from
	Limit   string   // the permission mode that runs which it starts do not loosen
	Signals <-chan os.Signal
	Starts  func(command []string) // called when that is on disk; secrets are masked
}

// InTerminal runs an agent's command on this process's standard streams, and returns its exit code. That
// it runs is on disk before it does; how it ended follows. A log that cannot take the one or the other is
// ErrRecord.
func InTerminal(ctx context.Context, r *kernel.Runner, t Terminal) (code int, err error) {
	argv := slices.Concat(t.Agent.Command, t.Args)
	t.Agent.Env = append(slices.Clone(t.Agent.Env), "TERM", "COLORTERM") // it draws there
	env, err := t.Agent.Environ(t.Environ)
	if err != nil {
		return 0, err
	}
	env = append(env, t.Env...)
	masked := redact.Args(argv)
	what := fact.Login{Provider: t.Agent.ID, Command: masked, Cwd: t.Dir}
	err = recorded(ctx, r, what, func() (ended fact.LoginEnded, err error) {
		t.Starts(masked)
		code, ended.Signal, err = process.Attached(process.Spec{Agent: t.Agent.ID, Argv: argv, Env: env, Dir: t.Dir, Limit: t.Limit}, t.Signals)
		ended.ExitCode = code
		return ended, err
	})
	return code, err
}

// ByAgent calls do, which has a running agent log its person in or out by itself; what says which agent it
// is and by which method of the protocol. That it begins is on disk before do is called; how it ended
// follows. A log that cannot take the one or the other is ErrRecord.
func ByAgent(ctx context.Context, r *kernel.Runner, what fact.Login, do func() error) error {
	what.Command = redact.Args(what.Command)
	return recorded(ctx, r, what, func() (fact.LoginEnded, error) { return fact.LoginEnded{}, do() })
}

// recorded records that do begins, and how it ended, also where ctx is cancelled while it does.
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
	_, _ = r.Log().Checkpoint(ctx) // what is on record counts without it
	return err
}
