package kernel

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/approvals"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/logtrust"
)

// NewOptions returns what a configuration says of how its context is opened, and makes the
// folders of that context. What it leaves open is the caller's: Version, Trail and TrailLost.
// environ is what agents' environments are chosen from.
func NewOptions(cfg *config.Config, ws config.Workspace, dirs config.Dirs, environ []string) (Options, error) {
	redactor, err := redact.New(cfg.Redact...)
	if err != nil {
		return Options{}, err
	}
	paths, err := ws.Ensure(cfg.ContextID)
	return Options{
		Paths: paths, Context: cfg.ContextID, KeyDir: dirs.KeyDir(), Runtime: dirs.Runtime,
		Rules: cfg.Rules, Vouchers: UserVouchers(dirs), StreamSync: cfg.StreamSync, Environ: environ,
		Own:      OwnFolders(ws, dirs),
		Redactor: redactor, RedactLog: cfg.RedactBeforeHash, Known: KnownLogs(dirs, environ),
	}, err
}

// KnownLogs is the user's own record of which logs may be appended to. The environment may add keys
// in PERLICA_TRUST_LOG, separated by spaces.
func KnownLogs(dirs config.Dirs, environ []string) logtrust.Store {
	s := logtrust.Store{Dir: filepath.Join(dirs.State, "logs")}
	for _, kv := range environ {
		if keys, ok := strings.CutPrefix(kv, config.TrustLogVariable+"="); ok {
			s.Trusted = strings.Fields(keys)
		}
	}
	return s
}

// OwnFolders are the folders that hold what Perlica believes: the project's and the user's.
func OwnFolders(ws config.Workspace, dirs config.Dirs) []string {
	own := []string{ws.Dir(), dirs.Config, dirs.State}
	return slices.DeleteFunc(own, func(dir string) bool { return dir == "" })
}

// UserVouchers are the user's own record of the standing approvals given here.
func UserVouchers(dirs config.Dirs) approvals.Vouchers {
	return approvals.NewVouchers(filepath.Join(dirs.State, "approvals"))
}
