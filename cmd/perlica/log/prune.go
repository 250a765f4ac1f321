package log

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
)

type pruneFlags struct {
	frame.EventFilter // The filter has the flags --run, --session and --before.
	keep, why         string
	yes, dryRun       bool
}

func (a *app) logPruneCommand() *cobra.Command {
	var f pruneFlags
	cmd := &cobra.Command{
		Use: "prune --before TIME | --run RUN | --session SESSION", Annotations: frame.PersonOnly.Annotation(),
		Short: "Remove payloads for good, and keep their hashes",
		Long: `Remove the content of events for good: inputs, answers, questions and the lines of the
agent's protocol. The content disappears from the log's files and from the files made from
the log. The number, time, type, ids, length and hash of each event stay, and so does the hash
tree: 'perlica log verify' and every checkpoint and proof still work. Perlica records the
removal with your name and the reason as the event log.pruned. An event loses its content only
if it matches all given filters.

Sessions, standing approvals, your judgements ('perlica log resolve') and earlier removals
keep their content, and so do runs without an outcome ('perlica log open'). With --keep facts
only the lines of the protocol are removed. An input that was called once is never called
again, even after its removal.

No run may be running. For a while the command needs free disk space of the size of the new
log. If the command is interrupted, give it again to complete the removal. Copies, exports and
the debug trail in logs/ stay unchanged. See docs/retention.md.`,
		Example: `  perlica log prune --before 90d --dry-run
  perlica log prune --before 2026-01-01 --keep facts --yes
  perlica log prune --session customer-17 --why "erasure request 4711"`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.logPrune(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Before, "before", "", "only events before this `time`: 90d, yesterday, 2026-11-21, or RFC 3339")
	fl.StringVar(&f.Run, "run", "",
		"only events of this `run`: its id, the beginning or end of its id, or its input's id")
	fl.StringVarP(&f.Session, "session", "s", "",
		"only events of this `session`: its name, its id, or the beginning or end of its id")
	fl.StringVar(&f.keep, "keep", "", "keep this `kind` of content: \"facts\" removes only the lines of the protocol")
	fl.StringVar(&f.why, "why", "", "the reason, a `text` for the record")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	fl.BoolVarP(&f.dryRun, "dry-run", "n", false, "show the payloads that would be removed, and remove nothing")
	frame.CompleteFlag(cmd, "run", frame.CompleteRuns(a.App))
	frame.CompleteFlag(cmd, "session", a.CompleteSessions)
	frame.CompleteFlag(cmd, "keep", cobra.FixedCompletions([]string{"facts"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) logPrune(ctx context.Context, f pruneFlags) error {
	if f.Before == "" && f.Run == "" && f.Session == "" {
		return frame.WithHint(frame.UsageErrorf("name the payloads to remove with --before, --run or --session"),
			"--dry-run shows the effect")
	}
	if f.keep != "" && f.keep != "facts" {
		return frame.UsageErrorf("--keep is facts, not %q", f.keep)
	}
	var p event.Pruning
	var s store.Selection
	err := a.Reading(ctx, func(log *store.Reader, _ *project.Project) (err error) {
		if p, err = f.pruningOf(ctx, log); err != nil {
			return err
		}
		s, err = log.Selection(ctx, p)
		return err
	})
	if err != nil {
		return pruneErr(err)
	}
	what := fmt.Sprintf("%s of %s", frame.Count(int(s.Events), "payload"), inBytes(s.Bytes))
	if f.dryRun {
		return a.Say("this would remove %s, of events up to %d", what, p.Until)
	}
	if !f.yes && s.Events > 0 {
		a.Note("this removes " + what + " for good; their hashes stay")
		if yes, err := a.Confirm(ctx, "Remove them?"); err != nil || !yes {
			return err
		}
	}
	p.By, p.Why = frame.UserName(a.Getenv), f.why
	return frame.Interruptible(ctx, "some of it may be removed: the same command completes it",
		func(ctx context.Context) error {
			return a.Writing(ctx, func(r *kernel.Runner, _ *project.Project) error {
				done, err := r.Prune(ctx, p)
				if err != nil {
					return pruneErr(err)
				}
				return a.sayPruned(done)
			})
		})
}

func (f pruneFlags) pruningOf(ctx context.Context, log *store.Reader) (p event.Pruning, err error) {
	q, err := f.Query(ctx, log, time.Now())
	if err != nil {
		return p, err
	}
	p.Run, p.Session = q.Run, q.Session
	if f.keep == "facts" {
		p.Class = event.Frame
	}
	if !q.Before.IsZero() {
		p.Until, err = log.Preceding(ctx, q.Before)
		return p, err
	}
	size, _, err := log.Head(ctx)
	p.Until = event.Seq(size)
	return p, err
}

func (a *app) sayPruned(done eventlog.Removal) error {
	switch {
	case done.Events == 0 && !done.Resumed:
		a.Note("there is nothing to remove")
		return nil
	case done.Events == 0:
		return a.Say("nothing was left to remove; the log's files were rewritten: %s, now %s", inBytes(done.Before),
			inBytes(done.After))
	}
	return a.Say("removed %s of %s; the log's files took %s and take %s now",
		frame.Count(int(done.Events), "payload"), inBytes(done.Bytes), inBytes(done.Before), inBytes(done.After))
}

// pruneErr adds a hint to an error after which payloads were not removed.
func pruneErr(err error) error {
	switch {
	case errors.Is(err, disk.ErrUnfinished):
		return frame.WithHint(err, "nothing was removed; 'perlica log open' tells what is known of it and ends what has died")
	case errors.Is(err, kernel.ErrUnderWay):
		return frame.WithHint(err, "nothing was removed: wait until no run of this context is under way, then try again")
	case errors.Is(err, kernel.ErrPruning):
		return frame.WithHint(err, "another process does it; wait for it")
	case errors.Is(err, disk.ErrBusy):
		return frame.WithHint(err,
			"another process uses the log, a reader or a database browser; end it, then run the same command again: it "+
				"continues where this one ended")
	case errors.Is(err, disk.ErrFull):
		return frame.WithHint(err,
			"make room on the disk, then run the same command again: it continues where this one ended")
	}
	return err
}

// inBytes returns a size in a short form for people.
func inBytes(n int64) string {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	switch {
	case n < 10*kib:
		return frame.Count(int(n), "byte")
	case n < 10*mib:
		return fmt.Sprintf("%d KiB", n/kib)
	case n < 10*gib:
		return fmt.Sprintf("%d MiB", n/mib)
	}
	return fmt.Sprintf("%d GiB", n/gib)
}
