package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/logtrust"
	"github.com/perlica/perlica/kernel/project"
)

// trustFlags are those of log trust.
type trustFlags struct {
	below, key string
	yes        bool
}

func (a *app) logTrustCommand() *cobra.Command {
	var f trustFlags
	cmd := &cobra.Command{
		Use: "trust [FILE]", Annotations: acts.on(),
		Short: "Let a log that was not made here be used",
		Long: `A log answers for the agent: an input that it holds is not called again. One that came
with a clone or from another machine may hold answers that no agent gave, so it is only read
until it is trusted. Known without that are the logs that were made here, and those of
which a key of yours, or one in PERLICA_TRUST_LOG, signed all outcomes.

This shows where and when the log was made, its newest event and its key, and asks. Without
FILE it is the log of this context. 'perlica log verify' checks the log, 'perlica log tail'
and 'perlica log show' read it.`,
		Example: `  perlica log trust
  perlica log trust --key "$KEY"
  perlica log trust --below ~/src --yes`,
		Args: between(0, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.logTrust(cmd.Context(), f, args) },
	}
	cmd.Flags().StringVar(&f.below, "below", "", "all logs of projects below this `directory`")
	cmd.Flags().StringVar(&f.key, "key", "", "the verifier `key` that signed it: later states of the log that it signed are trusted, too")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) logTrust(ctx context.Context, f trustFlags, args []string) error {
	p, err := a.locateToRead()
	if err != nil {
		return err
	}
	var paths []string
	switch {
	case f.below != "" && len(args) > 0:
		return usageErr("FILE and --below exclude each other")
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
		context, err := p.Workspace.Context(p.Config.ContextID)
		if err != nil {
			return err
		}
		paths = []string{context.EventLog}
	}
	store := kernel.KnownLogs(p.Dirs, a.environ)
	store.Keys = evidence.UseKeys(p.Dirs.KeyDir())
	refused := 0
	for _, path := range paths {
		trusted, err := a.trustLog(ctx, store, path, f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !trusted {
			refused++
		}
	}
	if refused > 0 {
		return withHint(&exitError{1, errors.New("not trusted")}, "what is not trusted can be read; nothing of it is used")
	}
	return nil
}

// logsBelow finds the logs of all projects below a directory. What cannot be read is passed over.
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
			return fs.SkipDir // there is none, or it cannot be read
		}
		for _, c := range contexts {
			if log := filepath.Join(path, "contexts", c.Name(), "eventlog.db"); isLog(log) {
				paths = append(paths, log)
			}
		}
		return fs.SkipDir
	})
	return paths, err
}

// isLog reports whether a file is there, and no link to one elsewhere.
func isLog(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// trustLog trusts one log, if it is not known and the person says so.
func (a *app) trustLog(ctx context.Context, store logtrust.Store, path string, f trustFlags) (trusted bool, err error) {
	log, err := eventlog.OpenReader(ctx, path)
	if err != nil {
		return false, mayNotRead(err, path)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	var unknown *logtrust.UnknownError
	switch err := store.Check(ctx, path); {
	case err == nil && f.key == "":
		return true, errors.Join(store.Add(ctx, log), a.say("%s is known already.", path))
	case err != nil && !errors.As(err, &unknown):
		return false, err
	}
	about, err := logtrust.Describe(ctx, log)
	if err != nil {
		return false, err
	}
	if err := a.write(func(w io.Writer) error { return writeLog(w, about, a.styles(a.stdout)) }); err != nil {
		return false, err
	}
	yes := f.yes
	if !yes {
		if yes, err = a.confirm(ctx, "Trust this log?"); err != nil || !yes {
			return false, err
		}
	}
	if err := store.Trust(ctx, log, f.key); err != nil {
		return false, err
	}
	return true, a.say("Trusted.")
}

// writeLog shows what a person is to trust.
func writeLog(w io.Writer, l logtrust.Log, s term.Styles) error {
	keys := "no checkpoint: nothing of it is signed"
	if len(l.Keys) > 0 {
		keys = strings.Join(l.Keys, ", ")
	}
	at := func(t time.Time) string { return t.Local().Format(time.DateTime) }
	for _, row := range [][2]string{
		{"log   ", l.Path}, {"name  ", l.Origin}, {"made  ", at(l.Made)},
		{"newest", fmt.Sprintf("%s, event %d", at(l.Newest), l.Events)}, {"key   ", keys},
	} {
		if _, err := fmt.Fprintln(w, s.Dim(row[0]), oneLine(row[1])); err != nil {
			return err
		}
	}
	return nil
}

// askToTrust asks once, at a terminal, whether the log that keeps a command from working is to be
// trusted. It returns the error as it is where nothing can be asked.
func (a *app) askToTrust(ctx context.Context, p *project.Project, unknown *logtrust.UnknownError, err error) error {
	err = withHint(err, "read it: perlica log tail; check it: perlica log verify; use it: perlica log trust")
	if !term.IsTerminal(a.stdin) || !term.IsTerminal(a.stderr) || !a.attended() {
		return err
	}
	fmt.Fprintln(a.stderr, "perlica: "+term.Sanitize(unknown.Error()))
	if werr := writeLog(a.stderr, unknown.Log, a.styles(a.stderr)); werr != nil {
		return errors.Join(err, werr)
	}
	yes, cerr := a.confirm(ctx, "Trust this log?")
	if cerr != nil || !yes {
		return errors.Join(err, cerr)
	}
	log, rerr := eventlog.OpenReader(ctx, unknown.Log.Path)
	if rerr != nil {
		return rerr
	}
	return errors.Join(kernel.KnownLogs(p.Dirs, a.environ).Trust(ctx, log, ""), log.Close())
}
