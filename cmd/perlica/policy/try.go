package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/hindsight"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
)

// pastFlags select recorded questions.
type pastFlags struct {
	since     string
	all, json bool
}

func (f *pastFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.since, "since", "",
		"only questions since this `time`: 30d, yesterday, '2 weeks ago', 2026-11-21 (default: all)")
	fl.BoolVarP(&f.all, "all", "a", false, "the logs of all your projects")
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
}

func (a *app) policyTryCommand() *cobra.Command {
	var f pastFlags
	var file string
	cmd := &cobra.Command{
		Use: "try [RULE…] [--file FILE]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Judge the recorded questions again with other rules",
		Long: `Judge each recorded question, and each decision that Perlica made without a person, again. A
RULE has an effect (allow, ask or deny) and the words of a command, as in the configuration.
The RULEs are added to the present rules of each project. With --file, the rules of that
file replace the present ones. The rules that --allow and --deny gave to a single run still count for it.

A question is saved if a rule would have answered it. A question that a person denied and the
rules would allow is marked as AGAINST. The mode and remembered answers count as recorded:
if no rule decides, a person is asked as before. Nothing is run, asked or recorded.

A request is read again from the agent's recorded line. If the result is not the recorded
one, for example because a link leads elsewhere now, the question cannot be judged again.
Such questions are counted and named.`,
		Example: `  perlica policy try 'allow go test ...' 'deny git push ...'
  perlica policy try --file new.toml --since 30d
  perlica policy try 'allow make ...' --json | jq .against`,
		ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.policyTry(cmd.Context(), f, file, args)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&file, "file", "", "a configuration `file` with the [[policy.rule]] tables that count instead")
	return cmd
}

func (a *app) policyTry(ctx context.Context, f pastFlags, file string, args []string) error {
	var added []policy.Rule
	for _, arg := range args {
		r, err := hindsight.ParseRule(arg)
		if err != nil {
			return frame.WithHint(frame.UsageErrorf("%w", err), "for example: perlica policy try 'allow go test ...'")
		}
		added = append(added, r)
	}
	present, list, damaged, err := a.pastQuestions(ctx, f)
	if err != nil {
		return err
	}
	var rules []policy.Rule
	if file != "" {
		present = nil
		if rules, err = config.ReadRules(file); err != nil {
			return frame.UsageErrorf("%w", err)
		}
	}
	judge, err := hindsight.NewJudge(present, slices.Concat(rules, added))
	if err != nil {
		return frame.UsageErrorf("%w", err)
	}
	t, err := judge.Try(ctx, list)
	if err != nil {
		return err
	}
	return errors.Join(a.showTrial(f.json, t), damaged)
}

func (a *app) showTrial(asJSON bool, t hindsight.Trial) error {
	return a.Show(asJSON, t, func(w io.Writer, s screen.Styles) error {
		return writeTrial(w, s, screen.TerminalWidth(a.Stdout), t)
	})
}

// pastQuestions returns the recorded questions that the flags select, and the present rules of each project. The
// result "damaged" is an error that names the damaged logs. The list has the questions of such a log, but questions
// with damaged events cannot be judged.
func (a *app) pastQuestions(ctx context.Context, f pastFlags) (present map[string][]policy.Rule,
	list []hindsight.Question, damaged, err error) {
	since, _, err := frame.ParseTimeRange(f.since, "", time.Now())
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := a.Locate(nil)
	if err != nil {
		return nil, nil, nil, err
	}
	present = map[string][]policy.Rule{p.Workspace.Root: p.Config.Rules}
	at := shell.Place{Home: p.Dirs.Home, Temp: project.TempDirs(), Own: p.OwnFolders()}
	if !f.all {
		err = a.EmptyIfNoLog(a.Reading(ctx, func(log *store.Reader, _ *project.Project) (err error) {
			list, err = a.readPast(ctx, log, p.Workspace.Root, at, since)
			return err
		}))
		if errors.As(err, new(*event.DamagedError)) {
			damaged, err = err, nil
		}
		return present, list, damaged, err
	}
	logs, err := project.List(p.Dirs)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, u := range logs {
		if u.Gone {
			continue
		}
		at.Own = slices.Clone(at.Own) // the questions of the previous log keep their list
		at.Own[0] = (&config.Workspace{Root: u.Dir}).Dir()
		var some []hindsight.Question
		if _, known := present[u.Dir]; !known {
			var other *project.Project
			other, err = a.FindProject(u.Dir, nil)
			present[u.Dir] = other.Config.Rules
		}
		if err == nil {
			some, err = a.readPastOf(ctx, p.Dirs, u, at, since)
		}
		if errors.As(err, new(*event.DamagedError)) {
			damaged, err = errors.Join(damaged, fmt.Errorf("%s: %w", u.Log, err)), nil
		}
		if err != nil {
			a.Note("not counted: " + u.Log + ": " + err.Error())
			continue
		}
		list = append(list, some...)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Asked.Before(list[j].Asked) })
	return present, list, damaged, nil
}

// readPast reads the questions of a log, and shows the progress on a terminal.
func (a *app) readPast(ctx context.Context, log *store.Reader, dir string, at shell.Place,
	since time.Time) ([]hindsight.Question, error) {
	progress, done := a.Progress(ctx, "reading the questions", log)
	defer done()
	return hindsight.Read(ctx, log, dir, at, since, func(seq event.Seq) { progress(int64(seq)) })
}

func (a *app) readPastOf(ctx context.Context, dirs config.Dirs, u project.Used, at shell.Place,
	since time.Time) (list []hindsight.Question, err error) {
	log, err := project.OpenLogToShow(ctx, dirs, u.Log)
	if err != nil {
		return nil, err
	}
	defer frame.CloseShown(log, &err)
	return a.readPast(ctx, log, u.Dir, at, since)
}

// writeTrial prints the counts and then one table for each kind of question.
func writeTrial(w io.Writer, s screen.Styles, width int, t hindsight.Trial) error {
	if _, err := fmt.Fprintf(w, "%s to a person: the rules would answer %d of them\n",
		frame.Count(t.Questions, "question"), t.Saved); err != nil {
		return err
	}
	plain := func(text string) string { return text }
	for _, table := range []struct {
		title string
		style func(string) string
		holds func(hindsight.Judged) bool
	}{
		{"AGAINST: a person denied %s that the rules would allow", s.Red,
			func(j hindsight.Judged) bool { return j.Against }},
		{"saved: %s", plain, func(j hindsight.Judged) bool { return j.Saved() && !j.Against }},
		{"Perlica would decide %s in another way than it did", plain,
			func(j hindsight.Judged) bool { return !j.Person && j.Why == "" }},
		{"%s cannot be judged again", s.Dim, func(j hindsight.Judged) bool { return j.Why != "" }},
	} {
		var list []hindsight.Judged
		for _, j := range t.List {
			if table.holds(j) {
				list = append(list, j)
			}
		}
		if len(list) == 0 {
			continue
		}
		title := fmt.Sprintf(table.title, frame.Count(len(list), "question"))
		if _, err := fmt.Fprintln(w, "\n"+table.style(title)); err != nil {
			return err
		}
		if err := writeJudged(w, s, width, list, table.style); err != nil {
			return err
		}
	}
	return nil
}

// writeJudged prints a table of questions. The parameter "style" adds colours to a row.
func writeJudged(w io.Writer, s screen.Styles, width int, list []hindsight.Judged, style func(string) string) error {
	g := frame.Grid{Head: []string{"RUN", "ASKED", "ANSWER", "NOW", "WHAT", "WHY", "PROJECT"}}
	one := !slices.ContainsFunc(list, func(j hindsight.Judged) bool { return j.Project != list[0].Project })
	for _, j := range list {
		dir := j.Project
		if one {
			dir = ""
		}
		g.Add(frame.ShortID(j.Run), j.Asked.Local().Format(time.DateTime), answerText(j), string(j.Now), whatText(j), j.Why,
			dir)
	}
	g.DropEmpty("")
	var table bytes.Buffer
	if err := g.Write(&table, screen.Styles{}, width); err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n") {
		if i == 0 && s.On() {
			line = s.Dim(line)
		} else {
			line = style(line)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// answerText returns the recorded answer with its author.
func answerText(j hindsight.Judged) string {
	answer := strings.ReplaceAll(string(j.Answer), "_", " ")
	if j.By == "" {
		return answer
	}
	if !j.Person {
		return answer + " by the " + j.By
	}
	return answer + " by " + j.By
}

// whatText returns the commands, or the title and the paths, of a question.
func whatText(j hindsight.Judged) string {
	if len(j.Commands) > 0 {
		return strings.Join(j.Commands, "; ")
	}
	parts := append([]string{j.Title}, slices.DeleteFunc(slices.Clone(j.Paths), func(p string) bool {
		return strings.HasSuffix(j.Title, p)
	})...)
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ": ")
}
