package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
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

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run [TEXT… | -]", Annotations: runs.on(),
		Aliases: []string{"exec"},
		Short:   "Send one input to the agent, print the answer, exit",
		Long: `Send one input to the agent, print the answer on standard output, exit.

The text comes from the arguments, from --file, or from standard input. With both
arguments and piped input, the arguments are the instruction and the input is its
material. Text that starts like an option goes after "--".

Exit codes: 0 answered; 1 the provider failed, or standard output took no answer; 2 usage
or configuration; 3 --timeout passed; 4 no such session, or it is busy; 5 a question went
unanswered; 6 the outcome is unknown; 7 the event log could not be written, nothing was
sent; 8 the agent wants a login; 9 --strict and a tool ran unasked; 130 interrupted;
143 terminated.`,
		Example: `  perlica run "what does this repository do?"
  git diff | perlica run "review this change"
  perlica run --provider claude --permissions reads "find the bug in parse.go"
  perlica run --input-id "$CI_JOB_ID" -f prompt.md --json`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, f, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.provider, "provider", "", "the agent's `name` in the configuration or the registry")
	fl.StringVar(&f.agent, "agent", "", "an ACP agent as a `command` line: 'CMD ARG…'")
	fl.StringArrayVar(&f.env, "env", nil, "hand the agent this `variable` of the environment, too")
	fl.StringVarP(&f.session, "session", "s", "", "continue a `session`: its id, the beginning of it, or its name")
	fl.BoolVarP(&f.cont, "continue", "c", false, "continue the session that was used last")
	fl.StringVar(&f.inputID, "input-id", "", "this input's own `id`: an id that was called before makes no call")
	fl.StringVarP(&f.file, "file", "f", "", "read the text from a `file`; - is standard input")
	fl.StringArrayVar(&f.attach, "attach", nil, "add a `file` to the input")
	fl.StringVar(&f.cwd, "cwd", "", "the agent's working `directory`")
	fl.StringVar(&f.model, "model", "", "the agent's model, by its `id`")
	fl.StringVar(&f.mode, "mode", "", "the agent's mode, by its `id`; \"none\" leaves it as it starts")
	fl.StringVar(&f.permissions, "permissions", "", "who answers the agent's questions, a `mode`: ask, reads, deny or allow (default: ask on a terminal, else deny)")
	fl.DurationVar(&f.waitPermissions, "wait-permissions", 0, "without a terminal: leave questions open this long for 'perlica pending'")
	fl.StringVar(&f.format, "output-format", "text", "the `format`: text, json or stream-json")
	fl.BoolVar(&f.json, "json", false, "the same as --output-format json")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but the answer, errors and questions")
	fl.BoolVar(&f.thoughts, "thoughts", false, "show the agent's thoughts on standard error")
	fl.DurationVar(&f.timeout, "timeout", 0, "cancel the call when this has passed")
	fl.BoolVar(&f.wait, "wait", false, "wait for a busy session instead of exit code 4")
	fl.BoolVar(&f.strict, "strict", false, "exit code 9 if a tool ran unasked")
	cmd.MarkFlagsMutuallyExclusive("provider", "agent")
	cmd.MarkFlagsMutuallyExclusive("session", "continue")
	cmd.MarkFlagsMutuallyExclusive("json", "output-format")
	a.completeRunFlags(cmd)
	return cmd
}

// run is the command: it gathers what the kernel needs, lets it run the turn, and turns
// the result into output and an exit code.
func (a *app) run(cmd *cobra.Command, f runFlags, args []string) error {
	f.program = cmd.CommandPath()
	if f.json {
		f.format = "json"
	}
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		if fl.Value.Type() == "string" && fl.Value.String() == "" {
			f.empty = fl.Name
		}
	})
	if err := f.checkFormat(); err != nil {
		return err
	}
	ctx, stop := a.signals(cmd.Context(), f.timeout)
	defer stop.release()
	say := newPrinter(ctx, a, f, stop)
	stop.tell(say.stopping)
	res, err := a.answer(ctx, f, args, stop, say)
	say.finish(res, err)
	if err != nil {
		return &exitError{runErrorCode(err), err}
	}
	code := exitCode(res, f.strict)
	if say.failed != nil {
		return &exitError{max(code, 1), withHint(fmt.Errorf("standard output: %w", say.failed),
			"the call was made, and its answer is on record: perlica log show %s", res.Run)}
	}
	if code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// answer gathers the input and lets the kernel answer it.
func (a *app) answer(ctx context.Context, f runFlags, args []string, stop *stopper, say *printer) (kernel.Result, error) {
	if err := f.check(); err != nil {
		return kernel.Result{}, err
	}
	if f.session != "" || f.cont {
		if err := a.personOnly("an input for a session that is there"); err != nil {
			return kernel.Result{}, err
		}
	}
	p, limit, err := a.limited(f.configFlags())
	if err != nil {
		return kernel.Result{}, &exitError{2, err}
	}
	if limit != "" {
		say.note("warning: " + limit)
	}
	text, err := a.text(f, args, stop.first)
	if err != nil {
		var stopped *kernel.StoppedError
		if errors.As(err, &stopped) {
			return kernel.Result{}, err
		}
		return kernel.Result{}, &exitError{2, err}
	}
	if w := p.Config.Withheld; len(w) > 0 {
		say.note("not trusted yet, left aside: " + strings.Join(w, "; ") + " (perlica config trust)")
	}
	for _, w := range p.Config.Warnings {
		say.note(w)
	}
	r, done, err := a.open(ctx, p)
	if err != nil {
		return kernel.Result{}, &exitError{7, err}
	}
	res, err := a.runTurn(ctx, p, r, f, text, stop, say)
	cerr := done()
	if errors.Is(cerr, eventlog.ErrMoved) && err == nil && res.Err == nil { // what is on record may not be found again
		return res, &exitError{7, cerr}
	}
	if cerr != nil && err == nil && (res.Err == nil || res.Err.Type != provider.TypeRecord) {
		say.note("warning: closing the log: " + cerr.Error()) // the outcome is on disk
	}
	return res, err
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

// runTurn recovers what earlier processes left, chooses session and agent, and runs.
func (a *app) runTurn(ctx context.Context, p *project.Project, r *kernel.Runner, f runFlags, text string, stop *stopper, say *printer) (kernel.Result, error) {
	var recovered []kernel.Result
	if r.Unfinished() {
		var err error
		if recovered, err = r.Recover(ctx); err != nil {
			return kernel.Result{}, &logError{err}
		}
	}
	for _, res := range recovered {
		// Also with -q: somebody has to decide what became of it.
		say.line(fmt.Sprintf("perlica: an earlier run did not end in order; its outcome is unknown and nothing was sent again: perlica log show %s", res.Run))
	}
	session, err := a.session(ctx, r, f)
	if err != nil {
		return kernel.Result{}, err
	}
	c, badDir := f.choice()
	agent, err := a.chooseAgent(ctx, p, r, f, c, session)
	if err != nil {
		return kernel.Result{}, err
	}
	if agent.Why != "" {
		say.note("using " + agent.ID + ": " + agent.Why)
	}
	if badDir != nil {
		return kernel.Result{}, badDir
	}
	asker := newAsker(a, r, say)
	defer asker.close()
	t := kernel.Turn{Setup: p.Setup(c, agent, session), Wait: f.wait, Input: f.input(a, text)}
	t.Permissions, t.AnswerIn = p.Answering(asker.available(), f.waitPermissions)
	if t.Permissions == policy.ModeAllow {
		say.note("--permissions allow: every ordinary command is allowed without asking; this is no sandbox")
	}
	t.Stop = stop.first
	asker.stop = stop
	t.Show = func(n kernel.Notice) {
		asker.show(n)
		say.show(n)
	}
	res, err := r.Run(ctx, t)
	var other *kernel.InputConflictError
	if errors.As(err, &other) {
		err = withHint(err, "another input takes another --input-id; what was called: perlica log show %s", short(other.Run))
	}
	return res, err
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

// session finds the session that -s or -c names; without either it is a new one.
func (a *app) session(ctx context.Context, r *kernel.Runner, f runFlags) (s sessions.Session, err error) {
	if f.session == "" && !f.cont {
		return sessions.Session{}, nil
	}
	view, err := r.Sessions(ctx)
	if err != nil {
		return sessions.Session{}, &logError{err}
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	if f.cont {
		s, err := view.Latest(ctx)
		if errors.Is(err, sessions.ErrNoSession) {
			err = withHint(fmt.Errorf("%w: nothing was run here yet", err), "leave out -c for a first session, or choose another log with --context")
		}
		return s, err
	}
	return view.Find(ctx, f.session)
}

// chooseAgent finds the agent that answers in a session.
func (a *app) chooseAgent(ctx context.Context, p *project.Project, r *kernel.Runner, f runFlags, c project.Choice, s sessions.Session) (agents.Agent, error) {
	agent, err := p.Agent(c, s)
	var gone *project.GoneError
	var other *project.OtherAgentError
	switch {
	case errors.As(err, &gone):
		err = &exitError{2, goneHint(ctx, r, f, s, err)}
	case errors.As(err, &other):
		err = withHint(&exitError{2, err}, "leave out -s and -c for a new session")
	case err != nil:
		err = &exitError{2, err}
	}
	return agent, err
}

// goneHint says how to go on with a session whose agent no configuration knows: it was
// named with --agent. The record has its command line; only a person may start it again.
func goneHint(ctx context.Context, r *kernel.Runner, f runFlags, s sessions.Session, err error) error {
	command, rerr := r.AgentCommand(ctx, s.ID)
	switch {
	case rerr != nil:
		return errors.Join(err, rerr)
	case len(command) == 0:
		return withHint(err, "if it was begun with --agent, say --agent again")
	case filepath.Base(command[0]) != s.Provider:
		return withHint(err, "it was in the configuration: put it back there; its last command line was: %s", agents.CommandLine(command))
	}
	return withHint(err, "it was begun with --agent; to go on with the same agent: %s",
		agents.CommandLine(append(strings.Fields(f.program), "-s", shortSession(s), "--agent", agents.CommandLine(command))))
}

// userName names who answers and who asks.
func userName(getenv func(string) string) string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if s := getenv(name); s != "" {
			return s
		}
	}
	return "user"
}
