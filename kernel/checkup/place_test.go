package checkup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
)

// TestFaultsOfThePlace checks the reports about faults of folders, files and settings around the log.
func TestFaultsOfThePlace(t *testing.T) {
	key := func(p *project.Project) string { return evidence.KeyPath(p.Dirs.KeyDir()) }
	faults(t, map[string]struct {
		harm harm
		want result
	}{
		"problems of the configuration": {func(t *testing.T, p *project.Project, c *Checkup) {
			instead(t, p.Dirs.ConfigFile(), "odd = 1\n")
			_, c.Broken = config.Load(p.Workspace, p.Dirs, nil, nil)
		}, result{"configuration", Fail, "odd", ""}},
		"one file": {func(t *testing.T, p *project.Project, _ *Checkup) { instead(t, p.Dirs.ConfigFile(), "# nothing\n") },
			result{"configuration", OK, "config.toml", ""}},
		"two files": {func(t *testing.T, p *project.Project, _ *Checkup) {
			instead(t, p.Dirs.ConfigFile(), "# nothing\n")
			instead(t, p.Workspace.ConfigFile(), "# nothing\n")
		}, result{"configuration", OK, "config.toml and ", ""}},
		"trusted": {func(_ *testing.T, _ *project.Project, c *Checkup) {
			c.Config.Project.Digest, c.Config.Project.Trusted = "d", true
		}, result{"trust", OK, "count in full", ""}},
		"nothing to trust": {func(_ *testing.T, _ *project.Project, c *Checkup) { c.Config.Project.Digest = "d" },
			result{"trust", OK, "they loosen nothing", ""}},
		"withheld": {func(_ *testing.T, _ *project.Project, c *Checkup) {
			c.Config.Project.Digest, c.Config.Withheld = "d", []string{"policy.rule", "model.proxy"}
		}, result{"trust", Warn, "2 lines of the project left aside until it is trusted: policy.rule",
			"'perlica config trust'"}},
		"no workspace": {func(_ *testing.T, _ *project.Project, c *Checkup) {
			c.Broken = &config.WorkspaceError{Path: "/x", Reason: "is odd"}
		}, result{"workspace", Fail, "is odd", "move it away, or run in another folder"}},
		"a file in its place": {func(t *testing.T, p *project.Project, _ *Checkup) { instead(t, p.Workspace.Dir(), "text") },
			result{"workspace", Fail, ".perlica", "move it away, or run in another folder"}},
		"open to others": {func(t *testing.T, p *project.Project, _ *Checkup) { try(t, os.Chmod(logOf(t, p), 0o644)) },
			result{"workspace", Warn, "others can get at 1 file or folder", "chmod -R go-rwx "}},
		"not there yet": {func(t *testing.T, p *project.Project, c *Checkup) {
			c.Workspace = config.Workspace{Root: t.TempDir()}
		}, result{"workspace", OK, "not there yet", ""}},
		"a log can be written": {func(t *testing.T, p *project.Project, c *Checkup) {
			c.Workspace = config.Workspace{Root: t.TempDir()}
		}, result{"log-writable", OK, "a log can be written in ", ""}},
		"a trail over its limit": {func(t *testing.T, p *project.Project, c *Checkup) {
			c.Config.Logs.MaxTotalMB = 1
			for _, name := range []string{"perlica-1-1.jsonl", "perlica-1-2.jsonl"} {
				instead(t, filepath.Join(pathsOf(t, p).Logs, name), strings.Repeat("x", 1<<20))
			}
		}, result{"debug-trail", Warn, "2 files with 2.0 MiB, over the limit of 1.0 MiB", "the next run sweeps it"}},
		"a trail": {func(t *testing.T, p *project.Project, _ *Checkup) {
			try(t, os.RemoveAll(pathsOf(t, p).Logs))
			instead(t, filepath.Join(pathsOf(t, p).Logs, "perlica-1-1.jsonl"), strings.Repeat("x", 1<<10))
		}, result{"debug-trail", OK, "1 file with 1.0 KiB", ""}},
		"no folder for the trail": {func(t *testing.T, p *project.Project,
			_ *Checkup) {
			instead(t, pathsOf(t, p).Logs, "text")
		},
			result{"debug-trail", Warn, "not a directory", "runs go on without a debug trail"}},
		"no folder for sockets": {func(t *testing.T, p *project.Project, c *Checkup) {
			c.Dirs.Runtime = filepath.Join(t.TempDir(), "file")
			instead(t, c.Dirs.Runtime, "text")
		}, result{"sockets", Fail, "not a directory", "set XDG_RUNTIME_DIR or PERLICA_HOME"}},
		"sockets below a file": {func(t *testing.T, p *project.Project, c *Checkup) {
			file := filepath.Join(t.TempDir(), "file")
			instead(t, file, "text")
			c.Dirs.Runtime = filepath.Join(file, "run")
		}, result{"sockets", Fail, "", "set XDG_RUNTIME_DIR or PERLICA_HOME"}},
		"sockets, not yet": {func(t *testing.T, p *project.Project, c *Checkup) {
			c.Dirs.Runtime = filepath.Join(t.TempDir(), "a", "run")
		}, result{"sockets", OK, "made when it is needed", ""}},
		"sockets": {func(t *testing.T, p *project.Project, c *Checkup) {
			c.Dirs.Runtime = filepath.Join(t.TempDir(), "run")
			instead(t, c.Dirs.Runtime, "")
		}, result{"sockets", OK, "run", ""}},
		"no key": {func(t *testing.T, p *project.Project, _ *Checkup) { try(t, os.RemoveAll(p.Dirs.KeyDir())) },
			result{"checkpoint-key", OK, "none yet; the first run makes it", ""}},
		"no key can be made": {func(t *testing.T, p *project.Project, c *Checkup) {
			c.Dirs.State = filepath.Join(t.TempDir(), "none", "state")
			instead(t, filepath.Dir(c.Dirs.State), "text")
		}, result{"checkpoint-key", Warn, "", "Checkpoints are not signed"}},
		"a damaged key": {func(t *testing.T, p *project.Project, _ *Checkup) { instead(t, key(p), "no key") },
			result{"checkpoint-key", Warn, "it is no file of keys", "put back a copy of it, or move it away"}},
		"a key that others may read": {func(t *testing.T, p *project.Project, _ *Checkup) {
			try(t, os.RemoveAll(p.Dirs.KeyDir()))
			_, err := evidence.MakeKeys(p.Dirs.KeyDir())
			try(t, err)
			try(t, os.Chmod(key(p), 0o644))
		}, result{"checkpoint-key", Warn, "", "chmod 600 "}},
		"a key": {func(t *testing.T, p *project.Project, _ *Checkup) {
			try(t, os.RemoveAll(p.Dirs.KeyDir()))
			_, err := evidence.MakeKeys(p.Dirs.KeyDir())
			try(t, err)
		}, result{"checkpoint-key", OK, "keys", ""}},
		"a retired key": {func(t *testing.T, p *project.Project, _ *Checkup) {
			try(t, os.RemoveAll(p.Dirs.KeyDir()))
			_, err := evidence.MakeKeys(p.Dirs.KeyDir())
			try(t, err)
			_, err = evidence.RotateKeys(p.Dirs.KeyDir())
			try(t, err)
		}, result{"checkpoint-key", OK, ", and 1 retired key", ""}},
		"a view that is a folder": {func(t *testing.T, p *project.Project,
			_ *Checkup) {
			instead(t, pathsOf(t, p).Sessions, "")
		},
			result{"views", Fail, "is not a file", "move it away: it is made again from the log"}},
		"a damaged view": {func(t *testing.T, p *project.Project, _ *Checkup) {
			instead(t, pathsOf(t, p).Approvals, strings.Repeat("no database ", 500))
		}, result{"views", Warn, "approvals", "nothing is lost: its next use builds it again"}},
		"a view": {func(t *testing.T, p *project.Project, _ *Checkup) {
			instead(t, pathsOf(t, p).Sessions, "-")
			try(t, os.Truncate(pathsOf(t, p).Sessions, 0))
		}, result{"views", OK, "1 view in order", ""}},
	})
}
