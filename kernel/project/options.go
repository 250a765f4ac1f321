package project

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/approvals"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/logtrust"
)

// options is what the configuration says of how its context is opened. It makes the folders of that
// context.
func (p *Project) options() (kernel.Options, error) {
	redactor, err := p.Redactor()
	if err != nil {
		return kernel.Options{}, err
	}
	ensure := func() (config.ContextPaths, error) { return p.Workspace.Ensure(p.Config.ContextID) }
	if p.isUser() {
		ensure = p.Dirs.EnsureOwn
	}
	paths, err := ensure()
	return kernel.Options{
		Paths: paths, Context: p.Config.ContextID, KeyDir: p.Dirs.KeyDir(), Runtime: p.Dirs.Runtime,
		Rules: p.Config.Rules, Vouchers: p.Vouchers(), StreamSync: p.Config.StreamSync, Environ: p.Environ,
		Own:      p.OwnFolders(),
		Redactor: redactor, RedactLog: p.Config.RedactBeforeHash, Known: p.KnownLogs(),
	}, err
}

// KnownLogs is the user's own record of which logs may be appended to. The environment may add keys
// in PERLICA_TRUST_LOG, separated by spaces. The user's own log needs no record.
func (p *Project) KnownLogs() logtrust.Store {
	if p.isUser() {
		return logtrust.Store{}
	}
	return logtrust.Store{Dir: knownLogs(p.Dirs), Trusted: strings.Fields(p.getenv(config.TrustLogVariable))}
}

// knownLogs is the folder of that record.
func knownLogs(dirs config.Dirs) string { return filepath.Join(dirs.State, "logs") }

// OwnFolders are the folders that hold what Perlica believes: the project's and the user's.
func (p *Project) OwnFolders() []string {
	own := []string{p.Workspace.Dir(), p.Dirs.Config, p.Dirs.State}
	return slices.DeleteFunc(own, func(dir string) bool { return dir == "" })
}

// Vouchers are the user's own record of the standing approvals given and the contacts paired here.
func (p *Project) Vouchers() approvals.Vouchers { return approvals.NewVouchers(p.Dirs) }
