package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/export"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// These are the intervals at which 'perlica team keep' looks at the copies. It verifies a copy from the beginning
// once per wholeEvery, and otherwise only the new events.
const (
	keepEvery  = 10 * time.Second
	wholeEvery = time.Hour
)

// toVerify is the hint for a damaged copy of a log.
const toVerify = "perlica log verify --team says more; docs/team.md says what to do"

// audit returns a new auditor, which checks the events of a log.
func audit() verify.Auditor { return &report.Audit{} }

func (a *app) keepCommand() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use: "keep", Annotations: frame.PersonOnly.Annotation(),
		Short: "Verify the copies of all workers' logs, and sign the valid ones",
		Long: `Verify the copies of all workers' logs on the hub: all hashes, all signed checkpoints, and
Perlica's rules for events. If a copy is valid, this machine signs its newest checkpoint, too
(C2SP cosignature/v1). The checkpoint must contain everything that this machine has signed
before. The machine verifies the copy of its own log, but does not sign it.

The command reads each copy from its beginning at the start and once an hour. Between these
times it reads only new events.`,
		Example: `  perlica team keep
  perlica team keep --once     # exit code 1 if a copy fails the check`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *team.Team,
				_ *project.Project) error {
				return a.keepCopies(cmd.Context(), t, once)
			})
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "verify each copy once, then end")
	return cmd
}

// keepCopies verifies and cosigns the copies until a signal ends it. If once is true, it verifies each copy once and
// returns.
func (a *app) keepCopies(ctx context.Context, t *team.Team, once bool) error {
	k, err := t.Keeper(ctx, true, audit)
	if err != nil {
		return err
	}
	ctx, release := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer release()
	said := map[string]string{}
	trouble := ""
	var whole time.Time // time of the last complete verification
	for {
		again := time.Since(whole) >= wholeEvery
		err := t.Refresh(ctx)
		var list []hub.Verdict
		if err == nil {
			list, err = k.Round(ctx, again)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && once:
			return err
		case err != nil && err.Error() != trouble:
			trouble = err.Error()
			a.printNotes(trouble)
		case err == nil:
			if trouble = ""; again {
				whole = time.Now()
			}
		}
		bad := a.tellVerdicts(list, said)
		if once {
			return bad
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(keepEvery):
		}
	}
}

// tellVerdicts prints the verdicts that have changed since the last call. It returns an error if a copy is damaged.
func (a *app) tellVerdicts(list []hub.Verdict, said map[string]string) (err error) {
	for _, v := range list {
		text := fmt.Sprintf("%s: %s, signed up to %d, cosigned here up to %d", v.Worker, frame.Count(int(v.Size), "event"),
			v.Checkpoint, v.Cosigned)
		if v.Problem != "" {
			text = v.Worker + ": " + v.Problem
			err = frame.WithHint(errors.New("not all copies passed the check"), toVerify)
		}
		if said[v.Worker] != text {
			said[v.Worker] = text
			a.printNotes(text)
		}
	}
	return err
}

func (a *app) fetchCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "fetch WORKER", Annotations: frame.ReadOnly.Annotation(),
		Short: "Write the copy of a worker's log to a file",
		Long: `Verify the copy of a worker's log on the hub, and write it to a file. The file ends with the
newest signed checkpoint, and has the signatures of the members that verify the copies. It is
an export: 'perlica log verify FILE' checks it anywhere without the hub, and 'perlica log
import' makes a log from it. If the copy is damaged, no file is written.`,
		Example: `  perlica team fetch build1
  perlica team fetch build1 -o - | perlica log verify -`,
		Args: frame.Exactly("WORKER"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				return a.fetchCopies(cmd.Context(), t, args[0], file)
			})
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "",
		"write to this `file`; - is standard output (default: WORKER.jsonl)")
	return cmd
}

func (a *app) fetchCopies(ctx context.Context, t *team.Team, worker, file string) error {
	file = cmp.Or(file, worker+".jsonl")
	var v hub.Verdict
	var sum export.Summary
	err := a.WriteTo(file, func(w io.Writer) (err error) {
		v, sum, err = t.Fetch(ctx, worker, w, audit)
		if err == nil && !v.Sound() {
			err = frame.WithHint(fmt.Errorf("the copy of %s did not pass the check: %s", worker, v.Problem), toVerify)
		}
		return err
	})
	if err != nil {
		return err
	}
	if v.Problem != "" {
		a.Note("warning: " + v.Problem)
	}
	var keys []string
	for _, key := range append(t.LogKeys(worker, v.Origin), t.WitnessKeys()...) {
		keys = append(keys, "--key '"+key+"'")
	}
	count, command := fmt.Sprintf("%s of %s, of %d on the hub", frame.Count(int(sum.Events), "event"), worker, v.Size),
		"perlica log verify "+file+" "+strings.Join(keys, " ")
	if file == "-" {
		a.printNotes(count + "; verify them anywhere: " + command)
		return nil
	}
	return a.Say("%s; verify them anywhere:\n%s", count, command)
}
