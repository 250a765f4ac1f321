package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/schedule"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/service/notify"
)

func (a *app) dueCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "due", Annotations: frame.PersonOnly.Annotation(),
		Short: "Make the inputs that are due now, and end",
		Long: `Make the inputs that are due now, each once, and end when they are answered. For cron or a timer
that starts this command each minute. The first start makes no input: a schedule counts from the
moment at which a process first sees it.

Several of these processes may run at once. The exit codes are those of 'perlica run', the worst
of all inputs.`,
		Example: `  perlica schedule due
  * * * * *  cd ~/project && perlica schedule due      # in a crontab`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := &printer{App: a.App, work: dueOnce, asJSON: asJSON}
			return a.keep(cmd.Context(), out, func(ctx context.Context, k *schedule.Keeper, _ *project.Project) error {
				return k.Due(ctx)
			})
		},
	}
	a.AddSandboxFlag(cmd)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) runCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "run", Annotations: frame.PersonOnly.Annotation(),
		Short: "Keep the schedules until a signal ends this process",
		Long: `Keep the schedules of the project in the foreground, and print a line for each time. A changed
configuration counts at once. The exit code is 0.

SIGTERM and Ctrl-C cancel the calls that are running; a second one ends their agents.`,
		Example: "  perlica schedule run",
		Args:    frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := &printer{App: a.App, work: keepOn, asJSON: asJSON}
			err := a.keep(cmd.Context(), out, func(ctx context.Context, k *schedule.Keeper, p *project.Project) error {
				list, err := a.schedules(p)
				if err != nil {
					return err
				}
				a.Note("keeping " + frame.Count(len(list), "schedule"))
				k.Run(ctx)
				return nil
			})
			if _, printed := frame.ExitCodeOf(err); !printed {
				return nil // The error has only an exit code, and the outcomes were printed.
			}
			return err
		},
	}
	a.AddSandboxFlag(cmd)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) runNowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "run-now ID", Annotations: frame.PersonOnly.Annotation(),
		Short: "Make one input of a schedule at once, and print the answer",
		Long: `Make one input of a schedule at once, with its text, provider and permissions, and print the
answer. The planned times stay the same. The exit codes are those of 'perlica run'.`,
		Example: "  perlica schedule run-now morning",
		Args:    frame.Exactly("ID"), ValidArgsFunction: frame.CompleteFirst(a.completeIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := &printer{App: a.App, work: runNow}
			return a.keep(cmd.Context(), out, func(ctx context.Context, k *schedule.Keeper, p *project.Project) error {
				s, err := a.find(p, args[0])
				if err != nil {
					return err
				}
				if err := k.RunNow(ctx, s); err != nil {
					return frame.RefusalExitCode(err).With(err)
				}
				return nil
			})
		},
	}
	a.AddSandboxFlag(cmd)
	return cmd
}

// work is the work of a command that makes inputs.
type work int

const (
	dueOnce work = iota // the due inputs; each result is a line
	keepOn              // like dueOnce, but for ever; a flow run waits in this process for the answers to its questions
	runNow              // one input; standard output gets the text of the answer, and standard error gets the line
)

func addJSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print each event and each result as a line of JSON")
}

// answer is the result of a call in JSON.
type answer struct {
	Type     string            `json:"type"`
	Schema   int               `json:"schema"`
	Schedule string            `json:"schedule"`
	Time     time.Time         `json:"time"` // the planned time
	Result   streamjson.Result `json:"result"`
}

// keep opens the project and calls f with a Keeper that prints its events and results. It passes to f a context that
// ends at the first signal. The error has the worst exit code of all inputs.
func (a *app) keep(ctx context.Context, out *printer,
	f func(context.Context, *schedule.Keeper, *project.Project) error) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	hard, stop := frame.CatchSignals(ctx, 0)
	defer stop.Release()
	soft, end := context.WithCancelCause(hard)
	defer end(nil)
	go func() {
		select {
		case s := <-stop.First:
			end(&kernel.StoppedError{Stop: s})
		case <-hard.Done():
		}
	}()
	r, done, err := a.Open(ctx, p)
	if err != nil {
		return frame.LogNotOpened(err)
	}
	stopNotifying := notify.Start(p, notify.Options{Version: a.Version, Terminal: a.Terminal()})
	err = a.keepOpen(hard, soft, r, out, func(k *schedule.Keeper) error { return f(soft, k, p) })
	stopNotifying()
	if cerr := done(); err == nil && cerr != nil {
		a.Note("warning: closing the log: " + cerr.Error()) // The outcomes are on disk, so a warning is enough.
	}
	if err == nil && out.failed != nil {
		err = out.failed
	}
	if code := frame.WorstExitCode(out.codes...); err == nil && code != 0 {
		return code.With(nil)
	}
	return err
}

// keepOpen ends the runs of processes that have died, and calls f with a Keeper.
func (a *app) keepOpen(hard, soft context.Context, r *kernel.Runner, out *printer,
	f func(*schedule.Keeper) error) error {
	if r.Unfinished() {
		recovered, err := r.Recover(soft)
		if err != nil {
			return frame.LogErrorBeforeSend(err)
		}
		for _, res := range recovered {
			a.Note(frame.CutOff(res.Run))
		}
	}
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	w := schedule.Work{Runner: r, Load: func() (*project.Project, error) { return a.Locate(nil) },
		Answered: out.answered, Driven: out.driven, Stay: out.work == keepOn}
	k, err := w.Keeper(hard, p)
	if err != nil {
		return err
	}
	k.Show = out.show
	return f(k)
}

// printer prints the events of a Keeper and the results of its calls.
type printer struct {
	*frame.App
	work   work
	asJSON bool       // each event and each result is a line of JSON
	mu     sync.Mutex // guards the fields below, and the writing
	codes  []frame.ExitCode
	failed error // the error of standard output
}

// show prints an event of the Keeper. If err is not nil, the Keeper has failed to look for due inputs, and show
// prints this error.
func (o *printer) show(e event.Event, err error) {
	if err != nil {
		o.Complain(err)
		return
	}
	if o.asJSON {
		o.printObject(struct {
			Type    event.Type      `json:"type"`
			Schema  int             `json:"schema"`
			Input   event.InputID   `json:"input_id,omitempty"`
			Payload json.RawMessage `json:"payload"`
		}{e.Type, streamjson.Schema, e.Input, e.Payload})
		return
	}
	text := strings.TrimPrefix(string(e.Type), "schedule.") + ": " + report.Summarize(e, nil)
	o.print(screen.Sanitize(frame.OneLine(text)))
}

// answered prints the result of a call.
func (o *printer) answered(c schedule.Call, res record.Result, err error) {
	o.mu.Lock()
	code := frame.RunExitCode(res, false)
	if err != nil {
		code = frame.RefusalExitCode(err)
	}
	o.codes = append(o.codes, code)
	o.mu.Unlock()
	at := c.ID + " at " + shown(c.Time, c.Zone())
	switch {
	case o.asJSON:
		kind := provider.ErrorType("")
		if err != nil {
			res, kind = record.Result{Input: c.Input, Provider: c.Provider}, frame.RefusalErrorType(err)
		}
		o.printObject(answer{"schedule.answered", streamjson.Schema, c.ID, c.Time.UTC(),
			streamjson.NewResult(res, err, kind)})
		return
	case err != nil && o.work == runNow:
		return // the command ends with the error
	case err != nil:
		o.Complain(fmt.Errorf("%s: %w", at, err))
		return
	}
	line := schedule.OutcomeWords(string(res.Outcome)).Text + ": " + at + ", run " + frame.ShortID(res.Run)
	if res.Err != nil {
		line += ": " + frame.ProviderMessage(res.Err)
	}
	if o.work != runNow {
		o.print(screen.Sanitize(frame.OneLine(line)))
		return
	}
	o.Note(line)
	if res.Text != "" {
		o.print(screen.Sanitize(strings.TrimSuffix(res.Text, "\n")))
	}
}

// driven prints the state of a flow run.
func (o *printer) driven(c schedule.Call, s *flow.State) {
	s.Alive = false
	o.mu.Lock()
	o.codes = append(o.codes, dialog.FlowExitCode(s))
	o.mu.Unlock()
	if o.asJSON {
		o.printObject(struct {
			Type     string    `json:"type"`
			Schema   int       `json:"schema"`
			Schedule string    `json:"schedule"`
			Time     time.Time `json:"time"`
			Flow     string    `json:"flow_run"`
			Outcome  string    `json:"outcome"`
		}{"schedule.driven", streamjson.Schema, c.ID, c.Time.UTC(), s.ID, s.Outcome()})
		return
	}
	o.print(screen.Sanitize(frame.OneLine(schedule.OutcomeWords(s.Outcome()).Text + ": " + c.ID + " at " +
		shown(c.Time, c.Zone()) + ", flow run " + s.ID)))
}

// printObject prints a value as a line of JSON.
func (o *printer) printObject(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		o.Complain(err)
		return
	}
	o.print(string(b))
}

// print prints a text and a newline on standard output.
func (o *printer) print(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.Write(func(w io.Writer) error {
		_, err := fmt.Fprintln(w, text)
		return err
	})
	if o.failed == nil {
		o.failed = err
	}
}
