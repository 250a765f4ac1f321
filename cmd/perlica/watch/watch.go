// Package watch is the command that follows a session of another process. It also has the command that sends an
// input to such a session and the command that cancels its turn.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/sessions"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command watch.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	var turns int
	var thoughts, inTeam bool
	cmd := &cobra.Command{
		Use: "watch [SESSION]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Follow a session of another terminal",
		Long: `Show the inputs, answers, tool calls and questions of a session while they happen, until
Ctrl-C. The session may belong to any process. SESSION is a session's name, its id, or a unique
beginning or end of the id. Without SESSION it is the session that was used last. Answers go to
standard output, everything else to standard error.

At a terminal you can also answer the session's questions here. The first answer counts, no
matter where it comes from. Watching changes nothing.

With --team SESSION is a session of a worker. Its events come from the copy of the worker's log
on the team's hub, so they appear later. 'perlica team pending' answers its questions.`,
		Example: `  perlica watch
  perlica watch refactoring -n 5`,
		Args: frame.Between(0, "SESSION"), ValidArgsFunction: frame.CompleteFirst(a.CompleteSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			if inTeam {
				return a.watchTeam(cmd.Context(), args, turns, thoughts)
			}
			return a.watchSession(cmd.Context(), args, turns, thoughts)
		},
	}
	cmd.Flags().IntVarP(&turns, "turns", "n", 1, "first show this number of earlier turns")
	cmd.Flags().BoolVar(&inTeam, "team", false,
		"read the copies of all workers' logs on the team's hub; see docs/team.md")
	cmd.Flags().BoolVar(&thoughts, "thoughts", false, "show the agent's thoughts")
	return cmd
}

// untilStopped calls f with a context that Ctrl-C ends. Ctrl-C is the normal end of watching. After it, untilStopped
// returns only an error about a damaged log.
func untilStopped(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	frame.SurviveBrokenPipes()
	err := f(ctx)
	if ctx.Err() != nil && !errors.As(err, new(*event.DamagedError)) {
		return nil
	}
	return err
}

func (a *app) watchSession(ctx context.Context, args []string, turns int, thoughts bool) error {
	return untilStopped(ctx, func(ctx context.Context) error { return a.watchHere(ctx, args, turns, thoughts) })
}

func (a *app) watchHere(ctx context.Context, args []string, turns int, thoughts bool) error {
	return a.Reading(ctx, func(log *store.Reader, p *project.Project) error {
		s, err := a.sessionToWatch(ctx, log, p, args)
		if err != nil {
			return err
		}
		paths, err := p.Workspace.Context(p.Config.ContextID)
		if err != nil {
			return err
		}
		return a.followSession(ctx, s, "", thoughts, func(ctx context.Context) iter.Seq2[record.Notice, error] {
			return record.Follow(ctx, log, paths.Locks, s.ID, turns)
		})
	})
}

// followSession shows the notices of a session. worker names the worker of the session, and is empty for this
// machine.
func (a *app) followSession(ctx context.Context, s sessions.Session, worker string, thoughts bool,
	notices func(context.Context) iter.Seq2[record.Notice, error]) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	w := newWatcher(ctx, a, thoughts, end)
	defer w.closeView()
	where := ""
	if w.worker = worker; worker != "" {
		where = ", at " + worker
		w.say.Elsewhere = " --team"
	}
	w.printNote("watching %s with %s%s; Ctrl-C ends it", frame.DescribeSession(s), s.Provider, where)
	for n, err := range notices(ctx) {
		if err != nil {
			return err
		}
		w.showNotice(n)
	}
	return w.say.Failed
}

// sessionToWatch finds the session that the arguments name. Without arguments it finds the session that was used
// last.
func (a *app) sessionToWatch(ctx context.Context, log *store.Reader, p *project.Project,
	args []string) (s sessions.Session, err error) {
	err = frame.ViewSessions(ctx, log, p, func(view *sessions.View) (err error) {
		s, err = findSession(ctx, view, args)
		return err
	})
	return s, err
}

// findSession finds the session that the arguments name. Without arguments it finds the session that was used last.
func findSession(ctx context.Context, view *sessions.View, args []string) (sessions.Session, error) {
	if len(args) > 0 {
		return view.Find(ctx, args[0])
	}
	return view.Latest(ctx)
}

// watcher shows a session of another process in the same way as the chat shows its own.
type watcher struct {
	a     *app
	say   *dialog.Printer
	view  *dialog.TurnView // the view of the turn that is on the screen
	asker *dialog.Asker
	held  bool // A process that has recorded its name has the session open.

	worker string // the worker that has the session; "" for this machine
	by     string
}

func newWatcher(ctx context.Context, a *app, thoughts bool, end context.CancelFunc) *watcher {
	// Ctrl-C at a question, or a closed pipe, ends the watching.
	stop := &frame.Stopper{First: make(chan fact.Stop, 1), OnStop: end, End: func(error) { end() }}
	w := &watcher{a: a, say: dialog.NewPrinter(ctx, a.App, dialog.Flags{Format: "text", Thoughts: thoughts}, stop)}
	w.view = w.newView("")
	w.asker = dialog.NewAsker(a.App, nil, w.say)
	w.asker.Stop = stop
	w.asker.AnswerTo = func(ctx context.Context, q interaction.Question, answer interaction.Answer) error {
		// The log is open for writing only during this call.
		return a.Writing(ctx, func(r *kernel.Runner, _ *project.Project) error {
			if err := a.MayAnswer(r, q); err != nil {
				return err
			}
			return r.AnswerQuestion(ctx, q, answer)
		})
	}
	return w
}

func (w *watcher) closeView() {
	w.endTurn()
	w.asker.Close()
	_ = w.say.Status.Close() // If the terminal is closed, there is no line to remove.
}

func (w *watcher) printNote(format string, args ...any) { w.say.Note(fmt.Sprintf(format, args...)) }

// showNotice shows a notice. A watcher needs its own form for some notices, and the Printer shows the others.
func (w *watcher) showNotice(n record.Notice) {
	if u, ok := n.(record.Updated); ok {
		w.view.Update(u)
		return
	}
	w.view.Flush()
	switch n := n.(type) {
	case record.Received:
		w.showInput(n)
	case record.Asked:
		w.say.Show(n)
		if n.Answerable && w.worker != "" {
			w.printNote("%s; 'perlica team pending' answers it", frame.QuestionTitle(n.Question))
			n.Answerable = false // A question of a worker cannot be answered with this command.
		}
		if n.Answerable && !w.asker.Available() {
			w.printNote("%s; answer with 'perlica pending show %s'", frame.QuestionTitle(n.Question), frame.ShortID(n.ID))
		}
		w.asker.Show(n)
	case record.Closed:
		w.say.Show(n)
		w.asker.Show(n)
	case record.Stopping:
		w.printNote("stopping: %s", n.Why)
	case record.Finished:
		w.endTurn()
		clear(w.say.Tools)
		w.say.Waiting = 0
		w.say.Explain(n.Result)
		if text := w.view.Usage(n.Result); text != "" {
			w.say.Line(w.say.Styles.Dim(text))
		}
	case record.Held:
		if w.held = n.By != ""; w.held { // By is empty for a single run, which its input announces.
			w.by = fmt.Sprintf("the %s (process %d)", n.By, n.PID)
			w.printNote("%s has held the session since %s", w.by, n.Since.Local().Format(time.DateTime))
		}
	case record.Freed:
		w.showFreed(n)
	default:
		w.say.Show(n)
	}
}

// newView returns the view of a turn.
func (w *watcher) newView(run event.RunID) *dialog.TurnView {
	return dialog.NewTurnView(w.a.App, w.say,
		func(string) string { return "perlica log show " + frame.ShortID(run) + w.say.Elsewhere })
}

// showInput shows an input and its sender.
func (w *watcher) showInput(n record.Received) {
	w.view = w.newView(n.Run)
	w.say.Status.Restart()
	s := w.say.Styles
	who := fmt.Sprintf("%s (%s)  ", frame.OneLine(n.Sender), frame.OneLine(n.Source))
	if n.Pruned || n.Damage != "" {
		who = ""
	}
	w.say.Status.Print(func(out io.Writer) {
		fmt.Fprintln(out, s.Dim(fmt.Sprintf("\n%s  %srun %s", n.At.Local().Format(time.DateTime), who, frame.ShortID(n.Run))))
		switch {
		case n.Damage != "":
			fmt.Fprintln(out, s.Red(n.Damage))
			return
		case n.Pruned:
			fmt.Fprintln(out, s.Dim("(its text was removed)"))
			return
		}
		for line := range strings.SplitSeq(strings.TrimRight(screen.Sanitize(n.Text), "\n"), "\n") {
			fmt.Fprintln(out, s.Cyan("> ")+line)
		}
	})
}

// endTurn ends the turn on the screen, so that later text begins on a new line.
func (w *watcher) endTurn() {
	w.view.End()
	if w.say.Answer != nil && !w.say.Closed {
		_ = w.say.Answer.Close() // An error means that the terminal is closed, so nobody can read the text.
	}
	w.say.Status.Clear()
}

// showFreed shows that the holder has left the session. It also shows whether a turn was cut off.
func (w *watcher) showFreed(n record.Freed) {
	w.endTurn()
	switch {
	case n.Run != "":
		w.printNote(
			"the process that ran this turn is gone; 'perlica log show %s' tells what is known, and the next start records "+
				"the outcome", frame.ShortID(n.Run))
	case w.held:
		w.printNote("%s has left the session", w.by)
	}
	w.held = false
}
