package export

import (
	"context"
	"io"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/export"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/report"
)

// exportJob is what is to be exported, and how.
type exportJob struct {
	log     *store.Reader
	opt     export.Options
	mask    func(string) string // nil: nothing is masked
	version string              // of Perlica
}

// exportFormat writes what is selected of a log in one of the formats of log export, and says
// how much that was, if it is the one that can be checked.
type exportFormat func(ctx context.Context, w io.Writer, job exportJob) (*export.Summary, error)

// exportFormats are the values of --format.
func exportFormats() map[string]exportFormat {
	return map[string]exportFormat{
		"jsonl": func(ctx context.Context, w io.Writer, job exportJob) (*export.Summary, error) {
			got, err := export.Write(ctx, job.log, w, job.opt)
			return &got, err
		},
		"html":        reported(report.WriteHTML),
		"otel":        reported(report.WriteOTel),
		"cloudevents": reported(report.WriteCloudEvents),
	}
}

// reported makes an export of what tells the record to people and tools.
func reported(write func(context.Context, io.Writer, *store.Reader, event.Query, report.FormatOptions) error) exportFormat {
	return func(ctx context.Context, w io.Writer, job exportJob) (*export.Summary, error) {
		s := job.opt.Selection
		q := event.Query{Run: s.Run, Session: s.Session, Since: s.Since, Before: s.Before}
		return nil, write(ctx, w, job.log, q, report.FormatOptions{Mask: job.mask, Version: job.version})
	}
}
