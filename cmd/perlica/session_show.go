package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/kernel"
)

// shownSession is a session and its turns, as session show prints them.
type shownSession struct {
	kernel.Session
	TurnList []kernel.RecordedTurn `json:"turn_list"`
}

func (a *app) sessionShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [REF]",
		Short: "Show a session and its turns: inputs and answers",
		Long: `Show what is known of a session, and its turns: each input and its answer. Without
REF it is the current one. 'perlica log show RUN' tells a turn with all its steps.`,
		Example: `  perlica session show
  perlica session show refactoring --json | jq -r '.turn_list[].answer'`,
		Args: between(0, "REF"), ValidArgsFunction: completeFirst(a.completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.viewingSessions(cmd.Context(), func(view *kernel.Sessions, log *eventlog.Reader) error {
				s, err := a.sessionToShow(cmd.Context(), view, args)
				if err != nil {
					return err
				}
				turns, err := kernel.ReadTurns(cmd.Context(), log, s.ID)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(shownSession{s, append([]kernel.RecordedTurn{}, turns...)})
				}
				return a.write(func(w io.Writer) error { return writeSession(w, a.styles(a.stdout), s, turns) })
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) sessionToShow(ctx context.Context, view *kernel.Sessions, args []string) (kernel.Session, error) {
	if len(args) == 0 {
		return current(ctx, view)
	}
	return view.Find(ctx, args[0])
}

func writeSession(out io.Writer, s term.Styles, x kernel.Session, turns []kernel.RecordedTurn) error {
	w := bufio.NewWriter(out)
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s %s\n", s.Dim(fmt.Sprintf("%-9s", name)), oneLine(value))
		}
	}
	fact("session", string(x.ID))
	fact("name", x.Name)
	fact("provider", x.Provider)
	fact("created", x.Created.Local().Format(time.DateTime))
	fact("last used", x.Used.Local().Format(time.DateTime))
	if x.Current {
		fact("current", "yes")
	}
	if x.Ephemeral {
		fact("kept", "no: a run made it for itself; 'perlica session rename' keeps it")
	}
	for i, t := range turns {
		fmt.Fprintf(w, "\n%s\n", s.Bold(fmt.Sprintf("turn %d", i+1))+s.Dim(fmt.Sprintf("  %s  %s  run %s",
			t.At.Local().Format(time.DateTime), oneLine(t.Sender), short(t.Run))))
		for line := range strings.SplitSeq(strings.TrimRight(term.Sanitize(t.Text), "\n"), "\n") {
			fmt.Fprintln(w, s.Cyan("> ")+line)
		}
		writeTurnEnd(w, s, t)
	}
	return w.Flush()
}

// writeTurnEnd writes what became of a turn. Errors are the writer's to keep.
func writeTurnEnd(w io.Writer, s term.Styles, t kernel.RecordedTurn) {
	if text := strings.TrimRight(t.Answer, "\n"); text != "" {
		fmt.Fprintln(w, term.Sanitize(text))
	}
	switch t.Outcome {
	case "":
		fmt.Fprintln(w, s.Yellow("(no outcome on record yet)"))
	case kernel.OutcomeProviderError:
		fmt.Fprintln(w, s.Red("(failed: "+oneLine(t.Error)+")"))
	case kernel.OutcomeUnknown:
		fmt.Fprintln(w, s.Red("(outcome unknown: "+oneLine(t.Error)+")"))
	default:
		if t.StopReason != "end_turn" {
			fmt.Fprintln(w, s.Yellow("("+oneLine(t.StopReason)+")"))
		}
	}
}
