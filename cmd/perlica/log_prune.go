package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
)

// pruneFlags are the flags of log prune.
type pruneFlags struct {
	logFilter   // run, session and before
	keep, why   string
	yes, dryRun bool
}

func (a *app) logPruneCommand() *cobra.Command {
	var f pruneFlags
	cmd := &cobra.Command{
		Use: "prune --before TIME | --run RUN | --session SESSION", Annotations: acts.on(),
		Short: "Remove payloads for good, and keep their hashes",
		Long: `Remove what events say, and keep that they happened: inputs, answers, questions and the
lines of the protocol are gone from the log's files and from the views beside it;
seq, time, type, ids, length and hash of each event stay, and so does the tree:
'perlica log verify' and every checkpoint and proof still hold. That it was done, by whom
and why is itself an event, log.pruned. Several filters must all match.

Sessions, standing approvals, resolutions and earlier prunings keep their payloads, and so
do runs without an outcome ('perlica log open'). With --keep facts only the lines of the
protocol go. An input that was called is not called again, whatever is removed.

It takes a run-free moment and, for a while, as much room again as the log will have. If
it is interrupted, the same command completes it. Copies, exports and the debug trail in
logs/ are not touched. See docs/retention.md.`,
		Example: `  perlica log prune --before 90d --dry-run
  perlica log prune --before 2026-01-01 --keep facts --yes
  perlica log prune --session customer-17 --why "erasure request 4711"`,
		Args: exactly(), ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.logPrune(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.before, "before", "", "events before then: 90d, 2026-11-21, or RFC 3339 (a `time`)")
	fl.StringVar(&f.run, "run", "", "events of this `run`: its id, the beginning or end of it, or its input's id")
	fl.StringVarP(&f.session, "session", "s", "", "events of this `session`: its id, the beginning or end of it, or its name")
	fl.StringVar(&f.keep, "keep", "", "\"facts\": remove only the lines of the protocol; `what` else there is stays")
	fl.StringVar(&f.why, "why", "", "a `text` for the record")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	fl.BoolVarP(&f.dryRun, "dry-run", "n", false, "say what would be removed, and remove nothing")
	completeFlag(cmd, "run", a.completeRuns)
	completeFlag(cmd, "session", a.completeSessions)
	completeFlag(cmd, "keep", cobra.FixedCompletions([]string{"facts"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) logPrune(ctx context.Context, f pruneFlags) error {
	if f.before == "" && f.run == "" && f.session == "" {
		return withHint(usageErr("what is to be removed? --before, --run or --session says it"), "--dry-run says what would be")
	}
	if f.keep != "" && f.keep != "facts" {
		return usageErr("--keep is facts, not %q", f.keep)
	}
	var p eventlog.Pruning
	var events, bytes int64
	err := a.reading(ctx, func(log *eventlog.Reader, _ *project.Project) (err error) {
		if p, err = f.pruning(ctx, log); err != nil {
			return err
		}
		events, bytes, err = log.Prunable(ctx, p)
		return err
	})
	if err != nil {
		return pruneErr(err)
	}
	what := fmt.Sprintf("%s of %s", count(int(events), "payload"), inBytes(bytes))
	if f.dryRun {
		return a.say("this would remove %s, of events up to %d", what, p.Until)
	}
	if !f.yes && events > 0 {
		a.note("this removes " + what + " for good; their hashes stay")
		if yes, err := a.confirm(ctx, "Remove them?"); err != nil || !yes {
			return err
		}
	}
	p.By, p.Why = userName(a.getenv), f.why
	return interruptible(ctx, "some of it may be removed: the same command completes it", func(ctx context.Context) error {
		return a.writing(ctx, func(r *kernel.Runner, _ *project.Project) error {
			done, err := r.Prune(ctx, p)
			if err != nil {
				return pruneErr(err)
			}
			return a.sayPruned(done)
		})
	})
}

// pruning is what the flags say.
func (f pruneFlags) pruning(ctx context.Context, log *eventlog.Reader) (p eventlog.Pruning, err error) {
	q, err := f.query(ctx, log, time.Now())
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
		a.note("there is nothing to remove")
		return nil
	case done.Events == 0:
		return a.say("nothing was left to remove; the log's files were rewritten: %s, now %s", inBytes(done.Before), inBytes(done.After))
	}
	return a.say("removed %s of %s; the log's files took %s and take %s now",
		count(int(done.Events), "payload"), inBytes(done.Bytes), inBytes(done.Before), inBytes(done.After))
}

// pruneErr says what to do about what keeps payloads from being removed.
func pruneErr(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrUnfinished):
		return withHint(err, "nothing was removed; 'perlica log open' tells what is known of it and ends what has died")
	case errors.Is(err, kernel.ErrUnderWay):
		return withHint(err, "nothing was removed: wait until no run of this context is under way, then try again")
	case errors.Is(err, kernel.ErrPruning):
		return withHint(err, "another process does it; wait for it")
	case errors.Is(err, eventlog.ErrBusy):
		return withHint(err, "another process uses the log, a reader or a database browser; end it, then run the same command again: it goes on where this one ended")
	case errors.Is(err, eventlog.ErrFull):
		return withHint(err, "make room on the disk, then run the same command again: it goes on where this one ended")
	}
	return err
}

// inBytes is a size as people read it.
func inBytes(n int64) string {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	switch {
	case n < 10*kib:
		return count(int(n), "byte")
	case n < 10*mib:
		return fmt.Sprintf("%d KiB", n/kib)
	case n < 10*gib:
		return fmt.Sprintf("%d MiB", n/mib)
	}
	return fmt.Sprintf("%d GiB", n/gib)
}
