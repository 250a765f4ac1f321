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
		Short: "Let a log that was not made here be used",
		Long: `A log answers for the agent: an input that it holds is not called again. One that came
with a clone or from another machine may hold answers that no agent gave, so it is only read
until it is trusted. Known without that are the logs that were made here, and those of
which a key of yours, or one in PERLICA_TRUST_LOG, signed all outcomes. A log that was rolled
back, or whose folder has another context's name, is refused until it is trusted again.

This shows where and when the log was made, its newest event and its key, and asks. Without
FILE it is the log of this context. 'perlica log verify' checks the log, 'perlica log tail'
and 'perlica log show' read it.`,
		Example: `  perlica log trust
  perlica log trust --key "$KEY"
  perlica log trust --below ~/src --yes`,
		Args: frame.Between(0, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.logTrust(cmd.Context(), f, args) },
	}
	cmd.Flags().StringVar(&f.below, "below", "", "all logs of projects below this `directory`")
	cmd.Flags().StringVar(&f.key, "key", "",
		"the verifier `key` that signed it: later states of the log that it signed are trusted, too")
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
