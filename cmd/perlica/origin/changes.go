package origin

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/origin"
	"github.com/perlica/perlica/kernel/project"
)

// changesDefault is the number of changes that 'perlica changes' lists without -n.
const changesDefault = 50

type changesFlags struct {
	frame.EventFilter
	n    int
	diff bool
}

// ChangesCommand returns the command changes.
func ChangesCommand(c *frame.App) *cobra.Command {
	a := &app{c}
	var f changesFlags
	cmd := &cobra.Command{
		Use: "changes [PATH...]", Annotations: frame.ReadOnly.Annotation(),
		Short: "List the files that agents changed, and who allowed it",
		Long: `List the recorded changes of files by tool calls, the newest last. A line has the file, the
added and removed lines, the time, the run, who allowed the change, the present state, and
the first words of the input. Without --since and --before, the command lists the newest 50
changes. See docs/changes.md.

UNASKED means that Perlica recorded the change as made without a question. ALLOWED BY is
unknown if the log has neither a question about the change nor such a record. The state
compares the change with the file as it is now: as recorded, changed since, gone, or
rewritten by a later recorded change. A change is inferred if a file changed during a run
and no tool call describes the change. This needs the setting record.git.

Exit codes: 0 listed; 1 the log cannot be read; 2 usage.`,
		Example: `  perlica changes
  perlica changes --since yesterday --diff src
  perlica changes --json | jq -r '.[] | select(.decision.kind == "unasked") | .path'`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("lines") && (f.Since != "" || f.Before != "") {
				f.n = -1
			}
			if f.n == 0 || f.n < -1 {
				return frame.UsageErrorf("-n %d: it is a number of changes, or -1 for all", f.n)
			}
			return a.EmptyIfNoLog(a.changes(cmd.Context(), args, f))
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.Session, "session", "s", "",
		"only changes in this `session`: its id, the beginning or end of it, or its name")
	fl.StringVar(&f.Since, "since", "",
		"only changes since this `time`: 7d, yesterday, tuesday, '2 weeks ago', 2026-11-21")
	fl.StringVar(&f.Before, "before", "", "only changes before this `time`")
	fl.IntVarP(&f.n, "lines", "n", changesDefault, "the number of changes to list; -1 for all")
	fl.BoolVar(&f.diff, "diff", false, "show the removed and the added lines of each change")
	fl.BoolVar(&f.Json, "json", false, "print a JSON array")
	frame.CompleteFlag(cmd, "session", a.CompleteSessions)
	return cmd
}

func (a *app) changes(ctx context.Context, args []string, f changesFlags) error {
	return a.reading(ctx, func(view *origin.View, log *store.Reader, p *project.Project) error {
		q, err := f.Query(ctx, log, time.Now())
		if err != nil {
			return err
		}
		w := origin.Wanted{Since: q.Since, Before: q.Before, Session: q.Session}
		for _, arg := range args {
			w.Paths = append(w.Paths, pathsOf(p, arg)...)
		}
		list, err := view.Changes(ctx, w)
		if err != nil {
			return err
		}
		older := f.n > 0 && len(list) > f.n
		if older {
			list = list[len(list)-f.n:]
		}
		shown, tooMany, err := view.Compare(ctx, list, readPresent)
		if err == nil && f.diff {
			err = addDiffs(ctx, view, shown)
		}
		if err != nil {
			return err
		}
		if tooMany > 0 {
			a.Note(fmt.Sprintf("%d files are too many to compare with the record: name some", tooMany))
		}
		if err := a.printChanges(shown, p, f); err != nil {
			return err
		}
		if older && !f.Json {
			a.Note("there are older changes: -n -1 lists all")
		}
		return nil
	})
}

// readPresent reads a changed file as it is now. The path may lead to a folder, a pipe, a device or a large file.
// readPresent does not read these.
func readPresent(path string) ([]byte, error) { return config.ReadRegular(path, origin.MaxFile) }

// addDiffs reads the contents of the changes.
func addDiffs(ctx context.Context, view *origin.View, list []origin.Shown) (err error) {
	for i, c := range list {
		if list[i].Diff, err = view.Diff(ctx, c.Change); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printChanges(list []origin.Shown, p *project.Project, f changesFlags) error {
	switch {
	case f.Json:
		return a.PrintJSON(list)
	case len(list) == 0:
		a.Note("no recorded change matches")
		return nil
	case f.diff:
		return a.Write(func(w io.Writer) error { return writeDiffs(w, a.Styles(a.Stdout), list, p) })
	}
	g := frame.Grid{Head: []string{"WHEN", "FILE", "LINES", "RUN", "ALLOWED BY", "NOW", "INPUT"}}
	for _, c := range list {
		g.Add(cells(c, p)...)
	}
	g.DropEmpty("")
	return a.Table(g)
}

// cells returns the row of a change.
func cells(c origin.Shown, p *project.Project) []string {
	return []string{c.At.Local().Format(shortTime), frame.ShownPath(p, c.Path), lines(c.Change), frame.ShortID(c.Run),
		allowedBy(c.Decision), now(c), c.Text}
}

// lines returns the numbers of added and removed lines.
func lines(c origin.Change) string {
	switch {
	case c.Removes:
		return "file removed"
	case c.Inferred:
		return "changed"
	case c.Whole:
		return fmt.Sprintf("%d written", c.Added)
	}
	return fmt.Sprintf("+%d -%d", c.Added, c.Removed)
}

// now returns the present state of a change in words.
func now(c origin.Shown) string {
	switch {
	case c.Perhaps:
		return "perhaps changed"
	case c.Inferred && len(c.Commands) == 1:
		return "inferred: by " + c.Commands[0]
	case c.Inferred && len(c.Commands) > 1:
		return fmt.Sprintf("inferred: by one of %d commands", len(c.Commands))
	case c.Inferred:
		return "inferred: during the run"
	}
	return map[origin.State]string{origin.Present: "as recorded", origin.Partly: "changed since", origin.Absent: "gone",
		origin.Replaced: "rewritten"}[c.Now]
}

// writeDiffs writes each change with its removed and added lines.
func writeDiffs(w io.Writer, s screen.Styles, list []origin.Shown, p *project.Project) error {
	var b strings.Builder
	for i, c := range list {
		if i > 0 {
			b.WriteString("\n")
		}
		var row []string
		for _, cell := range cells(c, p) {
			if cell != "" {
				row = append(row, frame.OneLine(cell))
			}
		}
		b.WriteString(s.Bold(strings.Join(row, "  ")) + "\n")
		if c.Why != "" {
			b.WriteString(s.Dim("  "+frame.OneLine(c.Why)) + "\n")
		}
		for line := range strings.Lines(c.Diff) {
			text := screen.Sanitize(strings.TrimSuffix(line, "\n"))
			switch line[0] {
			case '+':
				text = s.Green(text)
			case '-':
				text = s.Red(text)
			}
			b.WriteString("  " + text + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
