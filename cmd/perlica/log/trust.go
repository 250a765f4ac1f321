package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/logtrust"
)

type trustFlags struct {
	below, key string
	yes        bool
}

func (a *app) logTrustCommand() *cobra.Command {
	var f trustFlags
	cmd := &cobra.Command{
		Use: "trust [FILE]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Trust a log that another machine made",
		Long: `If the log has an input already, Perlica shows the recorded answer and does not call the
agent. A log from a clone or from another machine can have answers that no agent gave. So
Perlica only reads such a log until you trust it.

A log is trusted without this command if it was made here, or if all its outcomes were signed
by a key of yours or by one in PERLICA_TRUST_LOG. If an older copy of a log was put back, or
if its folder has the name of another context, Perlica refuses the log until you trust it again.

The command shows the log's origin, its newest event and its key, and asks you. Without FILE
it is the log of this context. Before you trust a log, check it with 'perlica log verify' and
read it with 'perlica log tail' and 'perlica log show'.`,
		Example: `  perlica log trust
  perlica log trust --key "$KEY"
  perlica log trust --below ~/src --yes`,
		Args: frame.Between(0, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.logTrust(cmd.Context(), f, args) },
	}
	cmd.Flags().StringVar(&f.below, "below", "", "trust the logs of all projects below this `directory`")
	cmd.Flags().StringVar(&f.key, "key", "",
		"the verifier `key` of the log's signer: also trust later states that this key signed")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) logTrust(ctx context.Context, f trustFlags, args []string) error {
	p, err := a.LocateToRead()
	if err != nil {
		return err
	}
	var paths []string
	switch {
	case f.below != "" && len(args) > 0:
		return frame.UsageErrorf("FILE and --below exclude each other")
	case f.below != "":
		if paths, err = logsBelow(f.below); err != nil {
			return err
		}
		if len(paths) == 0 {
			return fmt.Errorf("there is no event log below %s", f.below)
		}
	case len(args) > 0:
		paths = args
	default:
		log, context, err := a.Reader(ctx, p) // If there is no log, the error of Reader tells how to make one.
		if err != nil {
			return err
		}
		if err := log.Close(); err != nil {
			return err
		}
		paths = []string{context.EventLog}
	}
	known := p.KnownLogs()
	known.Keys = evidence.UseKeys(p.Dirs.KeyDir())
	refused := 0
	for _, path := range paths {
		trusted, err := a.trustLog(ctx, known, path, f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !trusted {
			refused++
		}
	}
	if refused > 0 {
		return frame.WithHint(frame.ExitFailure.With(errors.New("not trusted")),
			"a log that is not trusted can be read, but not used")
	}
	return nil
}

// logsBelow returns the paths of the logs of all projects below a directory. It skips unreadable folders.
func logsBelow(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			return fs.SkipDir
		}
		if !d.IsDir() || d.Name() != ".perlica_config" {
			return nil
		}
		contexts, err := os.ReadDir(filepath.Join(path, "contexts"))
		if err != nil {
			return fs.SkipDir // The folder is missing or unreadable.
		}
		for _, c := range contexts {
			log := filepath.Join(path, "contexts", c.Name(), "eventlog.db")
			// A symbolic link could lead to a log outside of the directory.
			if info, err := os.Lstat(log); err == nil && info.Mode().IsRegular() {
				paths = append(paths, log)
			}
		}
		return fs.SkipDir
	})
	return paths, err
}

// trustLog adds a log to the trusted logs if it is unknown and the person agrees.
func (a *app) trustLog(ctx context.Context, known logtrust.Store, path string, f trustFlags) (trusted bool, err error) {
	log, err := store.OpenReader(ctx, path)
	if err != nil {
		return false, frame.ExplainUnreadable(err, path)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	var unknown *logtrust.UnknownError
	switch err := known.Check(ctx, path); {
	case err == nil && f.key == "":
		return true, errors.Join(known.Add(ctx, log), a.Say("%s is known already.", path))
	case err != nil && !errors.As(err, &unknown):
		return false, err
	}
	about, err := logtrust.Describe(ctx, log)
	if err != nil {
		return false, err
	}
	if err := a.Write(func(w io.Writer) error { return frame.WriteLogIdentity(w, about, a.Styles(a.Stdout)) }); err != nil {
		return false, err
	}
	yes := f.yes
	if !yes {
		if yes, err = a.Confirm(ctx, "Trust this log?"); err != nil || !yes {
			return false, err
		}
	}
	if err := known.Trust(ctx, log, f.key); err != nil {
		return false, err
	}
	return true, a.Say("Trusted.")
}
