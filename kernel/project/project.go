// Package project opens everything that a front end needs: the configuration, the log, the agent and the session. It
// also decides which process may answer questions. It decides nothing about a run, because the kernel does. It does not
// read the command line.
package project

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/trail"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/approvals"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/logtrust"
	"github.com/perlica/perlica/kernel/program"
)

// Project is a folder in which Perlica works, with its configuration.
type Project struct {
	Dir       string // the working directory
	Dirs      config.Dirs
	Workspace config.Workspace
	Config    *config.Config
	// Environ is the environment from which the agents' variables are selected.
	Environ []string
	// Attended means that a person reads the notices. See agents.Resolver.
	Attended bool

	// Delivers means that this process itself delivers events to hooks.
	Delivers bool

	// team means that the log is a team's log. See ForTeam.
	team bool
}

// Find finds the project of a directory and loads its configuration. settings override the files. After an error the
// project has the parts that were found.
func Find(dir string, environ []string, settings map[string]string) (*Project, error) {
	return load(dir, environ, settings, func(dirs config.Dirs) (config.Workspace,
		error) {
		return config.Find(dir, dirs.Home)
	})
}

// At returns the project in the folder root, which a person named, and loads its configuration as Find does. The
// working directory may lie elsewhere.
func At(root, dir string, environ []string, settings map[string]string) (*Project, error) {
	if !filepath.IsAbs(root) {
		root = filepath.Join(dir, root)
	}
	return load(dir, environ, settings, func(config.Dirs) (config.Workspace, error) { return config.At(root) })
}

// load returns the project of the workspace that the function "where" returns, and loads its configuration as Find
// does.
func load(dir string, environ []string, settings map[string]string,
	where func(config.Dirs) (config.Workspace, error)) (*Project, error) {
	p := &Project{Dir: dir, Config: &config.Config{}, Environ: environ}
	var err error
	if p.Dirs, err = config.UserDirs(p.getenv); err != nil {
		return p, err
	}
	if p.Workspace, err = where(p.Dirs); err != nil {
		return p, err
	}
	p.Config, err = config.Load(p.Workspace, p.Dirs, environ, settings)
	return p, err
}

// getenv returns a variable of the project's environment, or "".
func (p *Project) getenv(name string) string {
	for _, kv := range p.Environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// Redactor returns a redactor for texts that look like secrets, and for the patterns in the configuration.
func (p *Project) Redactor() (*redact.Redactor, error) { return redact.New(p.Config.Redact...) }

// Open opens the context's log for work, and creates it if necessary. It returns the errors of kernel.Open. The caller
// must call the function "done", which closes the Runner and the debug trail.
func (p *Project) Open(ctx context.Context, version string) (r *kernel.Runner, done func() error, err error) {
	if p.getenv(program.Variable) != "" {
		return nil, nil, errInHook
	}
	opt, err := p.options()
	if err != nil {
		return nil, nil, err
	}
	logs := p.Config.Logs
	var level slog.Level
	if level.UnmarshalText([]byte(logs.Level)) != nil {
		level = slog.LevelInfo // cannot happen, because the configuration was checked
	}
	t := trail.Open(trail.Options{
		Dir: opt.Paths.Logs, MaxSizeMB: logs.MaxSizeMB, MaxFiles: logs.MaxFiles, MaxTotalMB: logs.MaxTotalMB, Level: level,
		Redactor: opt.Redactor,
	})
	opt.Version, opt.Trail, opt.TrailLost = version, t.Logger(), t.Lost
	starter := p.hookStarter(opt)
	if starter != nil {
		opt.Committed = starter.Committed
	}
	if r, err = kernel.Open(ctx, opt); err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	if starter == nil {
		return r, func() error { return errors.Join(r.Close(), t.Close()) }, nil
	}
	starter.Run(ctx, r.Log())
	return r, func() error {
		starter.StopLooking()
		err := r.Close()
		starter.Close()
		return errors.Join(err, t.Close())
	}, nil
}

// OpenReader opens the context's log read-only. Before the first run, the log does not exist and the error is a
// NoLogError. The caller must close the Reader.
func (p *Project) OpenReader(ctx context.Context) (*store.Reader, config.ContextPaths, error) {
	return p.openLog(ctx, store.OpenReader)
}

// OpenToShow opens the context's log read-only for a caller that shows it. See OpenLogToShow.
func (p *Project) OpenToShow(ctx context.Context) (*store.Reader, config.ContextPaths, error) {
	return p.openLog(ctx, func(ctx context.Context, path string) (*store.Reader,
		error) {
		return OpenLogToShow(ctx, p.Dirs, path)
	})
}

// OpenLogToShow opens the log at path for a caller that shows it, as store.OpenToShow does. It checks the headers of
// the whole log while the caller reads.
func OpenLogToShow(ctx context.Context, dirs config.Dirs, path string) (*store.Reader, error) {
	r, err := store.OpenToShow(ctx, path)
	if err == nil {
		r.CheckAlongside(ctx, logtrust.Store{Dir: knownLogs(dirs)}.Headers)
	}
	return r, err
}

func (p *Project) openLog(ctx context.Context, open func(context.Context, string) (*store.Reader,
	error)) (*store.Reader, config.ContextPaths, error) {
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return nil, paths, err
	}
	log, err := open(ctx, paths.EventLog)
	if errors.Is(err, fs.ErrNotExist) {
		path := paths.EventLog
		if rel, err := filepath.Rel(p.Dir, path); err == nil {
			path = rel
		}
		err = NoLogError{path}
	}
	return log, paths, err
}

// A NoLogError means that the context has no log. It wraps fs.ErrNotExist.
type NoLogError struct{ Path string }

func (e NoLogError) Error() string { return "there is no event log yet: " + e.Path }

// Unwrap returns fs.ErrNotExist.
func (NoLogError) Unwrap() error { return fs.ErrNotExist }

// options returns the kernel's options for the context, from the configuration. It creates the folders of the context.
func (p *Project) options() (kernel.Options, error) {
	redactor, err := p.Redactor()
	if err != nil {
		return kernel.Options{}, err
	}
	ensure := func() (config.ContextPaths, error) { return p.Workspace.Ensure(p.Config.ContextID) }
	switch {
	case p.team:
		ensure = func() (config.ContextPaths, error) { return p.Dirs.EnsureTeam(p.Config.ContextID) }
	case p.isUser():
		ensure = p.Dirs.EnsureOwn
	}
	paths, err := ensure()
	return kernel.Options{
		Paths: paths, Context: p.Config.ContextID, KeyDir: p.Dirs.KeyDir(), Runtime: p.Dirs.Runtime,
		Rules: p.Config.Rules, Judges: p.judges(), Vouchers: p.Vouchers(), ViewKey: p.Dirs.ViewKey(),
		StreamSync: p.Config.StreamSync, ObserveTree: p.Config.RecordsTree(),
		Environ: p.Environ,
		Budgets: p.Config.Budgets, BudgetDir: p.budgetDir(),
		Own:      p.OwnFolders(),
		Redactor: redactor, RedactLog: p.Config.RedactBeforeHash, Known: p.KnownLogs(),
	}, err
}

// VerifierKeys returns the user's verifier keys for a log.
func (p *Project) VerifierKeys(origin string) ([]string, error) {
	keys, err := evidence.ReadKeys(p.Dirs.KeyDir())
	if err != nil {
		return nil, err
	}
	return keys.VerifierKeys(origin), nil
}

// budgetDir returns the folder of the amounts that budgets have used.
func (p *Project) budgetDir() string { return filepath.Join(p.Dirs.State, "budgets") }

// Budgets returns a Guard that shows the budgets of the project. The caller must close it.
func (p *Project) Budgets() (*budget.Guard, error) {
	return budget.New(budget.Options{Budgets: p.Config.Budgets, Dir: p.budgetDir(), Known: p.KnownLogs()})
}

// KnownLogs returns the user's record of the logs that may be appended to. The variable PERLICA_TRUST_LOG may add keys,
// separated by spaces. For the user's own log it returns a Store that accepts every log.
func (p *Project) KnownLogs() logtrust.Store {
	if p.isUser() {
		return logtrust.Store{}
	}
	return logtrust.Store{Dir: knownLogs(p.Dirs), Trusted: strings.Fields(p.getenv(config.TrustLogVariable))}
}

// knownLogs returns the folder of the record of known logs.
func knownLogs(dirs config.Dirs) string { return filepath.Join(dirs.State, "logs") }

// OwnFolders returns the folders with files that Perlica itself trusts: the project's and the user's.
func (p *Project) OwnFolders() []string {
	own := []string{p.Workspace.Dir(), p.Dirs.Config, p.Dirs.State}
	return slices.DeleteFunc(own, func(dir string) bool { return dir == "" })
}

// Vouchers returns the user's vouchers for standing approvals and paired contacts.
func (p *Project) Vouchers() approvals.Vouchers { return approvals.NewVouchers(p.Dirs) }

// Name returns the name of the project's folder. It is the project's default name in a team.
func (p *Project) Name() string { return filepath.Base(p.Workspace.Root) }
