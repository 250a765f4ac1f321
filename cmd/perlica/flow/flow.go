// Package flow is the command that runs, shows and changes flows.
//
// The package kernel/flow decides about the steps. Package flow reads the flags, shows the changes and chooses the exit
// code.
package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/service/team"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command flow.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	return frame.Group("flow", "Run a graph of calls and questions",
		`Run a flow: a graph of single calls and of questions to people, written in a TOML file.
Each step makes at most one call, even after a crash or in two processes. See docs/flows.md.`,
		a.runCommand(), a.checkCommand(), a.showCommand(), a.listCommand(), a.cancelCommand(), a.retryCommand())
}

// flowFile returns the path of a flow. The name is the path of a file, or the name of a file in the project's
// folder flows.
func flowFile(p *project.Project, name string) string {
	if _, err := os.Stat(name); err == nil || strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".toml") {
		return name
	}
	return filepath.Join(p.Workspace.Root, "flows", name+".toml")
}

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE|NAME", Annotations: frame.ReadOnly.Annotation(),
		Short: "Check the file of a flow",
		Long: `Check the file of a flow: keys, names, needs, expressions and the files that it names.
Nothing is sent. Exit codes: 0 the flow can run; 2 it cannot.`,
		Example: `  perlica flow check flows/review.toml`,
		Args:    frame.Exactly("FILE|NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.LocateToRead()
			if err != nil {
				return err
			}
			f, err := flow.Load(flowFile(p, args[0]))
			if err != nil {
				return err
			}
			for _, s := range f.Steps {
				if s.Schema == "" {
					continue
				}
				if _, err := project.ParseSchema(s.SchemaText); err != nil {
					return frame.UsageErrorf("step %s: schema %s: %w", s.ID, s.Schema, err)
				}
			}
			return a.Say("%s: %d steps, %d inputs", f.Name, len(f.Steps), len(f.Inputs))
		},
	}
}

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Annotations: frame.ReadOnly.Annotation(),
		Aliases: []string{"ls"},
		Short:   "List the flow runs, the newest first",
		Long:    `List the flow runs of this context, the newest first, each with its state.`,
		Example: `  perlica flow list
  perlica flow list --json | jq -r '.[].id'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := []listedFlow{}
			err := a.Reading(cmd.Context(), func(log *store.Reader, p *project.Project) (err error) {
				list, err = listFlows(cmd.Context(), log, p)
				return err
			})
			if err := a.EmptyIfNoLog(err); err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			if len(list) == 0 {
				a.Note("there is no flow run; perlica flow run FILE makes one")
				return nil
			}
			g := frame.Grid{Head: []string{"RUN", "FLOW", "STATE", "STARTED", "BY"}}
			for _, l := range list {
				g.Add(l.ID, l.Name, l.State, l.Started.Local().Format(time.DateTime), l.By)
			}
			return a.Table(g)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// listedFlow is a flow run in the output of list.
type listedFlow struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	State   string     `json:"state"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	By      string     `json:"by"`
}

func listFlows(ctx context.Context, log *store.Reader, p *project.Project) ([]listedFlow, error) {
	all, err := flow.List(ctx, log)
	if err != nil {
		return nil, err
	}
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return nil, err
	}
	list := []listedFlow{}
	for _, s := range slices.Backward(all) {
		l := listedFlow{s.ID, s.Name, s.Outcome, s.Started, nil, s.By}
		if s.Outcome != "" {
			l.Ended = &s.Ended
		} else if state, err := flow.Look(ctx, log, paths.Locks, s.ID); err == nil {
			l.State = state.Outcome()
		}
		list = append(list, l)
	}
	return list, nil
}

// looking reads the state of the flow run that ref names. It calls f with this state and the log.
func (a *app) looking(ctx context.Context, ref string, f func(*flow.State, *store.Reader) error) error {
	return a.Reading(ctx, func(log *store.Reader, p *project.Project) error {
		paths, err := p.Workspace.Context(p.Config.ContextID)
		if err != nil {
			return err
		}
		s, err := lookAt(ctx, log, paths.Locks, ref)
		if err != nil {
			return err
		}
		return f(s, log)
	})
}

func lookAt(ctx context.Context, log *store.Reader, locks, ref string) (*flow.State, error) {
	id, err := flow.FindRun(ctx, log, ref)
	if err == nil {
		return flow.Look(ctx, log, locks, id)
	}
	if errors.Is(err, flow.ErrNoRun) {
		err = frame.WithHint(frame.ExitSession.With(err), "see 'perlica flow list'")
	}
	return nil, err
}

func (a *app) showCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "show [RUN]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show a flow run: its steps with states, times, costs and questions",
		Long: `Show a flow run, from the log alone: the graph with the state, the time and the cost of each
step. RUN is its id or the beginning of it; without it, the flow run that began last.`,
		Example: `  perlica flow show
  perlica flow show review-3f2a --format mermaid`,
		Args: frame.Between(0, "RUN"), ValidArgsFunction: frame.CompleteFirst(a.completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			write := map[string]func(*flow.State) error{
				"tree":    func(s *flow.State) error { return a.Table(tree(s)) },
				"mermaid": func(s *flow.State) error { return a.Write(s.WriteMermaid) },
				"dot":     func(s *flow.State) error { return a.Write(s.WriteDot) },
				"json":    func(s *flow.State) error { return a.PrintJSON(s) },
			}[format]
			if write == nil {
				return frame.UsageErrorf("--format is tree, mermaid, dot or json, not %q", format)
			}
			return a.looking(cmd.Context(), strings.Join(args, ""), func(s *flow.State, log *store.Reader) error {
				if format != "tree" {
					return write(s)
				}
				if err := a.Say("%s", heading(s)); err != nil {
					return err
				}
				if err := write(s); err != nil {
					return err
				}
				return a.hints(cmd.Context(), s, log)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "tree", "the `format`: tree, mermaid, dot or json")
	frame.CompleteFlag(cmd, "format", cobra.FixedCompletions([]string{"tree", "mermaid", "dot", "json"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// hints prints the commands that a person may need next.
func (a *app) hints(ctx context.Context, s *flow.State, log event.Reader) error {
	for _, st := range s.Steps {
		if st.Phase == flow.Asked && st.Ask != "" {
			id, err := s.OpenQuestion(ctx, log, st)
			if err != nil {
				return err
			}
			if id != "" {
				a.Note(fmt.Sprintf("step %s asks: perlica pending show %s", st.ID, frame.ShortID(id)))
			}
		}
		for i, u := range append([]flow.Unit{st.Unit}, st.Items...) {
			if u.Phase != flow.Unknown || i == 0 && st.Expanded {
				continue
			}
			if u.Run != "" && s.Started.Team == "" {
				a.Note(fmt.Sprintf("step %s: the outcome of its call is unknown; after a look at the facts: perlica log "+
					"resolve %s", st.ID, frame.ShortID(u.Run)))
				break
			}
			place := st.ID
			if i > 0 {
				place += fmt.Sprint("/", i)
			}
			why := "the log lost its call, which may have left"
			if s.Started.Team != "" {
				why = "the outcome of its call is unknown"
			}
			a.Note(fmt.Sprintf("step %s: %s; after a look at the facts: perlica flow retry %s %s", st.ID, why, s.ID, place))
			break
		}
	}
	return nil
}

// heading returns the first line of a shown flow run.
func heading(s *flow.State) string {
	text := s.ID + ": " + s.Flow.Name + " " + s.Outcome()
	if s.Finished != nil {
		return text + " after " + s.Ended.Sub(s.At).Round(time.Second).String()
	}
	return text
}

// tree returns the steps as a table. A step is further to the right than the steps that it needs.
func tree(s *flow.State) frame.Grid {
	g := frame.Grid{Head: []string{"STEP", "STATE", "ITEMS", "TIME", "COST", "NOTE"}}
	for _, st := range s.Steps {
		note := cmp.Or(st.Fault().String(), st.Answer)
		if st.Phase == flow.Waiting && len(st.Needs) > 0 && note == "" {
			note = "needs " + strings.Join(st.Needs, ", ")
		}
		if workers := st.Workers(); workers != "" {
			note = strings.TrimSpace(note + " by " + workers)
		}
		took := ""
		if d := st.Time(); d > 0 {
			took = d.Round(10 * time.Millisecond).String()
		}
		cost := ""
		for currency, sum := range st.Costs() {
			cost += fmt.Sprintf("%.4g %s ", sum, currency)
		}
		name := strings.Repeat("· ", s.Depth(st)) + st.ID
		g.Add(name, string(st.Phase), st.Progress(), took, strings.TrimSpace(cost), note)
	}
	return g
}

func (a *app) completeRuns(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	err := a.Reading(cmd.Context(), func(log *store.Reader, p *project.Project) error {
		list, err := flow.List(cmd.Context(), log)
		for _, s := range list {
			ids = append(ids, s.ID+"\t"+s.Name)
		}
		return err
	})
	return frame.Completed(ids, err)
}

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel RUN", Annotations: frame.PersonOnly.Annotation(),
		Short: "End a flow run",
		Long: `End a flow run and the flows inside of it. No further step begins, Perlica stops the running
calls, and it closes the open questions. The command returns when the process that drives
the flow run has ended its calls.`,
		Example: `  perlica flow cancel review-3f2a`,
		Args:    frame.Exactly("RUN"), ValidArgsFunction: frame.CompleteFirst(a.completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Writing(cmd.Context(), func(r *kernel.Runner, p *project.Project) error {
				return a.cancel(cmd.Context(), r, p, args[0])
			})
		},
	}
}

func (a *app) cancel(ctx context.Context, r *kernel.Runner, p *project.Project, ref string) error {
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return err
	}
	s, err := lookAt(ctx, &r.Log().Reader, paths.Locks, ref)
	if err != nil {
		return err
	}
	by := frame.UserName(a.Getenv)
	stop := fact.Stop{By: streamjson.ByUser, Why: "perlica flow cancel by " + by, Person: by}
	err = flow.End(ctx, r, paths.Locks, s, stop)
	if s.Started.Team != "" { // the process that handed the inputs over may be gone
		err = errors.Join(err, team.Use(ctx, p, a.Version, func(t *team.Team) error {
			return t.StopFlow(ctx, r.Log(), s.ID, by)
		}))
	}
	if err != nil {
		return err
	}
	return a.Say("the flow run %s is cancelled", s.ID)
}

func (a *app) retryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "retry RUN STEP[/ITEM]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Let a step of a flow run make a new call",
		Long: `Let a failed step, or a step with an unknown outcome, make a new call with a new input. Its work
may then be done twice, so first find out the result of the first call. The next 'perlica flow
run' with this flow run's id makes the new call.`,
		Example: `  perlica flow retry review-3f2a verdict
  perlica flow retry review-3f2a review/17`,
		Args: frame.Exactly("RUN", "STEP"), ValidArgsFunction: frame.CompleteFirst(a.completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			step, number, items := strings.Cut(args[1], "/")
			item, err := strconv.Atoi(number)
			if items && (err != nil || item < 1) {
				return frame.UsageErrorf("%s is not a number of an item", number)
			}
			return a.Writing(cmd.Context(), func(r *kernel.Runner, p *project.Project) error {
				paths, err := p.Workspace.Context(p.Config.ContextID)
				if err != nil {
					return err
				}
				s, err := lookAt(cmd.Context(), &r.Log().Reader, paths.Locks, args[0])
				if err != nil {
					return err
				}
				input, err := flow.Retry(cmd.Context(), r.Log(), s, step, item, frame.UserName(a.Getenv))
				if err != nil {
					return err
				}
				return a.Say("the next call has the input id %s", input)
			})
		},
	}
}

// change is a change of a flow run in the output of run --json.
type change struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Step  string `json:"step,omitempty"`
	Item  int    `json:"item,omitempty"`
	Of    int    `json:"of,omitempty"`
	State string `json:"state"`
	Run   string `json:"run_id,omitempty"`
	Error string `json:"error,omitempty"`
	message.Coded
}

// printer shows the changes of a flow run. The driver calls its methods one at a time.
type printer struct {
	a      *app
	asJSON bool
	status *screen.StatusLine
	graph  *graph          // nil unless the running graph is drawn
	live   *screen.Drawing // of the graph
	err    error           // the first error of standard output
}

// drawGraph lets the printer draw the graph in place of lines for the changes. Standard output and standard error
// must be a terminal that can move its cursor. The caller must call the function "stop" at the end.
func (p *printer) drawGraph(run string) (stop func()) {
	a := p.a
	if p.asJSON || screen.StatusWidth(a.Stderr, a.Getenv) == nil || !screen.IsTerminal(a.Stdout) {
		return func() {}
	}
	p.graph = &graph{styles: a.Styles(a.Stdout), outer: run, runs: map[string][]row{}}
	height := func() int { return screen.TerminalHeight(a.Stdout) }
	p.live = screen.NewDrawing(a.Stdout, p.status, height, p.graph.draw)
	resizes, ignore := frame.TerminalResizes()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-resizes:
				p.status.Resized()
				p.change(func() {})
			case <-done:
				return
			}
		}
	})
	return func() {
		ignore()
		close(done)
		wg.Wait()
	}
}

// change changes the drawn graph. An error of the terminal needs no report, because nobody sees the terminal then.
func (p *printer) change(f func()) { _ = p.live.Change(f) }

// free changes the number of open questions. While a question is open, the graph is not drawn, because the
// question's card needs all rows of the screen.
func (p *printer) free(more int) {
	if p.live != nil {
		p.change(func() { p.graph.hidden += more })
	}
}

// end writes the last state of the flow run in place of the drawing. If s is nil, it only removes the drawing.
func (p *printer) end(s *flow.State) {
	if p.live == nil {
		return
	}
	if s == nil {
		_ = p.live.Leave(func(int) []string { return nil }) // for the error, see change
		return
	}
	p.change(func() {
		delete(p.graph.runs, s.ID)
		p.graph.update(s, nil)
	})
	_ = p.live.Leave(func(columns int) []string { return p.graph.lay(p.graph.list(s.ID, 0), columns) })
}

// show prints one change.
func (p *printer) show(s *flow.State, st *flow.StepState, item int) {
	c := change{Type: "flow.started", ID: s.ID, State: s.Outcome()}
	text := "flow run " + s.ID
	if st != nil {
		u := st.Unit
		text = s.ID + " " + st.ID
		if item > 0 {
			u = st.Items[item-1]
			text += fmt.Sprintf(" %d/%d", item, len(st.Items))
		}
		c = change{"flow.step", s.ID, st.ID, item, len(st.Items), string(u.Phase), string(u.Run), u.Error, u.Said}
		text += " " + string(u.Phase)
		if item == 0 && st.ForEach != "" && !st.Expanded && u.Phase == flow.Waiting {
			return
		}
		if item == 0 && st.Expanded && u.Phase == flow.Waiting {
			text = fmt.Sprintf("%s %s %d items", s.ID, st.ID, len(st.Items))
		}
		if u.Answer != "" {
			text += ": " + u.Answer
		}
		if u.Error != "" {
			text += ": " + u.Error
		}
		if p.graph == nil || s.ID == p.graph.outer {
			p.status.Set(statusText(s))
		}
	}
	if p.graph != nil {
		p.change(func() { p.graph.update(s, st) })
		return
	}
	p.write(c, text)
}

func (p *printer) write(c change, text string) {
	p.status.Print(func(io.Writer) {
		err := p.a.Write(func(w io.Writer) error {
			if p.asJSON {
				enc := json.NewEncoder(w)
				enc.SetEscapeHTML(false)
				return enc.Encode(c)
			}
			_, err := fmt.Fprintln(w, frame.OneLine(text))
			return err
		})
		p.err = cmp.Or(p.err, err)
	})
}

// statusText returns the text of the status line.
func statusText(s *flow.State) string {
	done := 0
	var running []string
	for _, st := range s.Steps {
		switch st.Phase {
		case flow.Done, flow.Failed, flow.Skipped:
			done++
		case flow.Running, flow.Asked:
			running = append(running, strings.TrimSpace(st.ID+" "+st.Progress()))
		}
	}
	return fmt.Sprintf("%d of %d steps; %s", done, len(s.Steps), strings.Join(running, ", "))
}
