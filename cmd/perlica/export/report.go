package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

// ReportCommand returns the command report.
func ReportCommand(a *frame.App) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use: "report", Annotations: frame.ReadOnly.Annotation(),
		Short: "Write one HTML file for an auditor, which verifies itself",
		Long: `Write one HTML file about the record: the inputs and their outcomes, the questions with their
answers, the rules that decided, the costs, and whether an input was sent twice. The file has
the data of these sentences and the newest signed checkpoint. A browser verifies them offline.
The authority is check-report.py, a script of Python that shares no code with Perlica. Any
change of a sentence or of a shown payload makes the verification fail. See docs/audit.md.

If a payload has a secret, the report has its length and its hash in place of its text. --raw
shows the text, too. A payload over 16 KiB is left out in the same way. Any person with the
file can leave out more payloads or events. The report counts them, and says that nothing
verifies the reason. The report covers the events up to the newest signed checkpoint.

Exit codes: 0 written; 1 not written, for example because the log is damaged.`,
		Example: `  perlica report --since 30d -o report.html
  python3 check-report.py report.html KEY`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Out == "" {
				return frame.WithHint(frame.UsageErrorf("the report needs a file"),
					"perlica report -o report.html; -o - is standard output")
			}
			return frame.Interruptible(cmd.Context(), "the report was not completed", func(ctx context.Context) error {
				return a.Reading(ctx, func(log *store.Reader, p *project.Project) error {
					return writeReport(ctx, a, log, p, f)
				})
			})
		},
	}
	frame.AddReferenceFlags(a, cmd, &f.EventFilter)
	fl := cmd.Flags()
	fl.StringVarP(&f.Out, "output", "o", "", "write to this `file`; - is standard output")
	fl.BoolVar(&f.raw, "raw", false, "show payloads with secrets, too")
	return cmd
}

// writeReport writes a verifiable report of an open log.
func writeReport(ctx context.Context, a *frame.App, log *store.Reader, p *project.Project, f Flags) error {
	q, err := f.Query(ctx, log, time.Now())
	if err != nil {
		return err
	}
	opt := report.VerifiableOptions{Keys: p.VerifierKeys}
	if !f.raw {
		redactor, err := redactorOf(a, p)
		if err != nil {
			return err
		}
		opt.Mask = func(payload []byte) bool { return containsSecret(redactor, payload) }
	}
	var got report.VerifiableSummary
	err = a.WriteTo(f.Out, func(w io.Writer) (err error) {
		got, err = report.WriteVerifiable(ctx, w, log, q, opt)
		return err
	})
	switch {
	case errors.Is(err, disk.ErrCorrupt):
		return frame.WithHint(err, "'perlica log verify' says what is wrong; there is no report of a damaged log")
	case errors.Is(err, report.ErrNoEvents):
		return frame.WithHint(err, "'perlica log runs' lists the runs with their times")
	case errors.Is(err, report.ErrNothingSigned):
		return frame.WithHint(err,
			"'perlica log checkpoint' makes one; the end of every run does, too, where there is a key")
	case err != nil:
		return frame.IgnoreClosedPipe(err)
	}
	text := "reported " + frame.Count(got.Events, "event")
	if got.Left > 0 {
		text += ", " + frame.Count(got.Left, "payload") + " left out"
	}
	if got.Newer > 0 {
		text += fmt.Sprintf("; without %s, because no signed checkpoint covers them yet",
			frame.Count(int(got.Newer), "newer event"))
	}
	a.Note(text)
	a.Note("to verify it: python3 check-report.py " + word(f.Out) + " KEY; 'perlica log key show' shows the key")
	return nil
}

// word returns the name of a file as one word of a shell. Standard output has no name.
func word(path string) string {
	if path == "-" {
		return "FILE"
	}
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	if regexp.MustCompile(`^[\w./@%+,:=-]+$`).MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
