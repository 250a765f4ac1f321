// Package run is the command that sends one input, prints the answer and exits.
//
// The kernel makes the call. Package run gathers the input and turns the result into output and an exit code.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/service/notify"
)

// invocation is one use of the command.
type invocation struct {
	*frame.App
	cmd       *cobra.Command
	flags     dialog.Flags
	teamFlags dialog.TeamFlags
	args      []string
	stop      *frame.Stopper
	say       *dialog.Printer
	project   *project.Project // set by answerInput
	text      string           // set by answerInput
	// stopNotifying ends the delivery of notifications.
	stopNotifying func()
}

// Run sends the input from args, a file or standard input. It does the same as the command run with these flags.
func Run(a *frame.App, cmd *cobra.Command, f dialog.Flags, tf dialog.TeamFlags, args []string) error {
	return (&invocation{App: a, cmd: cmd, flags: f, teamFlags: tf, args: args, stopNotifying: func() {}}).runInput()
}

// Command returns the command run.
func Command(a *frame.App) *cobra.Command {
	var f dialog.Flags
	var tf dialog.TeamFlags
	cmd := &cobra.Command{
		Use: "run [TEXT… | -]", Annotations: frame.StartsRun.Annotation(),
		Aliases: []string{"exec"},
		Short:   "Send one input to the agent, print the answer, exit",
		Long: `Send one input to the agent, print the answer on standard output, exit.

The text comes from the arguments, from --file, or from standard input. With both
arguments and piped input, the arguments are the instruction and the piped text is its
material. Write "--" before a text that starts with a dash.

Exit codes: 0 answered; 1 the agent failed, or standard output could not be written; 2 wrong
usage or configuration; 3 the time of --timeout was up; 4 the session does not exist, or it is
busy; 5 a question went unanswered; 6 the outcome is unknown; 7 the event log could not be
written, and nothing was sent; 8 the agent needs a login; 9 --strict was given, and a tool ran
without a question; 10 a budget refuses the call, and nothing was sent; 130 interrupted; 143 terminated.`,
		Example: `  perlica run "what does this repository do?"
  git diff | perlica run "review this change"
  perlica run --provider claude --permissions reads "find the bug in parse.go"
  perlica run --input-id "$CI_JOB_ID" -f prompt.md --json`,
		RunE: func(cmd *cobra.Command, args []string) error { return Run(a, cmd, f, tf, args) },
	}
	dialog.AddFlags(cmd, &f)
	fl := cmd.Flags()
	fl.StringVar(&f.InputID, "input-id", "", "the input's `id`: an id that was used before makes no second call")
	fl.StringVarP(&f.File, "file", "f", "", "read the text from this `file`; - is standard input")
	fl.StringArrayVar(&f.Attach, "attach", nil, "add this `file` to the input")
	fl.StringVar(&f.Permissions, "permissions", "",
		"the `mode` for the agent's questions: ask, reads, deny or allow (default ask; without a terminal the "+
			"answer is no, and the exit code 5)")
	fl.StringArrayVar(&f.Allow, "allow", nil,
		"a rule for this run: allow this `command`, such as 'go test ./...'; may be repeated")
	fl.StringArrayVar(&f.Deny, "deny", nil, "a rule for this run: deny this `command`; may be repeated")
	fl.DurationVar(&f.WaitPermissions, "wait-permissions", 0,
		"without a terminal: keep questions open for this time, for 'perlica pending'")
	fl.StringVar(&f.Format, "output-format", "text", "the `format`: text, json or stream-json")
	fl.BoolVar(&f.Json, "json", false, "the same as --output-format json")
	fl.BoolVarP(&f.Quiet, "quiet", "q", false, "print nothing but the answer, errors and questions")
	fl.BoolVar(&f.Newline, "newline", false,
		"end the answer with a newline, even in a file or pipe, such as the log of a CI")
	fl.BoolVar(&f.Thoughts, "thoughts", false, "show the agent's thoughts on standard error")
	fl.DurationVar(&f.Timeout, "timeout", 0, "cancel the call after this time")
	fl.BoolVar(&f.Wait, "wait", false, "if the session is busy, wait instead of ending with exit code 4")
	fl.BoolVar(&f.Strict, "strict", false, "end with exit code 9 if a tool ran without a question")
	fl.BoolVar(&f.RequireSandbox, "require-sandbox", false,
		"end with exit code 2 and send nothing if the agent would start outside a sandbox")
	fl.StringVar(&f.SchemaFile, "schema", "",
		"end with exit code 1 if the answer does not match the JSON Schema in this `file`")
	cmd.MarkFlagsMutuallyExclusive("json", "output-format")
	a.AddSandboxFlag(cmd)
	dialog.AddTeamFlags(cmd, &tf)
	dialog.AddTeamRunFlags(cmd, &tf)
	dialog.AddExtraFlags(cmd, &f)
	dialog.CompleteFlags(a, cmd)
	return cmd
}

// runInput sends the input, prints the result and returns the error with the exit code.
func (i *invocation) runInput() error {
	dialog.PrimeCaches()
	f := &i.flags
	f.Program = i.cmd.CommandPath()
	if f.Json {
		f.Format = "json"
	}
	i.cmd.Flags().Visit(func(fl *pflag.Flag) {
		if fl.Value.Type() == "string" && fl.Value.String() == "" {
			f.Empty = fl.Name
		}
	})
	if !slices.Contains([]string{"text", "json", "stream-json"}, f.Format) {
		return frame.UsageErrorf("--output-format is text, json or stream-json, not %q", f.Format)
	}
	if i.cmd.Flags().Changed("timeout") && f.Timeout == 0 {
		return frame.WithHint(frame.UsageErrorf("--timeout 0s is not a time above zero"),
			"without --timeout the call may take as long as it likes")
	}
	ctx, stop := frame.CatchSignals(i.cmd.Context(), f.Timeout)
	defer stop.Release()
	say := dialog.NewPrinter(ctx, i.App, *f, stop)
	stop.Tell(say.Stopping)
	i.stop, i.say = stop, say
	f.Files = &dialog.Files{Stop: stop.First}
	var s *project.Schema
	if f.SchemaFile != "" {
		var err error
		if f.Schema, s, err = readSchema(*f); err != nil {
			return frame.RefusalExitCode(err).With(err)
		}
	}
	res, err := i.answerInput(ctx)
	defer func() { i.stopNotifying() }() // after the output, because a slow target takes up to five seconds
	var misfit error
	if s != nil && err == nil && res.Outcome == record.OutcomeResponded {
		misfit = s.Check(res.Text)
		say.Misfit = misfit
	}
	say.Finish(res, err)
	if err != nil {
		return frame.RefusalExitCode(err).With(err)
	}
	code := frame.RunExitCode(res, f.Strict)
	if say.Failed != nil {
		return max(code, frame.ExitFailure).With(frame.WithHint(fmt.Errorf("standard output: %w", say.Failed),
			"the call was made, and its answer is on record: perlica log show %s", res.Run))
	}
	if say.Unsaved != nil {
		return max(code, frame.ExitFailure).With(frame.WithHint(fmt.Errorf("--save-to: %w", say.Unsaved),
			"the call was made, and its answer is on record: perlica log show %s", res.Run))
	}
	// An answer that does not match the schema replaces only these three exit codes, because all others report
	// something worse.
	if misfit != nil && slices.Contains([]frame.ExitCode{0, frame.ExitStrict, frame.ExitUnanswered}, code) {
		return frame.ExitFailure.With(frame.WithHint(misfit,
			"nothing is sent again; the answer is on record: perlica log show %s", res.Run))
	}
	if code != 0 {
		return code.With(nil)
	}
	return nil
}

// answerInput reads the input. It then lets the kernel or a team answer it.
func (i *invocation) answerInput(ctx context.Context) (record.Result, error) {
	f := &i.flags
	if err := f.Check(); err != nil {
		return record.Result{}, err
	}
	if f.Session != "" || f.Cont {
		if err := i.PersonOnly("an input for a session that is there"); err != nil {
			return record.Result{}, err
		}
	}
	p, limit, err := i.LocateLimited(f.ConfigFlags())
	if err != nil {
		return record.Result{}, frame.ExitUsage.With(err)
	}
	rules, err := f.Rules()
	if err != nil {
		return record.Result{}, err
	}
	if limit != "" {
		if err := f.Refused(limit); err != nil {
			return record.Result{}, err
		}
		if strings.HasPrefix(f.InputID, event.SchedulePrefix) {
			if err := i.PersonOnly("an input of a schedule"); err != nil {
				return record.Result{}, err
			}
		}
		i.say.Note("warning: " + limit)
	}
	p.Config.Rules = append(p.Config.Rules, rules...)
	i.project = p
	if i.text, err = i.inputText(ctx); err != nil {
		var stopped *kernel.StoppedError
		if errors.As(err, &stopped) {
			return record.Result{}, err
		}
		return record.Result{}, frame.ExitUsage.With(err)
	}
	if f.Attach, err = f.SavePipes(p); err != nil {
		return record.Result{}, err
	}
	if w := p.Config.Withheld; len(w) > 0 {
		i.say.Note("not trusted yet, left aside: " + strings.Join(w, "; ") + " (perlica config trust)")
	}
	for _, w := range p.Config.Warnings {
		i.say.Note(w)
	}
	there, err := i.teamFlags.Meant(i.cmd, p)
	if err != nil {
		return record.Result{}, err
	}
	if there {
		return i.answerByTeam(ctx)
	}
	return i.answerHere(ctx)
}

// answerHere lets the kernel on this machine answer the input.
func (i *invocation) answerHere(ctx context.Context) (record.Result, error) {
	t, end := i.launchAgent()
	defer func() {
		if err := end(); err != nil {
			i.say.Note("warning: " + err.Error())
		}
	}()
	r, done, err := i.Open(ctx, i.project)
	if err != nil {
		return record.Result{}, frame.LogNotOpened(err)
	}
	i.stopNotifying = notify.Start(i.project, notify.Options{Version: i.Version, Terminal: i.Terminal()})
	res, err := i.runTurn(ctx, r, t)
	cerr := done()
	// Somebody moved the log, so the record of this run may be lost.
	if errors.Is(cerr, disk.ErrMoved) && err == nil && res.Err == nil {
		return res, frame.ExitLog.With(cerr)
	}
	if cerr != nil && err == nil && (res.Err == nil || res.Err.Type != provider.TypeRecord) {
		i.say.Note("warning: closing the log: " + cerr.Error()) // The outcome is on disk already, so a warning is enough.
	}
	return res, err
}

// launchAgent starts the agent while the log is still being opened. It starts the agent only if nothing on the log can
// change the choice of the agent. It does not start an agent before the first log exists. Such an agent would be older
// than everything that it could touch, and frame.App.PersonOnly would not recognise it. If the choice of the agent
// fails, launchAgent reports nothing, because a later step reports the error.
func (i *invocation) launchAgent() (t kernel.Turn, end func() error) {
	p, f := i.project, &i.flags
	end = func() error { return nil }
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil || f.Session != "" || f.Cont || f.InputID != "" {
		return t, end
	}
	if _, err := os.Stat(paths.EventLog); err != nil {
		return t, end
	}
	redactor, err := p.Redactor()
	if err != nil {
		return t, end
	}
	c, err := f.Choice()
	if err != nil {
		return t, end
	}
	agent, err := p.Agent(c, sessions.Session{})
	if err != nil {
		return t, end
	}
	t.Setup = p.Setup(c, agent, sessions.Session{})
	t.Permissions, t.AnswerIn = p.Answering(dialog.CanAsk(i.App), f.WaitPermissions)
	return t, t.Launch(p.Environ, redactor)
}

// runTurn ends the runs of processes that have died, chooses the session and the agent, and runs the turn.
func (i *invocation) runTurn(ctx context.Context, r *kernel.Runner, t kernel.Turn) (record.Result, error) {
	p, f := i.project, &i.flags
	var recovered []record.Result
	if r.Unfinished() {
		var err error
		if recovered, err = r.Recover(ctx); err != nil {
			return record.Result{}, frame.LogErrorBeforeSend(err)
		}
	}
	for _, res := range recovered {
		// This line appears even with -q, because a person has to decide about the unknown outcome.
		i.say.Line("perlica: " + frame.CutOff(res.Run))
	}
	session, err := f.Find(ctx, r)
	if err != nil {
		return record.Result{}, err
	}
	c, badDir := f.Choice()
	agent := t.Agent
	if agent.ID == "" { // launchAgent has not started an agent.
		if agent, err = f.ChooseAgent(ctx, p, r, c, session); err != nil {
			return record.Result{}, err
		}
	}
	i.say.Held = dialog.HeldFrom(agent, i.Environ)
	if agent.Why != "" {
		i.say.Note("using " + agent.ID + ": " + agent.Why)
	}
	if text := f.NotSet(i.Environ); text != "" {
		i.say.Note(text)
	}
	if badDir != nil {
		return record.Result{}, badDir
	}
	asker := dialog.NewAsker(i.App, r, i.say)
	defer asker.Close()
	t.Setup, t.Wait, t.Input, t.Rules = p.Setup(c, agent, session), f.Wait, f.Input(i.App, i.text), f.RuleTexts()
	if choice := frame.DescribeChoices(t.Earlier); choice != "" {
		i.say.Note("set again as chosen in this session, as far as the agent offers it: " + choice)
	}
	t.Permissions, t.AnswerIn = p.Answering(asker.Available(), f.WaitPermissions)
	t.Forms = t.AnswerIn > 0 && t.Permissions != policy.ModeDeny
	t.Notices = true
	if t.Permissions == policy.ModeAllow {
		i.say.Note(dialog.AllowNote(agent.Sandbox))
	}
	t.Stop = i.stop.First
	asker.Stop = i.stop
	t.Show = func(n record.Notice) {
		asker.Show(n)
		i.say.Show(n)
	}
	res, err := r.Run(ctx, t)
	if err == nil {
		i.say.Unsaved = i.say.Save(ctx, r, res)
	}
	var other *kernel.InputConflictError
	if errors.As(err, &other) {
		err = frame.WithHint(err, "give another input another --input-id; to see the earlier call: perlica log show %s",
			frame.ShortID(other.Run))
	}
	return res, err
}

const (
	// silentInput is the time after which the user is told that Perlica waits for standard input.
	silentInput = 2 * time.Second
)

// inputText returns the text of the input. The text comes from the arguments, a file and standard input. With
// --file, standard input is read only if an argument is "-". A stop ends the reading with a *kernel.StoppedError.
func (i *invocation) inputText(ctx context.Context) (string, error) {
	f, args := &i.flags, i.args
	dash := len(args) == 1 && args[0] == "-"
	text, reads := "", dash
	switch {
	case f.File != "" && len(args) > 0 && !dash:
		return "", errors.New("the text comes from --file or from the arguments, not from both")
	case f.File == "-":
		reads = true
	case f.File != "":
		b, err := f.ReadFile("--file", f.File)
		if err != nil {
			return "", err
		}
		text = string(b)
	case !dash:
		text, reads = strings.Join(args, " "), i.Piped()
	}
	if reads {
		piped, err := i.readStdin(ctx)
		if err != nil {
			return "", err
		}
		if text != "" && piped != "" {
			i.say.Note("standard input follows the text as its material: " + humanize.Bytes(uint64(len(piped))))
			text += "\n\n"
		}
		text += piped
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", frame.WithHint(errors.New("there is no text to send"), `perlica run "your question", or pipe it in`)
	case !utf8.ValidString(text):
		return "", frame.WithHint(errors.New("the text is not valid UTF-8, so it cannot be sent as it is"),
			"add binary files with --attach")
	case len(text) > frame.MaxInput:
		return "", fmt.Errorf("the text has %d bytes; the limit is %d", len(text), frame.MaxInput)
	}
	return text, nil
}

// readStdin reads standard input to its end. A pipe that stays open makes Perlica look dead, so a notice explains
// the wait. After the notice, an error of checkCalled ends the reading.
func (i *invocation) readStdin(ctx context.Context) (string, error) {
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // The goroutine ends with the process at the latest.
		b, err := io.ReadAll(io.LimitReader(i.Stdin, frame.MaxInput+1))
		done <- read{b, err}
	}()
	silent := time.After(silentInput)
	for {
		select {
		case r := <-done:
			if r.err != nil {
				return "", fmt.Errorf("standard input: %w", r.err)
			}
			return strings.TrimPrefix(string(r.text), frame.ByteOrderMark), nil
		case <-silent:
			if err := i.checkCalled(ctx); err != nil {
				return "", err
			}
			fmt.Fprintln(i.Stderr, "perlica: reading standard input (end it with Ctrl-D, or give </dev/null)")
		case s := <-i.flags.Files.Stop:
			return "", &kernel.StoppedError{Stop: s}
		}
	}
}

// checkCalled returns an error if the log has a call for the input id already. Standard input has not ended, so the
// new text cannot be compared with the recorded one.
func (i *invocation) checkCalled(ctx context.Context) error {
	id := i.flags.InputID
	if id == "" {
		return nil
	}
	log, _, err := i.Reader(ctx, i.project)
	if err != nil {
		return nil // The run will report this error.
	}
	defer func() { _ = log.Close() }() // The log was only read, so a failed close loses no data.
	if _, ok, err := log.Last(ctx, event.Query{Input: event.InputID(id),
		Types: []event.Type{event.Requested}}); err != nil || !ok {
		return nil
	}
	return frame.WithHint(frame.UsageErrorf(
		"the input %s was called before, and standard input has no end: its text cannot be compared", id),
		"give </dev/null if there is no more text; the recorded result: perlica log show %s", id)
}
