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
	paths, err := p.Workspace.Ensure(p.Config.ContextID)
	return kernel.Options{
		Paths: paths, Context: p.Config.ContextID, KeyDir: p.Dirs.KeyDir(), Runtime: p.Dirs.Runtime,
		Rules: p.Config.Rules, Vouchers: p.Vouchers(), StreamSync: p.Config.StreamSync, Environ: p.Environ,
		Own:      p.OwnFolders(),
		Redactor: redactor, RedactLog: p.Config.RedactBeforeHash, Known: p.KnownLogs(),
	}, err
}

// KnownLogs is the user's own record of which logs may be appended to. The environment may add keys
// in PERLICA_TRUST_LOG, separated by spaces.
func (p *Project) KnownLogs() logtrust.Store {
	return logtrust.Store{Dir: filepath.Join(p.Dirs.State, "logs"), Trusted: strings.Fields(p.getenv(config.TrustLogVariable))}
}

// OwnFolders are the folders that hold what Perlica believes: the project's and the user's.
func (p *Project) OwnFolders() []string {
	own := []string{p.Workspace.Dir(), p.Dirs.Config, p.Dirs.State}
	return slices.DeleteFunc(own, func(dir string) bool { return dir == "" })
}

// Vouchers are the user's own record of the standing approvals given here.
func (p *Project) Vouchers() approvals.Vouchers {
	return approvals.NewVouchers(filepath.Join(p.Dirs.State, "approvals"))
}
