package log

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

type searchFlags struct {
	since, before     string
	provider, session string
	kinds             []string
	n                 int
	json, team        bool
}

// searchDefault is the default number of hits in log search.
const searchDefault = 20

func (a *app) logSearchCommand() *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use: "search WORDS...", Annotations: frame.ReadOnly.Annotation(),
		Short: "Find words in inputs, answers, tool calls and decisions",
		Long: `Find words in inputs, answers, errors, tool calls, questions with their whole content,
decisions, and the names of sessions. The newest place comes first. The lines of the agent's
protocol are not searched.

A text is found if it has all of the words. An argument of several words is a phrase: 'rm -rf'
in quotes finds this command. The search ignores case, accents, and all characters except
letters and digits. In Chinese, Japanese, Korean, Thai and similar scripts it finds any one or
two characters within a sentence; spaces are not necessary.

The index is the file search.db next to the log. The first search makes it, and each search
updates it. You may delete it: the next search makes it again. With --team the command searches
the copies of all workers' logs on the team's hub: see docs/team.md.

Exit codes: 0 found; 1 not found, or the log cannot be read; 2 usage.`,
		Example: `  perlica log search 'rm -rf' --since 7d --provider claude
  perlica log search 删除 文件
  perlica log search --kind decision alice
  perlica log search timeout -n 1 --json | jq -r .run_id`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return frame.WithHint(frame.UsageErrorf("'%s' needs WORDS", cmd.CommandPath()), "%s", cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logSearch(cmd.Context(), args, f)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return frame.WithHint(frame.ExitUsage.With(err),
			"put words that begin with - after --, or into one argument with others: 'rm -rf'; see '%s --help'",
			cmd.CommandPath())
	})
	fl := cmd.Flags()
	fl.StringVar(&f.since, "since", "",
		"only texts since this `time`: 7d, yesterday, tuesday, '2 weeks ago', 2026-11-21")
	fl.StringVar(&f.before, "before", "", "only texts before this `time`")
	fl.StringVar(&f.provider, "provider", "", "only sessions with this `provider`")
	fl.StringVarP(&f.session, "session", "s", "",
		"only this `session`: its name, its id, or the beginning or end of its id")
	fl.StringArrayVar(&f.kinds, "kind", nil, "only texts of this `kind`; may be repeated: "+kindNames())
	fl.IntVarP(&f.n, "lines", "n", searchDefault, "the number of places to show; -1 for all")
	addTeamFlag(cmd, &f.team)
	fl.BoolVar(&f.json, "json", false, "print one JSON object per line")
	frame.CompleteFlag(cmd, "provider", a.CompleteProviders)
	frame.CompleteFlag(cmd, "session", a.CompleteSessions)
	frame.CompleteFlag(cmd, "kind", cobra.FixedCompletions(strings.Split(kindNames(), ", "),
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func kindNames() string {
	var names []string
	for _, k := range report.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// wantedOf turns the flags into a search. It does not fill in the session.
func (f searchFlags) wantedOf(phrases []string, now time.Time) (w report.Wanted, err error) {
	w = report.Wanted{Phrases: phrases, Provider: f.provider}
	if f.n == 0 || f.n < -1 {
		return w, frame.UsageErrorf("-n %d: it is a number of hits, or -1 for all", f.n)
	}
	for _, name := range f.kinds {
		if !slices.Contains(report.Kinds(), report.Kind(name)) {
			return w, frame.WithHint(frame.UsageErrorf("there is no kind %q", name), "the kinds are %s", kindNames())
		}
		w.Kinds = append(w.Kinds, report.Kind(name))
	}
	w.Since, w.Before, err = frame.ParseTimeRange(f.since, f.before, now)
	return w, err
}

func (a *app) logSearch(ctx context.Context, phrases []string, f searchFlags) error {
	w, err := f.wantedOf(phrases, time.Now())
	if err != nil {
		return err
	}
	if width := screen.TerminalWidth(a.Stdout); width > 0 {
		w.Width = max(width-8, 30) // The 8 columns are for the indent and for an ellipsis at both ends.
	}
	if f.team {
		return a.searchTeam(ctx, w, f)
	}
	return a.Reading(ctx, func(log *store.Reader, p *project.Project) (err error) {
		paths, err := p.Workspace.Context(p.Config.ContextID)
		if err != nil {
			return err
		}
		s, remove, err := a.openSearch(ctx, log, paths.Search, "")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()); remove() }()
		if f.session != "" {
			if w.Session, err = s.FindSession(ctx, f.session); err != nil {
				return frame.ReferenceError("session", f.session, err)
			}
		}
		return a.printHits(inLog(s.Find(ctx, w), ""), f)
	})
}

// searchHit is a found text. If several logs were searched, it names the worker of the log.
type searchHit struct {
	report.Hit
	worker string
}

func inLog(hits iter.Seq2[report.Hit, error], worker string) iter.Seq2[searchHit, error] {
	return func(yield func(searchHit, error) bool) {
		for h, err := range hits {
			if !yield(searchHit{h, worker}, err) {
				return
			}
		}
	}
}

// openSearch opens the search index of a log. The parameter "at" is the path of the index. On a terminal it shows
// the progress in a line. The parameter "of" is the end of this line, and describes the log.
func (a *app) openSearch(ctx context.Context, log event.Reader, at, of string) (*report.Search, func(), error) {
	last, _, err := log.Last(ctx, event.Query{})
	if err != nil {
		return nil, nil, err
	}
	status := screen.NewStatusLine(a.Stderr, screen.StatusWidth(a.Stderr, a.Getenv), a.Styles(a.Stderr),
		screen.SystemClock())
	defer func() { _ = status.Close() }() // If the terminal is closed, there is no line to remove.
	used := ""
	s, remove, err := project.OpenView(at, func(path string) (*report.Search, error) {
		used = path
		return report.OpenSearch(ctx, log, path, func(n event.Seq) {
			status.Set(strings.TrimSpace(fmt.Sprintf("indexing for the search: %d of %d events %s", n, last.Seq, of)))
		})
	})
	if err == nil && used != at {
		a.Note("the index cannot be saved in its folder, so each search builds it again; make the folder writable")
	}
	if errors.Is(err, disk.ErrBusy) {
		err = frame.WithHint(err, "another search is making the index; try again when it is done")
	}
	return s, remove, err
}

// printHits prints the hits, at most as many as the limit in f.
func (a *app) printHits(hits iter.Seq2[searchHit, error], f searchFlags) error {
	n, err := a.writeHits(hits, f)
	if errors.Is(err, report.ErrNoWords) {
		return frame.WithHint(frame.UsageErrorf("%w", err),
			"a word has a letter or a digit; other signs are not searched for")
	}
	if err == nil && n == 0 {
		a.Note("nothing was found")
		return frame.ExitFailure.With(nil) // The command grep returns the same code if it finds nothing.
	}
	return frame.IgnoreClosedPipe(err)
}

func (a *app) writeHits(hits iter.Seq2[searchHit, error], f searchFlags) (n int, err error) {
	out := bufio.NewWriter(a.Stdout)
	defer func() { err = errors.Join(err, outputErr(out.Flush())) }()
	styles, enc := a.Styles(a.Stdout), json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for h, err := range hits {
		if err != nil {
			return n, err
		}
		if f.json {
			err = enc.Encode(hitJSON(h))
		} else {
			_, err = out.WriteString(hitLines(h, styles))
		}
		if err != nil {
			return n, outputErr(err)
		}
		if n++; n == f.n {
			break
		}
	}
	return n, nil
}

// hitLines returns a hit as text for people: the place of the hit and the found text.
func hitLines(h searchHit, s screen.Styles) string {
	e := h.Event
	head := fmt.Sprintf("%s %6d  %-8s  %s", e.Time.Local().Format(lineTime), e.Seq, h.Kind, lineRuns(e))
	if e.Run != "" {
		head += "  session " + frame.ShortID(string(e.Session))
	}
	if h.worker != "" {
		head += "  at " + h.worker
	}
	if h.Provider != "" {
		head += "  " + frame.OneLine(h.Provider)
	}
	var b strings.Builder
	b.WriteString(s.Dim(head) + "\n    ")
	for _, p := range h.Excerpt {
		text := strings.NewReplacer("\n", " ", "\t", " ").Replace(screen.Sanitize(p.Text))
		if p.Mark {
			text = s.Bold(s.Red(text))
		}
		b.WriteString(text)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// lineRuns returns the id of the event's run, or of its session if it has no run. log show accepts both.
func lineRuns(e event.Event) string {
	if e.Run != "" {
		return "run " + frame.OneLine(frame.ShortID(e.Run))
	}
	return "session " + frame.OneLine(frame.ShortID(e.Session))
}

// hit is a found text as log search prints it with --json.
type hit struct {
	Seq      event.Seq   `json:"seq"`
	ID       string      `json:"event_id"`
	Time     string      `json:"ts"`
	Type     event.Type  `json:"type"`
	Kind     report.Kind `json:"kind"`
	Provider string      `json:"provider"`
	Worker   string      `json:"worker,omitempty"` // with --team: the name of the worker that wrote the log
	event.Refs
	Excerpt string   `json:"excerpt"`
	Matches []string `json:"matches"` // the parts of the excerpt that match the search
}

func hitJSON(h searchHit) hit {
	v := hit{
		Seq: h.Event.Seq, ID: h.Event.ID, Time: h.Event.Time.UTC().Format(time.RFC3339Nano), Type: h.Event.Type,
		Kind: h.Kind, Provider: h.Provider, Worker: h.worker, Refs: h.Event.Refs, Matches: []string{},
	}
	for _, p := range h.Excerpt {
		v.Excerpt += p.Text
		if p.Mark {
			v.Matches = append(v.Matches, p.Text)
		}
	}
	return v
}
