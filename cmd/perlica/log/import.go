package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/export"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	logexport "github.com/perlica/perlica/eventlog/export"
)

func (a *app) logImportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "import FILE DB", Annotations: frame.PersonOnly.Annotation(),
		Short: "Make a log from an export of 'perlica log export'",
		Long: `Make a new database DB of an export, with the same events, numbers and hashes. FILE is
JSON lines as 'perlica log export' writes them; - is standard input.

Everything is checked on the way: every payload and every event against its hash, the
whole against the root in the first line and, if there is one, the checkpoint's. If
anything is wrong the line is named, and there is no DB. Whether a key signed the
checkpoint is not asked here.

An export of some of a log's events makes a file that holds a part of it: it can be read
and verified, but nothing can be appended to it.

Exit codes: 0 it was imported; 1 it was not.`,
		Example: `  perlica log import run.jsonl run.db
  gunzip -c week.jsonl.gz | perlica log import - week.db
  perlica log verify run.db`,
		Args: frame.Exactly("FILE", "DB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return frame.Interruptible(cmd.Context(), "nothing was written", func(ctx context.Context) error {
				return a.logImport(ctx, args[0], args[1])
			})
		},
	}
	return cmd
}

func (a *app) logImport(ctx context.Context, file, db string) (err error) {
	var in io.Reader = a.Stdin
	if file == "-" {
		file = "standard input"
	} else {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // The file was only read, so a failed close loses no data.
		in = f
	}
	progress, done := a.Progress(ctx, "importing", nil)
	defer done()
	got, err := logexport.Import(ctx, in, db, progress)
	done()
	var bad *logexport.ImportError
	var taken *fs.PathError
	switch {
	case errors.As(err, &bad):
		return frame.WithHint(fmt.Errorf("%s: %w", file, err),
			"nothing was imported; export the log again, or ask for the file again")
	case errors.Is(err, fs.ErrExist) && errors.As(err, &taken):
		return frame.WithHint(fmt.Errorf("%s exists", screen.Sanitize(taken.Path)),
			"import makes a new log: choose another name, or move that away")
	case err != nil:
		return err
	}
	return errors.Join(a.Say("%s: %s", db, export.Tally(got)), a.Say("root: %s", got.Root))
}
