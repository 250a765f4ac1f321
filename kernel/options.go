package kernel

import (
	"path/filepath"

	"github.com/perlica/perlica/eventlog/trail"
	"github.com/perlica/perlica/kernel/config"
)

// NewOptions returns what a configuration says of how its context is opened, and makes the
// folders of that context. What it leaves open is the caller's: Version, Trail and TrailLost.
// environ is what agents' environments are chosen from.
func NewOptions(cfg *config.Config, ws config.Workspace, dirs config.Dirs, environ []string) (Options, error) {
	redactor, err := trail.NewRedactor(cfg.Redact...)
	if err != nil {
		return Options{}, err
	}
	paths, err := ws.Ensure(cfg.ContextID)
	return Options{
		Paths: paths, Context: cfg.ContextID, KeyDir: dirs.KeyDir(), Runtime: dirs.Runtime,
		Rules: cfg.Rules, Vouchers: UserVouchers(dirs), StreamSync: cfg.StreamSync, Environ: environ,
		Redactor: redactor, RedactLog: cfg.RedactBeforeHash,
	}, err
}

// UserVouchers are the user's own record of the standing approvals given here.
func UserVouchers(dirs config.Dirs) Vouchers {
	return NewVouchers(filepath.Join(dirs.State, "approvals"))
}
