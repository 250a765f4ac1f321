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
		Long: `Make a new database DB from an export, with the same events, numbers and hashes. FILE has
the JSON lines of 'perlica log export'; - is standard input.

The command checks every payload and every event against its hash, and the whole export
against the roots in the first line and in the checkpoint. If something is wrong, it names the
line and makes no DB. It does not check the signature of the checkpoint; 'perlica log verify'
does.

An export of some events makes a DB with a part of the log. This DB can be read and verified,
but nothing can be appended to it.

Exit codes: 0 imported; 1 not imported.`,
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
