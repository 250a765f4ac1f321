package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/service/notify"
	"github.com/perlica/perlica/service/team"
)

// runFlags are the flags of the command run.
type runFlags struct {
	dialog.Flags
	dialog.TeamFlags
	inputs []string
	id     string
	stay   bool
	most   int
	// detach means that another process must drive the flow run. detached means that this process was started for that.
	// A detached process reads the inputs as JSON from its standard input.
	detach, detached bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run FILE|NAME", Annotations: frame.StartsRun.Annotation(),
		Short: "Run a flow, or continue it",
		Long: `Run the flow in a file, or the one in flows/NAME.toml of the project. On a terminal the running
graph is drawn. In a pipe each change is a line on standard output. With the --id of an earlier
flow run, that run continues from its last state: no call is made twice, and the file and the
inputs must be the same. While another process drives the flow run, this command shows the
changes, and takes over if that process dies.

A question of the flow is asked at the terminal. Without a terminal it stays open, also
after the end of this command: answer it with 'perlica pending', on the phone or on the
page, and run the flow again with its --id. With --detach another process drives the flow
run and waits for the answers, also after the terminal was closed. Ctrl-C lets the running
calls end and begins no further step; a second Ctrl-C stops the calls.

With --team each call is an input of the team, which any worker of the project may take. The
agents' questions are the team's: 'perlica team pending'. The flow run continues with --team only.

The exit code is the worst of the steps: 0 all done; 1 a step failed, or the run was
cancelled; 2 usage, or another file or other inputs under the same id; 5 a question is open
or went unanswered; 6 an outcome is unknown; 7 the event log could not be written; 8 an
agent wants a login; 130 interrupted; 143 terminated.`,
		Example: `  perlica flow run flows/review.toml --input files=@changed.txt
  git diff --name-only | perlica flow run review --input files=- --id "$CI_JOB_ID"
  perlica flow run nightly --detach`,
		Args: frame.Exactly("FILE|NAME"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, f, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.inputs, "input", nil, "an `input`: name=text, name=@file, or name=- for standard input")
	fl.StringVar(&f.id, "id", "", "the flow run's own `id`: an earlier flow run with it continues")
	fl.StringVar(&f.Provider, "provider", "", "the agent's `name`, for the steps that name no provider")
	fl.StringVar(&f.Permissions, "permissions", "",
		"the `mode` for the agents' questions: ask, reads, deny or allow; a step may only be stricter")
	fl.DurationVar(&f.WaitPermissions, "wait-permissions", 0,
		"without a terminal: keep questions of agents open for this time, for 'perlica pending'")
	fl.BoolVar(&f.stay, "wait", false, "without a terminal: wait for the answers to the flow's questions")
	fl.IntVar(&f.most, "parallel", 16, "the `number` of calls at the same time, over all steps")
	fl.BoolVar(&f.detach, "detach", false, "return at once: a process of its own drives the flow run")
	fl.BoolVar(&f.detached, "detached", false, "drive a detached flow run")
	_ = fl.MarkHidden("detached") // This cannot fail, because the flag exists.
	fl.BoolVar(&f.Json, "json", false, "print each change as a line of JSON")
	dialog.AddTeamFlags(cmd, &f.TeamFlags)
	frame.CompleteFlag(cmd, "provider", a.CompleteProviders)
	frame.CompleteFlag(cmd, "permissions", cobra.FixedCompletions([]string{"ask", "reads", "deny", "allow"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// inputs returns the inputs of the flow.
func (a *app) inputs(f runFlags) (inputs map[string]string, err error) {
	if !f.detached {
		return a.readInputs(f.inputs)
	}
	if err = json.NewDecoder(a.Stdin).Decode(&inputs); err != nil {
		return nil, frame.UsageErrorf("--detached: %w", err)
	}
	return inputs, nil
}

// readInputs reads the values of --input.
func (a *app) readInputs(list []string) (map[string]string, error) {
	inputs := map[string]string{}
	piped := false
	for _, in := range list {
		name, value, ok := strings.Cut(in, "=")
		if !ok || name == "" {
			return nil, frame.UsageErrorf("--input %s: expected name=text, name=@file or name=-", frame.OneLine(in))
		}
		if _, twice := inputs[name]; twice {
			return nil, frame.UsageErrorf("--input %s is given twice", name)
		}
		switch {
		case value == "-" && piped:
			return nil, frame.UsageErrorf("--input %s=-: another input has read standard input", name)
		case value == "-":
			piped = true
			b, err := io.ReadAll(io.LimitReader(a.Stdin, frame.MaxInput+1))
			if err != nil {
				return nil, fmt.Errorf("standard input: %w", err)
			}
			value = string(b)
		case strings.HasPrefix(value, "@"):
			b, err := dialog.Flags{}.ReadFile("--input", value[1:])
			if err != nil {
				return nil, frame.ExitUsage.With(err)
			}
			value = string(b)
		}
		if !utf8.ValidString(value) {
			return nil, frame.UsageErrorf("--input %s is not valid UTF-8", name)
		}
		inputs[name] = value
	}
	return inputs, nil
}

func (a *app) run(cmd *cobra.Command, f runFlags, name string) error {
	if err := f.Check(); err != nil {
		return err
	}
	if f.id == "" && cmd.Flags().Changed("id") {
		return frame.UsageErrorf("--id is empty")
	}
	byTeam, err := f.MeantByFlow(cmd)
	if err != nil {
		return err
	}
	if f.most < 1 || f.most > 64 {
		return frame.UsageErrorf("--parallel is a number from 1 to 64")
	}
	p, limit, err := a.LocateLimited(f.ConfigFlags())
	if err != nil {
		return frame.ExitUsage.With(err)
	}
	file, err := flow.Load(flowFile(p, name))
	if err != nil {
		return frame.ExitUsage.With(err)
	}
	id := cmp.Or(f.id, file.Name+"-"+frame.ShortID(uuid.NewString()))
	if err := flow.CheckID(id); err != nil {
		return frame.ExitUsage.With(err)
	}
	inputs, err := a.inputs(f)
	if err != nil {
		return err
	}
	if _, err := file.Fill(inputs); err != nil {
		return frame.ExitUsage.With(err)
	}
	if limit != "" && strings.HasPrefix(id, event.SchedulePrefix) {
		if err := a.PersonOnly("a flow run of a schedule"); err != nil {
			return err
		}
	}
	ctx, stop := frame.CatchSignals(cmd.Context(), 0)
	defer stop.Release()
	say := dialog.NewPrinter(ctx, a.App, dialog.Flags{Format: "text", Quiet: f.Json}, stop)
	defer func() { _ = say.Status.Close() }() // If the terminal is closed, there is no line to remove.
	if limit != "" {
		say.Note("warning: " + limit)
	}
	r, done, err := a.Open(ctx, p)
	if err != nil {
		return frame.LogNotOpened(err)
	}
	d := &driving{f: f, file: file, id: id, inputs: inputs, again: continueCommand(cmd, id, name), p: p, r: r, say: say,
		stop: stop, limited: limit != ""}
	drive := func() error {
		if f.detach {
			return a.detach(ctx, cmd, d, name)
		}
		defer notify.Start(p, notify.Options{Version: a.Version, Terminal: a.Terminal()})()
		return a.drive(ctx, d)
	}
	if byTeam {
		err = a.withTeam(ctx, d, drive)
	} else {
		err = drive()
	}
	d.keepError(err)
	if cerr := done(); err == nil {
		err = cerr
	}
	return err
}

// driving is one invocation of the command run, after its flags were read.
type driving struct {
	f      runFlags
	file   *flow.Flow
	id     string
	inputs map[string]string
	again  string // the command that continues the flow run
	p      *project.Project
	r      *kernel.Runner
	say    *dialog.Printer
	stop   *frame.Stopper
	// limited means that an agent started this process.
	limited bool
	calls   flow.Team // nil unless a team answers the calls
}

// answering returns the mode for the questions of agents, and the time for which such a question waits. The
// questions of a detached flow run wait for other front ends, like the questions of a schedule. terminal means that
// a person can answer here.
func (d *driving) answering(terminal bool) (policy.Mode, time.Duration) {
	if d.f.detached {
		d.f.stay, d.f.WaitPermissions = true, cmp.Or(d.f.WaitPermissions, d.p.Config.AnswerTimeout)
	}
	return d.p.Answering(terminal, d.f.WaitPermissions)
}

// keepError writes the error of a detached flow run to the debug trail, because nobody reads the output.
func (d *driving) keepError(err error) {
	if d.f.detached && err != nil && err.Error() != "" {
		d.r.Trail().Error("the detached flow run stopped", "id", d.id, "error", err.Error())
	}
}

// withTeam calls the function drive while the team is open that answers the calls.
func (a *app) withTeam(ctx context.Context, d *driving, drive func() error) error {
	return team.Use(ctx, d.p, a.Version, func(t *team.Team) error {
		permissions := d.f.Permissions
		if d.limited { // a worker must not be looser than the agent that started this process
			permissions = string(d.p.Mode())
		}
		d.calls = &team.FlowCalls{Team: t, Draft: d.f.FlowDraft(d.p, d.f.Provider, permissions),
			By: frame.UserName(a.Getenv), Note: d.say.Note}
		return drive()
	})
}

func (a *app) drive(ctx context.Context, d *driving) error {
	if d.r.Unfinished() {
		if _, err := d.r.Recover(ctx); err != nil {
			return frame.ExitLog.With(err)
		}
	}
	paths, err := d.p.Workspace.Context(d.p.Config.ContextID)
	if err != nil {
		return err
	}
	asker := dialog.NewAsker(a.App, d.r, d.say)
	defer asker.Close()
	asker.Stop = d.stop
	out := &printer{a: a, asJSON: d.f.Json, status: d.say.Status}
	defer out.drawGraph(d.id)()
	var showing sync.Mutex
	shown := map[event.InteractionID]bool{}
	ask := func(n record.Notice) {
		showing.Lock()
		defer showing.Unlock()
		switch n := n.(type) {
		case record.Asked:
			if n.Answerable && asker.Available() && !shown[n.Question.ID] {
				shown[n.Question.ID] = true
				out.free(1)
			}
			asker.Show(n)
		case record.Closed:
			asker.Show(n)
			if shown[n.Question.ID] {
				delete(shown, n.Question.ID)
				out.free(-1)
			}
		}
	}
	mode, wait := d.answering(asker.Available())
	turns := &flow.Turns{
		Project: d.p, Runner: d.r, Choice: project.Choice{Provider: d.f.Provider}, Permissions: mode, AnswerIn: wait,
		Sender: frame.UserName(a.Getenv), Show: func(_ flow.Call, n record.Notice) { ask(n) },
	}
	halt := make(chan struct{})
	var why error
	go func() { // ends with the process at the latest
		if s, ok := <-d.stop.First; ok {
			why = frame.StopExitCode(s).With(nil)
			close(halt)
		}
	}()
	driver := &flow.Driver{
		Log: d.r.Log(), Questions: d.r.Questions(), Locks: paths.Locks, By: turns.Sender,
		Permissions: d.f.Permissions, Answer: turns.Answer, Team: d.calls, Limited: d.limited, Stop: halt,
		Most: d.f.most, Stay: asker.Available() || d.f.stay, Show: out.show,
		Asked: func(q interaction.Question) {
			ask(record.Asked{Question: q, Answerable: true})
			if !asker.Available() {
				d.say.Line("perlica: the flow asks: perlica pending show " + frame.ShortID(q.ID))
			}
		},
		Closed: func(q interaction.Question) { ask(record.Closed{Question: q}) },
	}
	s, err := driver.Run(ctx, d.file, d.id, d.inputs)
	out.end(s)
	d.say.Status.Clear()
	if err != nil {
		return a.explain(err, d)
	}
	out.write(change{Type: "flow.ended", ID: s.ID, State: s.Outcome()}, endText(s))
	if s.Finished == nil {
		if err := a.hints(ctx, s, &d.r.Log().Reader); err != nil {
			return err
		}
		a.Note("to continue: " + d.again)
	}
	if out.err != nil {
		return frame.ExitFailure.With(fmt.Errorf("standard output: %w", out.err))
	}
	select {
	case <-halt:
		if s.Finished == nil {
			return why
		}
	default:
	}
	if code := dialog.FlowExitCode(s); code != 0 {
		return code.With(nil)
	}
	return nil
}

// endText returns the last line of run.
func endText(s *flow.State) string {
	s.Alive = false
	text := s.ID + " " + s.Outcome()
	if s.Finished != nil {
		text += " after " + s.Ended.Sub(s.At).Round(time.Second).String()
	}
	return text
}

// explain adds a hint and an exit code to an error of the driver.
func (a *app) explain(err error, d *driving) error {
	var stopped *kernel.StoppedError
	switch {
	case errors.Is(err, flow.ErrNeedsTeam):
		return frame.WithHint(frame.ExitUsage.With(err), "%s --team", d.again)
	case errors.Is(err, flow.ErrNoTeam), errors.Is(err, flow.ErrOtherTeam), errors.Is(err, flow.ErrPersons):
		return frame.WithHint(frame.ExitUsage.With(err), "take another --id; to see this run: perlica flow show %s", d.id)
	case errors.Is(err, flow.ErrOtherFile), errors.Is(err, flow.ErrOtherInputs):
		return frame.WithHint(frame.ExitUsage.With(err), "another file or other inputs need another --id; to see this run: "+
			"perlica flow show %s", d.id)
	case errors.As(err, &stopped):
		return max(frame.StopExitCode(stopped.Stop), frame.ExitFailure).With(nil)
	}
	return frame.WithHint(frame.RefusalExitCode(err).With(err), "%s",
		cmp.Or(frame.HintOf(err), "no further step begins; to continue: "+d.again))
}
