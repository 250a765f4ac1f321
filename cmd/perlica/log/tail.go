package log

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/project"
)

// followPoll is how often a log that is not there yet is looked for.
const followPoll = 250 * time.Millisecond

// movedPoll is how often it is looked whether the log that is followed is still in its place.
const movedPoll = 2 * time.Second

// tailDefault is how many events log tail shows where nothing says how many.
const tailDefault = 20

func (a *app) logTailCommand() *cobra.Command {
	var f frame.EventFilter
	var n int
	var follow bool
	cmd := &cobra.Command{
		Use: "tail", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show the newest events, oldest of them first",
		Long: `Show the newest events of the log, one line each, the oldest of them first: time,
seq, type, what the event is about, and what it says. With -f it goes on to show what
any process adds, until Ctrl-C.

The ids are the ends of ids; commands take them as they are. With --since or --before
all events that match are shown, unless -n says how many.`,
		Example: `  perlica log tail
  perlica log tail -f --facts
  perlica log tail --type 'llm.*' --type policy.decided --since 7d
  perlica log tail -n 1 --type llm.responded --json | jq -r .payload.text`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < -1 {
				return frame.UsageErrorf("-n %d: it is a number of events, or -1 for all", n)
			}
			if !cmd.Flags().Changed("lines") && (f.Since != "" || f.Before != "") {
				n = -1
			}
			return a.logTail(cmd.Context(), f, n, follow)
		},
	}
	cmd.Flags().IntVarP(&n, "lines", "n", tailDefault, "how many events; -1 for all")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is added, until Ctrl-C")
	frame.AddEventFilterFlags(a.App, cmd, &f)
	return cmd
}

func (a *app) logTail(ctx context.Context, f frame.EventFilter, n int, follow bool) (err error) {
	if follow {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	p, err := a.LocateToRead()
	if err != nil {
		return err
	}
	log, err := a.tailReader(ctx, p, follow)
	if follow && ctx.Err() != nil && err != nil {
		return nil // the person ended it
	}
	if err != nil {
		return err
	}
	defer frame.CloseShown(log, &err)
	q, err := f.Query(ctx, log, time.Now())
	if err != nil {
		return err
	}
	err = frame.IgnoreClosedPipe(a.tailTo(ctx, a.Stdout, log, q, f.Json, n, follow))
	if follow && ctx.Err() != nil {
		return nil // the person ended it
	}
	return err
}

// tailReader opens the log; if it is to be followed it may not be there yet.
func (a *app) tailReader(ctx context.Context, p *project.Project, follow bool) (*store.Reader, error) {
	warned := false
	for {
		log, _, err := a.Reader(ctx, p)
		if !follow || !errors.Is(err, fs.ErrNotExist) {
			return log, err
		}
		if !warned {
			warned = true
			a.Note("there is no event log yet; waiting for the first run")
		}
		select {
		case <-time.After(followPoll):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tailTo writes the newest n events that q selects and, if it is to follow, those that are
// added, until ctx ends.
func (a *app) tailTo(ctx context.Context, w io.Writer, log *store.Reader, q event.Query, asJSON bool, n int, follow bool) error {
	changes, err := log.Changes(ctx) // before the head is read: nothing may lie between
	if err != nil {
		return err
	}
	defer func() { _ = changes.Close() }() // nothing was written
	size, _, err := log.Head(ctx)
	if err != nil {
		return err
	}
	q.Until = event.Seq(size)
	first, err := beginOfTail(ctx, log, q, n)
	if err != nil {
		return err
	}
	out := a.eventWriter(w, asJSON)
	if q.After = first - 1; first > 0 {
		err = out.events(ctx, log, q)
	}
	if err != nil || !follow {
		return err
	}
	return out.follow(ctx, log, changes, q, size)
}

// follow writes what q selects of the events behind the first size, as they are added, until ctx
// ends. It fails when the log is no longer in its place: what comes then is added elsewhere.
func (o *eventWriter) follow(ctx context.Context, log *store.Reader, changes *store.Changes, q event.Query, size int64) error {
	opened, err := os.Stat(log.Path())
	for err == nil {
		if _, err := changes.Wait(ctx, movedPoll); err != nil {
			return err
		}
		head, _, herr := log.Head(ctx)
		if herr != nil {
			return herr
		}
		if head > size {
			q.After, q.Until = event.Seq(size), event.Seq(head)
			if err := o.events(ctx, log, q); err != nil {
				return err
			}
			size = head
		}
		var now os.FileInfo
		if now, err = os.Stat(log.Path()); err == nil && !os.SameFile(opened, now) {
			err = fs.ErrNotExist
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return frame.WithHint(disk.ErrMoved, "'perlica log tail -f' follows what is in its place now")
	}
	return err
}

// beginOfTail returns the first of the newest n events that q selects; 0 if there is none.
func beginOfTail(ctx context.Context, log *store.Reader, q event.Query, n int) (event.Seq, error) {
	switch {
	case n < 0:
		return 1, nil
	case n == 0 || q.Until == 0:
		return 0, nil
	}
	q.Newest, q.Limit = true, n
	var first event.Seq
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return 0, err
		}
		first = e.Seq
	}
	return first, nil
}

// eventWriter writes events, as lines for people or as NDJSON.
type eventWriter struct {
	w      *bufio.Writer
	json   *json.Encoder // nil: lines for people
	styles screen.Styles
	width  int
}

func (a *app) eventWriter(w io.Writer, asJSON bool) *eventWriter {
	out := &eventWriter{w: bufio.NewWriter(w), styles: a.Styles(a.Stdout), width: screen.TerminalWidth(a.Stdout)}
	if asJSON {
		out.json = json.NewEncoder(out.w)
	}
	return out
}

// events writes what q selects and flushes.
func (o *eventWriter) events(ctx context.Context, log event.Reader, q event.Query) error {
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return errors.Join(err, outputErr(o.w.Flush()))
		}
		if err := o.event(e); err != nil {
			return err
		}
	}
	return outputErr(o.w.Flush())
}

func (o *eventWriter) event(e event.Event) error {
	if o.json != nil {
		return outputErr(o.json.Encode(e))
	}
	_, err := o.w.WriteString(eventLine(e, o.styles, o.width) + "\n")
	return outputErr(err)
}

// outputErr says of an error that it is standard output's.
func outputErr(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("standard output: %w", err)
}
