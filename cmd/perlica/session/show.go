package session

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/export"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/sessions"
)

// shownSession is a session with its turns, as the command session show prints it.
type shownSession struct {
	sessions.Session
	TurnList []report.TurnSummary `json:"turn_list"`
}

func (a *app) sessionShowCommand() *cobra.Command {
	var asJSON bool
	var n int
	cmd := &cobra.Command{
		Use: "show [REF]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show a session and its turns: inputs and answers",
		Long: `Show a session and its newest turns: each input and its answer. Without REF it is the current
session. -n sets the number of turns; --json without -n prints all turns. 'perlica log show
RUN' shows all steps of one turn.`,
		Example: `  perlica session show
  perlica session show refactoring -n 3
  perlica session show refactoring --json | jq -r '.turn_list[].answer'`,
		Args: frame.Between(0, "REF"), ValidArgsFunction: frame.CompleteFirst(a.CompleteSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ViewingSessions(cmd.Context(), func(view *sessions.View, log *store.Reader) error {
				s, err := a.sessionToShow(cmd.Context(), view, args)
				if err != nil {
					return err
				}
				if asJSON && !cmd.Flags().Changed("turns") {
					n = -1
				}
				turns, err := report.ReadTurns(cmd.Context(), log, s.ID, 0, n)
				if err != nil {
					return err
				}
				return a.Show(asJSON, shownSession{s, append([]report.TurnSummary{}, turns...)},
					func(w io.Writer, styles screen.Styles) error {
						return writeSession(w, styles, s, turns)
					})
			})
		},
	}
	cmd.Flags().IntVarP(&n, "turns", "n", turnsDefault, "the number of newest turns to show; -1 for all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// turnsDefault is the default number of turns that session show prints.
const turnsDefault = 20

func (a *app) sessionExportCommand() *cobra.Command {
	var f export.Flags
	cmd := &cobra.Command{
		Use: "export [REF]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Write the events of a session as a file that others can check",
		Long: `Write all events of a session. Without REF it is the current session. The command does the
same as 'perlica log export --session REF'; the help of that command explains the content.

With --replay the file has only the lines between the agent and Perlica, for 'perlica agent
replay'. If a line may have a secret, the command fails, unless --redact masks the secret or
--raw writes it unchanged.`,
		Example: `  perlica session export -o session.jsonl
  perlica session export refactoring --replay refactoring.frames --redact
  perlica session export refactoring --format html -o refactoring.html`,
		Args: frame.Between(0, "REF"), ValidArgsFunction: frame.CompleteFirst(a.CompleteSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.ViewingSessions(cmd.Context(), func(view *sessions.View, _ *store.Reader) (err error) {
				if len(args) > 0 && args[0] != "" {
					f.Session = args[0]
					return nil
				}
				s, err := a.sessionToShow(cmd.Context(), view, args)
				f.Session = string(s.ID)
				return err
			})
			if err != nil {
				return err
			}
			return export.Run(cmd.Context(), a.App, f)
		},
	}
	export.AddFlags(cmd, &f)
	export.AddReplayFlags(cmd, &f)
	return cmd
}

func (a *app) sessionToShow(ctx context.Context, view *sessions.View, args []string) (sessions.Session, error) {
	if len(args) == 0 {
		return current(ctx, view)
	}
	return view.Find(ctx, args[0])
}

func writeSession(out io.Writer, s screen.Styles, x sessions.Session, turns []report.TurnSummary) error {
	w := bufio.NewWriter(out)
	_ = frame.WriteFields(w, s, "", 9, [][2]string{ // Flush returns the error of a failed write.
		{"session", string(x.ID)},
		{"name", x.Name},
		{"provider", x.Provider},
		{"created", x.Created.Local().Format(time.DateTime)},
		{"last used", x.Used.Local().Format(time.DateTime)},
		{"current", map[bool]string{true: "yes"}[x.Current]},
		{"kept", map[bool]string{true: "no: a run made it for itself; 'perlica session rename' keeps it"}[x.Ephemeral]},
	})
	older := max(0, x.Turns-len(turns))
	if older > 0 {
		fmt.Fprintf(w, "\n%s\n", s.Dim(fmt.Sprintf("(%s before these: -n -1 shows all)", frame.Count(older, "turn"))))
	}
	for i, t := range turns {
		fmt.Fprintf(w, "\n%s\n", s.Bold(fmt.Sprintf("turn %d", older+i+1))+s.Dim(fmt.Sprintf("  %s  %s  run %s",
			t.At.Local().Format(time.DateTime), frame.OneLine(t.Sender), frame.ShortID(t.Run))))
		writeTurnText(w, s, t)
		if text := strings.TrimRight(t.Answer, "\n"); text != "" {
			fmt.Fprintln(w, screen.Sanitize(text))
		}
		style := s.Yellow
		if t.Outcome == record.OutcomeProviderError || t.Outcome == record.OutcomeUnknown {
			style = s.Red
		}
		if end := t.Ending(language.English.Sentences()); end != "" {
			fmt.Fprintln(w, style("("+frame.OneLine(end)+")"))
		}
	}
	return w.Flush()
}

// writeTurnText writes the input of a turn. A failed write is not returned, because the writer stores its error.
func writeTurnText(w io.Writer, s screen.Styles, t report.TurnSummary) {
	if t.Damage != "" {
		fmt.Fprintln(w, s.Red(t.Damage))
		if t.Text == "" {
			return
		}
	}
	if t.Pruned {
		fmt.Fprintln(w, s.Dim("(payloads of this turn were removed)"))
		if t.Text == "" {
			return
		}
	}
	for line := range strings.SplitSeq(strings.TrimRight(screen.Sanitize(t.Text), "\n"), "\n") {
		fmt.Fprintln(w, s.Cyan("> ")+line)
	}
}
