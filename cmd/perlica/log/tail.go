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

// followPoll is the time between two attempts to find a log that does not exist yet.
const followPoll = 250 * time.Millisecond

// movedPoll is the time between two checks that the path still leads to the followed log.
const movedPoll = 2 * time.Second

// tailDefault is the default number of events in log tail.
const tailDefault = 20

func (a *app) logTailCommand() *cobra.Command {
	var f frame.EventFilter
	var n int
	var follow bool
	cmd := &cobra.Command{
		Use: "tail", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show the newest events of the log",
		Long: `Show the newest events of the log, one line each, the newest last: time, number (seq), type,
subject and text. With -f the command stays and shows each new event of any process, until
Ctrl-C.

The command shows the last characters of each id, and other commands accept this short form.
With --since or --before the command shows all events that match, unless you give -n.`,
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
	cmd.Flags().IntVarP(&n, "lines", "n", tailDefault, "the number of events to show; -1 for all")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "also show new events, until Ctrl-C")
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
		return nil // The person ended the command.
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
		return nil // The person ended the command.
	}
	return err
}

// tailReader opens the log. If follow is true and there is no log, it waits until the log exists.
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

// tailTo writes the newest n events that q selects. If follow is true, it then writes new events until ctx ends.
func (a *app) tailTo(ctx context.Context, w io.Writer, log *store.Reader, q event.Query, asJSON bool, n int,
	follow bool) error {
	// Changes must start before Head is read. Otherwise an event between them could be missed.
	changes, err := log.Changes(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = changes.Close() }() // A failed close of a reader loses no data.
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
		err = out.writeEvents(ctx, log, q)
	}
	if err != nil || !follow {
		return err
	}
	return out.followLog(ctx, log, changes, q, size)
}

// followLog waits for events after the first size events and writes the events that q selects, until ctx ends. It fails
// if the path leads to another file or to no file, because new events are then written elsewhere.
func (o *eventWriter) followLog(ctx context.Context, log *store.Reader, changes *store.Changes, q event.Query,
	size int64) error {
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
			if err := o.writeEvents(ctx, log, q); err != nil {
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

// beginOfTail returns the number of the first event to print: the oldest of the newest n events that q selects. It
// returns 0 if q selects no event.
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

// eventWriter writes events as lines for people or as NDJSON.
type eventWriter struct {
	w      *bufio.Writer
	json   *json.Encoder // nil if people read the lines
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

// writeEvents writes the events that q selects, and flushes the output.
func (o *eventWriter) writeEvents(ctx context.Context, log event.Reader, q event.Query) error {
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return errors.Join(err, outputErr(o.w.Flush()))
		}
		if err := o.writeEvent(e); err != nil {
			return err
		}
	}
	return outputErr(o.w.Flush())
}

func (o *eventWriter) writeEvent(e event.Event) error {
	if o.json != nil {
		return outputErr(o.json.Encode(e))
	}
	_, err := o.w.WriteString(eventLine(e, o.styles, o.width) + "\n")
	return outputErr(err)
}

// outputErr adds to an error that it happened on standard output.
func outputErr(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("standard output: %w", err)
}
