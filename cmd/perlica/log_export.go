package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
)

func formatNames() []string { return slices.Sorted(maps.Keys(exportFormats())) }

// exportFlags are the flags of log export.
type exportFlags struct {
	logFilter // run, session, since and before of it
	out       string
	raw       bool
	format    string
}

func (a *app) logExportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use: "export", Annotations: reads.on(),
		Short: "Write the log, or a part of it, so that others can check it",
		Long: `Write the log, or some of its events, as JSON lines from which anybody can recompute
the log's root, without the database and without Perlica: an event a line, and for what
was not selected the few hashes that it takes. Where a signed checkpoint covers what is
selected it is in the first line. See docs/export.md.

The other formats are for reading and prove nothing: html is one self-contained page, otel
OTLP traces in JSON lines by the conventions for generative AI, cloudevents a CloudEvents
1.0 object for each event.

A payload in which the redaction rules find a secret is withheld: its length and its hash
are exported, its text is not. --raw exports it as it is. Only payloads are looked at,
not the ids beside them, and no rule finds every secret.

'perlica log import' makes a log of it again.

Exit codes: 0 it was written; 1 it was not, or the log is damaged.`,
		Example: `  perlica log export -o log.jsonl
  perlica log export --run 1a2b3c4d -o run.jsonl
  perlica log export --session my-session --since 7d | gzip > week.jsonl.gz`,
		Args: exactly(), ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.export(cmd.Context(), f)
		},
	}
	a.addReferences(cmd, &f.logFilter)
	addExportFlags(cmd, &f)
	return cmd
}

// addExportFlags adds the flags that say how and where to an export goes.
func addExportFlags(cmd *cobra.Command, f *exportFlags) {
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "-", "write to this `file`, when all of it is right; - is standard output")
	fl.BoolVar(&f.raw, "raw", false, "export payloads also where the redaction rules find a secret in them")
	fl.StringVar(&f.format, "format", "jsonl", "the `format`: "+strings.Join(formatNames(), ", "))
	completeFlag(cmd, "format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp))
}

// export is log export and session export.
func (a *app) export(ctx context.Context, f exportFlags) error {
	if _, ok := exportFormats()[f.format]; !ok {
		return withHint(usageErr("there is no format %q", f.format), "there is %s", strings.Join(formatNames(), ", "))
	}
	left := "nothing was written"
	if f.out == "-" {
		left = "what was written has no end"
	}
	return interruptible(ctx, left, func(ctx context.Context) error {
		return a.reading(ctx, func(log *eventlog.Reader, p *project.Project) error { return a.logExport(ctx, log, p, f) })
	})
}

func (a *app) logExport(ctx context.Context, log *eventlog.Reader, p *project.Project, f exportFlags) error {
	write := exportFormats()[f.format]
	q, err := f.query(ctx, log, time.Now())
	if err != nil {
		return err
	}
	job := exportJob{log: log, opt: eventlog.ExportOptions{
		Selection: eventlog.Selection{Run: q.Run, Session: q.Session, Since: q.Since, Before: q.Before},
	}}
	if !f.raw {
		// With a mistake in the configuration some of its patterns may be missing.
		if _, err := a.locate(nil); err != nil {
			return withHint(err, "without all of its patterns less would be masked; --raw exports everything as it is")
		}
		redactor, err := p.Redactor()
		if err != nil {
			return err
		}
		job.mask = redactor.Text
		job.opt.Mask = func(payload []byte) bool { return masked(redactor, payload) }
	}
	opt := &job.opt
	progress, done := a.progress(ctx, "exporting", log)
	defer done()
	if f.out != "-" || !term.IsTerminal(a.stdout) { // else its lines are progress enough
		opt.Progress = progress
	}
	var got *eventlog.Exported
	err = a.writeTo(f.out, func(w io.Writer) (err error) {
		got, err = write(ctx, w, job)
		return err
	})
	done()
	if errors.Is(err, eventlog.ErrCorrupt) {
		return withHint(err, "'perlica log verify' says what is wrong; a log that is damaged is not exported")
	}
	if err != nil {
		return quiet(err)
	}
	if got != nil {
		a.note("exported " + tally(*got))
	}
	return nil
}

// tally says how much of a log an export holds.
func tally(got eventlog.Exported) string {
	text := fmt.Sprintf("%d of %s", got.Events, count(int(got.Size), "event"))
	if got.Pruned > 0 {
		text += fmt.Sprintf(", %d of them pruned", got.Pruned)
	}
	if got.Masked > 0 {
		text += fmt.Sprintf(", %d withheld because a secret seems to be in them", got.Masked)
	}
	if !got.Signed {
		text += "; no signed checkpoint covers them"
	}
	return text
}

// masked reports whether the redaction rules find something in a payload.
func masked(redactor *redact.Redactor, payload []byte) bool {
	if redactor.Changes(payload) {
		return true
	}
	// The beginning of a line that was too long stands in base64, where no rule finds anything.
	var line fact.OversizedLine
	if !bytes.Contains(payload, []byte(`"head":"`)) || json.Unmarshal(payload, &line) != nil {
		return false
	}
	text := string(line.Head)
	return redactor.Text(text) != text
}

// interruptible calls f with a context that Ctrl-C ends; a second one ends the process. left
// says what that leaves behind.
func interruptible(ctx context.Context, left string, f func(ctx context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err := f(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errors.New("interrupted; " + left)
	}
	return err
}

// progress shows on a terminal how far into a log something is, which may be one of which
// nothing is known yet. done takes the line away; it may be called again.
func (a *app) progress(ctx context.Context, doing string, log *eventlog.Reader) (f func(int64), done func()) {
	of := ""
	if log != nil {
		if size, _, err := log.Head(ctx); err == nil {
			of = fmt.Sprintf(" of %d", size)
		}
	}
	status := term.NewStatus(a.stderr, term.StatusWidth(a.stderr, a.getenv), a.styles(a.stderr), term.SystemClock())
	return func(seq int64) { status.Set(fmt.Sprintf("%s: event %d%s", doing, seq, of)) },
		func() { _ = status.Close() } // errors of the terminal are nobody's business
}
