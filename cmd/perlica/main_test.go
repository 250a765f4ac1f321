package main

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/provider/registry"
	"github.com/perlica/perlica/provider/sandbox"
)

// TestMain makes this binary the command perlica for the scripts. The scripts then run real processes: perlica and
// the agents that it starts.
func TestMain(m *testing.M) {
	testscript.Main(withoutAgents{m}, map[string]func(){
		"perlica": func() {
			a := newApp(version)
			a.System = cmp.Or(os.Getenv("TEST_SYSTEM"), a.System)
			os.Exit(a.main(os.Args[1:]))
		},
		"imsg": func() { os.Exit(imsg(os.Args[1:])) },
		"answers": func() {
			if err := answerOften(newApp(version), os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
	})
}

// answerOften waits for a line on standard input. It then answers a question several times at once and prints each
// result.
func answerOften(a *app, id, option, by, times string) error {
	return a.Writing(context.Background(), func(r *kernel.Runner, _ *project.Project) error {
		q, err := report.FindQuestion(context.Background(), &r.Log().Reader, id)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(times)
		if err != nil {
			return err
		}
		fmt.Println("ready")
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return err
		}
		outcomes := make(chan string)
		for range n {
			go func() {
				outcome := "accepted"
				if err := r.AnswerQuestion(context.Background(), q,
					interaction.Answer{Option: option, By: by, Where: "race"}); err != nil {
					outcome = "refused: " + err.Error()
				}
				outcomes <- outcome
			}()
		}
		for range n {
			fmt.Println(<-outcomes)
		}
		return nil
	})
}

// afterTests removes the files that several tests have shared.
var afterTests = func() {}

// withoutAgents runs the tests with a PATH without known agents. The tests must not start the agents of their user,
// which cost money.
type withoutAgents struct{ *testing.M }

func (w withoutAgents) Run() int {
	var kept []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !holdsAgent(dir) {
			kept = append(kept, dir)
		}
	}
	if err := os.Setenv("PATH", strings.Join(kept, string(filepath.ListSeparator))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// A background process of a shell ignores SIGINT, and a process of nohup ignores SIGHUP. Its children inherit this.
	// They inherit no handler, so Notify restores the default action in the children of the test.
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	defer afterTests()
	// Most tests wait for processes, so more of them can run at once. The flag -parallel overrides this.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return w.M.Run()
}

func holdsAgent(dir string) bool {
	for _, k := range registry.All() {
		for _, command := range k.Commands {
			if command[0] == registry.Self {
				continue
			}
			if found, _ := filepath.Glob(filepath.Join(dir, command[0]+"*")); slices.ContainsFunc(found, func(path string) bool {
				return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) == command[0]
			}) {
				return true
			}
		}
	}
	return false
}

// scripts returns the paths of the scripts. With -short, as with the race detector, it returns fewer scripts,
// because a process of a race build starts slowly. In these scripts, processes meet each other or a person.
func scripts(t *testing.T) []string {
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatal("no scripts:", err)
	}
	if !testing.Short() {
		return all
	}
	return slices.DeleteFunc(all, func(file string) bool {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		family, _, _ := strings.Cut(name, "_")
		return !slices.Contains([]string{"acp", "agent", "form", "gate", "pending", "send", "service", "session", "team",
			"watch", "web"}, family) &&
			!slices.Contains([]string{"run_hello", "run_faults", "run_answer", "run_attach"}, name)
	})
}

// canSandbox reports whether this machine can start an agent in a sandbox. If PERLICA_REQUIRE_SANDBOX is set and the
// machine cannot, this is an error.
func canSandbox() (bool, error) {
	box, err := sandbox.New(sandbox.Spec{Mode: sandbox.Project})
	if err == nil {
		err = box.Explain()
	}
	if os.Getenv("PERLICA_REQUIRE_SANDBOX") != "" {
		return err == nil, err
	}
	return err == nil, nil
}

// TestScripts runs testdata/script/*.txtar.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, scripts(t), func(*testscript.Env) error { return nil })
}

// runScripts runs scripts. Each script has its own home and project. PATH has only the command perlica and the
// system's tools. The function setup adds everything else.
func runScripts(t *testing.T, files []string, setup func(*testscript.Env) error) {
	testscript.Run(t, testscript.Params{
		Files:               files,
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
			env.Setenv("PERLICA_MODEL_DEFAULT_PROVIDER", "predictable") // A script has no terminal for choosing an agent.
			// Without this, each process of a race build waits a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			flows, err := filepath.Abs(filepath.Join("..", "..", "docs", "flows"))
			if err != nil {
				return err
			}
			env.Setenv("FLOWS", flows)
			env.Values[countsKey] = map[string]int{}
			env.Cd = project
			return setup(env)
		},
		Cmds: scriptCommands,
		Condition: func(name string) (bool, error) {
			if name == "root" { // Modes of files do not restrict root.
				return os.Geteuid() == 0, nil
			}
			if name == "sandbox" {
				return canSandbox()
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
	})
}
