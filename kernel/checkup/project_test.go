package checkup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/kernel/project"
)

// newProject returns a project with a closed log.
func newProject(t *testing.T) *project.Project {
	t.Helper()
	// The tester's own variables must not change this project's configuration.
	environ := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PERLICA_") })
	p, err := project.Find(t.TempDir(), append(environ, "PERLICA_HOME="+t.TempDir()), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, done, err := p.Open(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := done(); err != nil {
		t.Fatal(err)
	}
	if p, err = project.Find(p.Dir, p.Environ, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// examined returns the results of a checkup by the names of the checks.
func examined(t *testing.T, p *project.Project, change func(*Checkup)) map[string]Check {
	t.Helper()
	c := Checkup{Dirs: p.Dirs, Workspace: p.Workspace, Config: p.Config, Agents: p.Resolver()}
	if change != nil {
		change(&c)
	}
	results := map[string]Check{}
	c.Run(t.Context(), func(c Check) {
		if strings.Contains(c.Detail, "crashed") {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
		if was, ok := results[c.Name]; !ok || was.Status == OK {
			results[c.Name] = c
		}
	})
	return results
}

// TestAHealthyProject checks that the checkup finds no fault in a new project and changes no file.
func TestAHealthyProject(t *testing.T) {
	p := newProject(t)
	before := files(t, p.Workspace.Dir())
	got := examined(t, p, nil)
	for _, name := range []string{"configuration", "trust", "workspace", "log-writable", "log-lock", "log", "log-settings",
		"log-schema", "log-integrity", "log-tree", "unfinished-runs", "unfinished-prunings"} {
		if c := got[name]; c.Status != OK {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if after := files(t, p.Workspace.Dir()); after != before {
		t.Errorf("there were\n%s\nand are\n%s", before, after)
	}
}

func files(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !strings.HasSuffix(path, "-shm") && !strings.HasSuffix(path, "-wal") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

// TestWhatIsBroken checks that the right check reports each fault, and that checks that depend on a failed check are
// skipped.
func TestWhatIsBroken(t *testing.T) {
	for name, tt := range map[string]struct {
		harm   func(*testing.T, *project.Project, *Checkup)
		check  string
		status Status
		detail string
		absent string // a check that must be skipped
	}{
		"no log": {func(t *testing.T, p *project.Project, _ *Checkup) { overwrite(t, p, "no database at all") }, "log", Fail,
			"", "log-schema"},
		"open to others": {func(t *testing.T, p *project.Project, _ *Checkup) {
			if err := os.Chmod(logOf(t, p), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "workspace", Warn, "others can get at", ""},
		"a problem of the configuration": {func(_ *testing.T, _ *project.Project,
			c *Checkup) {
			c.Broken = errors.New("line 3: odd")
		}, "configuration", Fail, "line 3: odd", ""},
		"a warning": {func(_ *testing.T, _ *project.Project,
			c *Checkup) {
			c.Config.Warnings = []string{"old key"}
		}, "configuration", Warn, "old key", ""},
		"withheld": {func(_ *testing.T, _ *project.Project, c *Checkup) {
			c.Config.Project.Digest, c.Config.Withheld = "d", []string{"policy.rule"}
		}, "trust", Warn, "1 line of the project left aside", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			got := examined(t, p, func(c *Checkup) { tt.harm(t, p, c) })
			if c := got[tt.check]; c.Status != tt.status || !strings.Contains(c.Detail, tt.detail) {
				t.Errorf("%+v", c)
			}
			if _, made := got[tt.absent]; made && tt.absent != "" {
				t.Errorf("%s was looked at: %+v", tt.absent, got[tt.absent])
			}
		})
	}
}

func logOf(t *testing.T, p *project.Project) string {
	t.Helper()
	paths, err := p.Workspace.Context("default")
	if err != nil {
		t.Fatal(err)
	}
	return paths.EventLog
}

func overwrite(t *testing.T, p *project.Project, text string) {
	t.Helper()
	if err := os.WriteFile(logOf(t, p), []byte(strings.Repeat(text, 100)), 0o600); err != nil {
		t.Fatal(err)
	}
}
