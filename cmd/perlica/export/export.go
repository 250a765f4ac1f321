// Package export writes the record or a part of it in formats that others can verify or read.
package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/export"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

func formatNames() []string { return slices.Sorted(maps.Keys(exportFormats())) }

// Flags are the flags of the command log export.
type Flags struct {
	frame.EventFilter // The filter has the flags --run, --session, --since and --before.
	Out               string
	raw               bool
	Format            string
	replay            string // file name from the flag --replay
	redact            bool
}

// Command returns the command log export.
func Command(a *frame.App) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use: "export", Annotations: frame.ReadOnly.Annotation(),
		Short: "Write the log, or a part of it, as a file that others can check",
		Long: `Write the log, or some of its events, as JSON lines. From these lines anyone can compute the
root of the log's hash tree again, without the database and without Perlica. Each selected
event has a line; hashes take the place of the other events. If a signed checkpoint covers
the selected events, the first line has it. See docs/export.md.

The other formats are for reading and prove nothing: html is one self-contained page, otel
is OTLP traces in JSON lines by the conventions for generative AI, and cloudevents is a
CloudEvents 1.0 object for each event.

If a payload has a secret, the export has its length and its hash in place of its text. --raw
exports the text, too. The rules that find secrets look at payloads only, not at ids, and no
rule finds every secret.

'perlica log import' makes a log from the export.

Exit codes: 0 written; 1 not written, or the log is damaged.`,
		Example: `  perlica log export -o log.jsonl
  perlica log export --run 1a2b3c4d -o run.jsonl
  perlica log export --session my-session --since 7d | gzip > week.jsonl.gz`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Run(cmd.Context(), a, f)
		},
	}
	frame.AddReferenceFlags(a, cmd, &f.EventFilter)
	AddFlags(cmd, &f)
	return cmd
}

// AddFlags adds the flags for the format and the target of an export.
func AddFlags(cmd *cobra.Command, f *Flags) {
	fl := cmd.Flags()
	fl.StringVarP(&f.Out, "output", "o", "-",
		"write to this `file` after the whole export has succeeded; - is standard output")
	fl.BoolVar(&f.raw, "raw", false, "export payloads with secrets, too")
	fl.StringVar(&f.Format, "format", "jsonl", "the `format`: "+strings.Join(formatNames(), ", "))
	frame.CompleteFlag(cmd, "format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp))
}

// Run runs the commands log export and session export.
func Run(ctx context.Context, a *frame.App, f Flags) error {
	if _, ok := exportFormats()[f.Format]; !ok {
		return frame.WithHint(frame.UsageErrorf("there is no format %q", f.Format), "there is %s",
			strings.Join(formatNames(), ", "))
	}
	write := Write
	switch {
	case f.replay != "":
		write, f.Out = writeReplay, f.replay
	case f.redact:
		return frame.WithHint(frame.UsageErrorf("--redact belongs to --replay"),
			"an export that can be checked withholds a payload with a secret as a whole")
	}
	left := "nothing was written"
	if f.Out == "-" {
		left = "the export is incomplete"
	}
	return frame.Interruptible(ctx, left, func(ctx context.Context) error {
		return a.Reading(ctx, func(log *store.Reader, p *project.Project) error { return write(ctx, a, log, p, f) })
	})
}

// Write exports a part of an open log.
func Write(ctx context.Context, a *frame.App, log *store.Reader, p *project.Project, f Flags) error {
	write := exportFormats()[f.Format]
	q, err := f.Query(ctx, log, time.Now())
	if err != nil {
		return err
	}
	job := exportJob{log: log, version: a.Version, opt: export.Options{
		Selection: export.Selection{Run: q.Run, Session: q.Session, Since: q.Since, Before: q.Before},
	}}
	if !f.raw {
		redactor, err := redactorOf(a, p)
		if err != nil {
			return err
		}
		job.mask = redactor.Text
		job.opt.Mask = func(payload []byte) bool { return containsSecret(redactor, payload) }
	}
	opt := &job.opt
	progress, done := a.Progress(ctx, "exporting", log)
	defer done()
	if f.Out != "-" || !screen.IsTerminal(a.Stdout) { // On a terminal the exported lines themselves show the progress.
		opt.Progress = progress
	}
	var got *export.Summary
	err = a.WriteTo(f.Out, func(w io.Writer) (err error) {
		got, err = write(ctx, w, job)
		return err
	})
	done()
	if errors.Is(err, disk.ErrCorrupt) {
		return frame.WithHint(err, "'perlica log verify' says what is wrong; a log that is damaged is not exported")
	}
	if err != nil {
		return frame.IgnoreClosedPipe(err)
	}
	if got != nil {
		a.Note("exported " + Tally(*got))
	}
	return nil
}

// redactorOf returns the redactor with the built-in rules and the rules of the project.
func redactorOf(a *frame.App, p *project.Project) (*redact.Redactor, error) {
	// After a mistake in the configuration, some of its patterns may be missing.
	if _, err := a.Locate(nil); err != nil {
		return nil, frame.WithHint(err, "without all of its patterns less would be masked; --raw exports everything as it is")
	}
	return p.Redactor()
}

// Tally returns a sentence about the number of events in an export.
func Tally(got export.Summary) string {
	text := fmt.Sprintf("%d of %s", got.Events, frame.Count(int(got.Size), "event"))
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

// containsSecret reports whether a redaction rule matches a part of a payload.
func containsSecret(redactor *redact.Redactor, payload []byte) bool {
	if redactor.Changes(payload) {
		return true
	}
	// The record has the start of an oversized line in base64, which no rule matches. It is decoded first.
	var line fact.OversizedLine
	if !bytes.Contains(payload, []byte(`"head":"`)) || json.Unmarshal(payload, &line) != nil {
		return false
	}
	text := string(line.Head)
	return redactor.Text(text) != text
}

// exportJob describes one export.
type exportJob struct {
	log     *store.Reader
	opt     export.Options
	mask    func(string) string // nil if nothing is masked
	version string              // version of Perlica
}

// exportFormat writes the selected part of a log in one format of log export. It returns a summary if the format can
// be verified.
type exportFormat func(ctx context.Context, w io.Writer, job exportJob) (*export.Summary, error)

// exportFormats returns the values of --format.
func exportFormats() map[string]exportFormat {
	return map[string]exportFormat{
		"jsonl": func(ctx context.Context, w io.Writer, job exportJob) (*export.Summary, error) {
			got, err := export.Write(ctx, job.log, w, job.opt)
			return &got, err
		},
		"html":        reportFormat(report.WriteHTML),
		"otel":        reportFormat(report.WriteOTel),
		"cloudevents": reportFormat(report.WriteCloudEvents),
	}
}

// reportFormat returns an exportFormat for a report that cannot be verified.
func reportFormat(write func(context.Context, io.Writer, *store.Reader, event.Query,
	report.FormatOptions) error) exportFormat {
	return func(ctx context.Context, w io.Writer, job exportJob) (*export.Summary, error) {
		s := job.opt.Selection
		q := event.Query{Run: s.Run, Session: s.Session, Since: s.Since, Before: s.Before}
		return nil, write(ctx, w, job.log, q, report.FormatOptions{Mask: job.mask, Version: job.version})
	}
}
