package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// runFlags are the flags of run.
type runFlags struct {
	provider, agent  string
	env              []string
	session          string
	cont             bool
	inputID          string
	file             string
	attach           []string
	cwd, model, mode string
	permissions      string
	waitPermissions  time.Duration
	format           string
	json, quiet      bool
	thoughts         bool
	timeout          time.Duration
	wait, strict     bool

	program string // the command, as it was typed
	empty   string // a flag that was given the empty string
}

// checkFormat refuses an output format that there is none of.
func (f runFlags) checkFormat() error {
	switch f.format {
	case "text", "json", "stream-json":
		return nil
	}
	return usageErr("--output-format is text, json or stream-json, not %q", f.format)
}

// check refuses values that no later step would.
func (f runFlags) check() error {
	if f.empty != "" { // a variable that is not set: without an id, for one, a second run would call again
		return usageErr("--%s is empty", f.empty)
	}
	switch policy.Mode(f.permissions) {
	case "", policy.ModeAsk, policy.ModeReads, policy.ModeDeny, policy.ModeAllow:
	default:
		return usageErr("--permissions is ask, reads, deny or allow, not %q", f.permissions)
	}
	if f.timeout < 0 {
		return usageErr("--timeout is negative: %s", f.timeout)
	}
	if f.waitPermissions < 0 {
		return usageErr("--wait-permissions is negative: %s", f.waitPermissions)
	}
	if len(f.inputID) > 200 || !utf8.ValidString(f.inputID) || strings.ContainsFunc(f.inputID, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return usageErr("--input-id is at most 200 bytes of UTF-8 without control characters")
	}
	if _, err := provider.Environ(nil, f.env); err != nil {
		return usageErr("--env: %w", err)
	}
	return nil
}

func (f runFlags) configFlags() map[string]string {
	flags := map[string]string{}
	if f.permissions != "" {
		flags["permissions.mode"] = f.permissions
	}
	return flags
}

// choice is what the flags say of the agent.
func (f runFlags) choice() (c project.Choice, err error) {
	c = project.Choice{Provider: f.provider, Command: f.agent, Env: f.env, Model: f.model, Mode: f.mode}
	if f.cwd != "" {
		if c.Dir, err = filepath.Abs(f.cwd); err != nil {
			return c, err
		}
		if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
			return c, usageErr("--cwd %s: no such directory", f.cwd)
		}
	}
	return c, nil
}

// input is a text as what is to be answered.
func (f runFlags) input(a *app, text string) kernel.Input {
	return kernel.Input{ID: event.InputID(f.inputID), Text: text, Attachments: f.attach, Source: "run", Sender: userName(a.getenv)}
}

// find finds the session that -s or -c names; without either it is a new one.
func (f runFlags) find(ctx context.Context, r *kernel.Runner) (s kernel.Session, err error) {
	if f.session == "" && !f.cont {
		return kernel.Session{}, nil
	}
	view, err := r.Sessions(ctx)
	if err != nil {
		return kernel.Session{}, inLog(err)
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	if f.cont {
		s, err := view.Latest(ctx)
		if errors.Is(err, kernel.ErrNoSession) {
			err = withHint(fmt.Errorf("%w: nothing was run here yet", err), "leave out -c for a first session, or choose another log with --context")
		}
		return s, err
	}
	return view.Find(ctx, f.session)
}

// chooseAgent finds the agent that answers in a session.
func (f runFlags) chooseAgent(ctx context.Context, p *project.Project, r *kernel.Runner, c project.Choice, s kernel.Session) (kernel.Agent, error) {
	agent, err := p.Agent(c, s)
	var gone *project.GoneError
	var other *project.OtherAgentError
	switch {
	case errors.As(err, &gone):
		err = exitUsage.with(goneHint(ctx, r, f, s, err))
	case errors.As(err, &other):
		err = withHint(exitUsage.with(err), "leave out -s and -c for a new session")
	case err != nil:
		err = exitUsage.with(err)
	}
	return agent, err
}

// goneHint says how to go on with a session whose agent no configuration knows: it was
// named with --agent. The record has its command line; only a person may start it again.
func goneHint(ctx context.Context, r *kernel.Runner, f runFlags, s kernel.Session, err error) error {
	command, rerr := r.AgentCommand(ctx, s.ID)
	switch {
	case rerr != nil:
		return errors.Join(err, rerr)
	case len(command) == 0:
		return withHint(err, "if it was begun with --agent, say --agent again")
	case filepath.Base(command[0]) != s.Provider:
		return withHint(err, "it was in the configuration: put it back there; its last command line was: %s", kernel.CommandLine(command))
	}
	return withHint(err, "it was begun with --agent; to go on with the same agent: %s",
		kernel.CommandLine(append(strings.Fields(f.program), "-s", shortSession(s), "--agent", kernel.CommandLine(command))))
}

// completeFlags gives shells the values of the flags of run, as far as a command has them.
func completeFlags(a *app, cmd *cobra.Command) {
	fixed := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, f := range map[string]cobra.CompletionFunc{
		"permissions":   fixed("ask", "reads", "deny", "allow"),
		"output-format": fixed("text", "json", "stream-json"),
		"provider":      a.completeProviders,
		"session":       a.completeSessions,
	} {
		if cmd.Flags().Lookup(flag) == nil {
			continue // the chat has fewer
		}
		if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
			panic(fmt.Sprintf("completion of --%s: %v", flag, err)) // a flag that does not exist
		}
	}
}
