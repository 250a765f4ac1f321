package frame

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/logtrust"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/provider/registry"
)

// LocateWithoutTrust works like Locate, but ignores the environment variable for trust. A project's settings count
// only if a person has trusted its files.
func (a *App) LocateWithoutTrust(settings map[string]string) (*project.Project, error) {
	return a.locateAs(slices.DeleteFunc(slices.Clone(a.Environ), func(kv string) bool {
		return strings.HasPrefix(kv, config.TrustVariable+"=")
	}), settings)
}

// WriteLogIdentity prints the description of a log, so that a person can decide whether to trust it.
func WriteLogIdentity(w io.Writer, l logtrust.Log, s screen.Styles) error {
	keys := "no checkpoint: nothing of it is signed"
	if len(l.Keys) > 0 {
		keys = strings.Join(l.Keys, ", ")
	}
	at := func(t time.Time) string { return t.Local().Format(time.DateTime) }
	for _, row := range [][2]string{
		{"log   ", l.Path}, {"name  ", l.Origin}, {"made  ", at(l.Made)},
		{"newest", fmt.Sprintf("%s, event %d", at(l.Newest), l.Events)}, {"key   ", keys},
	} {
		if _, err := fmt.Fprintln(w, s.Dim(row[0]), OneLine(row[1])); err != nil {
			return err
		}
	}
	return nil
}

// askToTrust asks the person at the terminal whether to trust an unknown log. If nobody can be asked or the answer
// is no, it returns err.
func (a *App) askToTrust(ctx context.Context, p *project.Project, unknown *logtrust.UnknownError, err error) error {
	hint := "read it: perlica log tail; check it: perlica log verify; use it: perlica log trust"
	// The project lies above the working directory. The user may have meant another project.
	if p.Dir != p.Workspace.Root {
		hint += "; or leave it: " + newProjectHint
	}
	err = WithHint(err, "%s", hint)
	if !screen.IsTerminal(a.Stdin) || !screen.IsTerminal(a.Stderr) || !a.Attended() {
		return err
	}
	fmt.Fprintln(a.Stderr, "perlica: "+screen.Sanitize(unknown.Error()))
	if werr := WriteLogIdentity(a.Stderr, unknown.Log, a.Styles(a.Stderr)); werr != nil {
		return errors.Join(err, werr)
	}
	yes, cerr := a.Confirm(ctx, "Trust this log?")
	if cerr != nil || !yes {
		return errors.Join(err, cerr)
	}
	log, rerr := store.OpenReader(ctx, unknown.Log.Path)
	if rerr != nil {
		return rerr
	}
	return errors.Join(p.KnownLogs().Trust(ctx, log, ""), log.Close())
}

// CompleteProviders lists the names of agents for a shell's completion.
func (a *App) CompleteProviders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, k := range registry.All() {
		names = append(names, k.ID+"\t"+k.Name)
	}
	if p, err := a.Locate(nil); err == nil {
		for id := range p.Config.Providers {
			names = append(names, id)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// Completed returns the words as a shell's completion. The shell keeps their order.
func Completed(words []string, err error) ([]string, cobra.ShellCompDirective) {
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// CompleteSessions lists the sessions for a shell's completion.
func (a *App) CompleteSessions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	err := a.ViewingSessions(cmd.Context(), func(view *sessions.View, _ *store.Reader) error {
		list, err := view.List(cmd.Context(), false)
		for _, s := range list {
			names = append(names, SessionName(s, string(s.ID))+"\t"+OneLine(s.Title))
		}
		return err
	})
	return Completed(names, err)
}

// ViewingSessions opens the context's log for reading and its view of the sessions, and calls f with both.
func (a *App) ViewingSessions(ctx context.Context, f func(view *sessions.View, log *store.Reader) error) error {
	return a.Reading(ctx, func(log *store.Reader, p *project.Project) error {
		return ViewSessions(ctx, log, p, func(view *sessions.View) error { return f(view, log) })
	})
}

// ViewSessions calls f with the view of the sessions of an open log.
func ViewSessions(ctx context.Context, log *store.Reader, p *project.Project, f func(*sessions.View) error) error {
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return err
	}
	return ViewSessionsAt(ctx, log, paths.Sessions, p.Dirs.ViewKey(), f)
}

// ViewSessionsAt calls f with a log's view of the sessions. path is the file of the view. key is the secret with
// which the seal of this file is checked.
func ViewSessionsAt(ctx context.Context, log event.Reader, path string, key []byte,
	f func(*sessions.View) error) (err error) {
	view, remove, err := project.OpenView(path,
		func(path string) (*sessions.View, error) { return sessions.Open(ctx, log, path, key) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()); remove() }()
	return f(view)
}

// Writing opens the context's log for writing and calls f.
func (a *App) Writing(ctx context.Context, f func(r *kernel.Runner, p *project.Project) error) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	r, done, err := a.Open(ctx, p)
	if err != nil {
		return err
	}
	return errors.Join(f(r, p), done())
}

// Locate finds the project and loads the configuration. With an error, Locate also returns the parts of the project
// that it found, for the commands doctor and config.
func (a *App) Locate(settings map[string]string) (*project.Project, error) {
	return a.locateAs(a.Environ, settings)
}

// FindProject finds the project of a directory other than the working directory.
func (a *App) FindProject(dir string, settings map[string]string) (*project.Project, error) {
	p, err := project.Find(dir, a.Environ, a.WithSandbox(settings))
	p.Attended = screen.IsTerminal(a.Stderr)
	return p, err
}

// locateAs works like Locate with another environment.
func (a *App) locateAs(environ []string, settings map[string]string) (*project.Project, error) {
	if a.ContextFlag != "" {
		if settings == nil {
			settings = map[string]string{}
		}
		settings["context.default_id"] = a.ContextFlag
	}
	settings = a.WithSandbox(settings)
	dir, err := os.Getwd()
	if err != nil {
		err = WithHint(UsageErrorf("the working directory is gone: %w", err), "go to another directory: cd ~")
		return &project.Project{Config: &config.Config{}}, err
	}
	find := project.Find
	switch {
	case a.UserFlag:
		find = project.User
	case a.ProjectFlag != "":
		find = func(dir string, environ []string, settings map[string]string) (*project.Project, error) {
			return project.At(a.ProjectFlag, dir, environ, settings)
		}
	}
	p, err := find(dir, environ, settings)
	p.Environ, p.Attended = a.Environ, screen.IsTerminal(a.Stderr)
	if a.UserFlag && a.ContextFlag != "" {
		return p, UsageErrorf("--user and --context exclude each other: the user's own log has one context")
	}
	var bad *config.ContextNameError
	if a.ContextFlag != "" && errors.As(config.CheckContextName(a.ContextFlag), &bad) {
		return p, UsageErrorf("--context %q: %s", bad.Name, bad.Reason)
	}
	return p, err
}

// LocateToRead works like Locate for commands that only read the record. If a configuration file has a mistake, it
// prints a warning and continues. It returns an error if the mistake could change the context.
func (a *App) LocateToRead() (*project.Project, error) {
	p, err := a.Locate(nil)
	var problems config.Problems
	if !errors.As(err, &problems) {
		return p, err
	}
	for _, problem := range problems {
		if problem.Line == 0 || problem.Key == "" || problem.Key == "context.default_id" {
			return p, err
		}
	}
	fmt.Fprintf(a.Stderr, "perlica: warning: the configuration has mistakes, see 'perlica config check': %s\n",
		screen.Sanitize(problems[0].Error()))
	return p, nil
}

// Open opens the context's log for writing. The caller closes it with the returned function.
func (a *App) Open(ctx context.Context, p *project.Project) (*kernel.Runner, func() error, error) {
	for _, passed := range p.Workspace.Passed {
		a.Note("warning: " + passed.Path + " " + passed.Reason + " and is not used; --project " + filepath.Dir(passed.Path) +
			" uses it")
	}
	r, done, err := p.Open(ctx, a.Version)
	var unknown *logtrust.UnknownError
	if errors.As(err, &unknown) {
		if err = a.askToTrust(ctx, p, unknown, err); err == nil {
			r, done, err = p.Open(ctx, a.Version)
		}
	}
	if err != nil {
		return nil, nil, LogErrorBeforeSend(err)
	}
	if paths, err := p.Workspace.Context(p.Config.ContextID); err == nil {
		a.WarnExposed(paths.EventLog)
	}
	return r, done, nil
}

// Terminal returns standard error if it is a terminal, otherwise nil.
func (a *App) Terminal() io.Writer {
	if !screen.IsTerminal(a.Stderr) {
		return nil
	}
	return a.Stderr
}

// WarnExposed prints a warning if every user of this machine can write to a file or a folder of the log at path. It
// prints one warning for each file or folder.
func (a *App) WarnExposed(path string) {
	exposed := disk.Exposed(path)
	if _, named := a.warned.LoadOrStore(exposed, true); exposed != "" && !named {
		a.Note(fmt.Sprintf("warning: every user of this machine can write to %[1]s and so replace the log. "+
			"To prevent this: chmod o-w %[1]s", exposed))
	}
}

// Reader opens the context's log for commands that show it. Before the first run there is no log, and Reader returns
// an error. The caller closes the Reader with CloseShown.
func (a *App) Reader(ctx context.Context, p *project.Project) (*store.Reader, config.ContextPaths, error) {
	r, paths, err := p.OpenToShow(ctx)
	if errors.As(err, &project.NoLogError{}) {
		made := "the first 'perlica run' makes it"
		if a.UserFlag {
			made = "the first standing approval, or contact or browser that is paired, makes it"
		}
		err = WithHint(err, "%s", made)
	}
	return r, paths, ExplainUnreadable(err, paths.EventLog)
}

// ExplainUnreadable replaces an error about missing permissions. The old error mentions writing, but the user asked
// only to read.
func ExplainUnreadable(err error, path string) error {
	if !errors.Is(err, disk.ErrReadOnly) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return WithHint(fmt.Errorf("the event log cannot be opened for reading: %s", path),
		"whose it is can read it; in a folder that you may not write, you can while no process has it open")
}

// EmptyIfNoLog returns nil if err says that there is no log yet, because a list without a log is empty. It prints a
// note, because the user may have named the wrong --context.
func (a *App) EmptyIfNoLog(err error) error {
	var none project.NoLogError
	if !errors.As(err, &none) {
		return err
	}
	if !a.UserFlag { // With --user there is no --context.
		a.Note(none.Error())
	}
	return nil
}

// CloseShown closes a log that a command has shown. If the command met damaged events, it adds this to the error.
func CloseShown(log *store.Reader, err *error) {
	*err = errors.Join(shownDamage(log, *err), log.Close())
}

// shownDamage adds the damage that a command met to the command's error, unless this error names damage already.
func shownDamage(log *store.Reader, err error) error {
	whole := log.AwaitCheck()
	damaged := log.Damaged()
	if damaged == nil {
		damaged = whole
	}
	if damaged == nil || errors.Is(err, disk.ErrCorrupt) {
		return err
	}
	if _, printed := ExitCodeOf(err); err != nil && !printed {
		return damaged
	}
	return errors.Join(err, damaged)
}

// Reading opens the context's log for reading and calls f. It returns an error if f showed damaged events.
func (a *App) Reading(ctx context.Context, f func(log *store.Reader, p *project.Project) error) (err error) {
	p, err := a.LocateToRead()
	if err != nil {
		return err
	}
	log, _, err := a.Reader(ctx, p)
	if err != nil {
		return err
	}
	defer CloseShown(log, &err)
	return f(log, p)
}
