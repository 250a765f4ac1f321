package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this binary the perlica command for the scripts, so that they drive real
// processes: perlica, and the agents it starts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"perlica": func() { os.Exit(newApp().main(os.Args[1:])) },
	})
}

// TestScripts runs testdata/script/*.txtar. Each script has a home and a project of its
// own, and nothing but the perlica command and the system's tools on PATH.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			project := filepath.Join(env.WorkDir, "project")
			for _, dir := range []string{home, project} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					return err
				}
			}
			env.Setenv("HOME", home)
			env.Setenv("PERLICA_HOME", filepath.Join(home, ".perlica"))
			env.Setenv("TERM", "dumb")
			env.Cd = project
			return nil
		},
		Cmds: scriptCommands,
		Condition: func(name string) (bool, error) {
			if name == "root" { // whom no file mode stops
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
	})
}
