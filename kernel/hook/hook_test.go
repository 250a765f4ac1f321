package hook_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/hook"
	"github.com/perlica/perlica/kernel/program"
	"github.com/perlica/perlica/policy"
)

var update = flag.Bool("update", false, "rewrite the table in docs/policy-programs.md")

// misbehaviours are the modes of the test binary as a program of the user. The text is its row in
// docs/policy-programs.md.
var misbehaviours = []struct{ mode, text string }{
	{"allow", "answers `allow`"},
	{"deny", "answers `deny`"},
	{"ask", "answers `ask`"},
	{"silent", "ends without an answer"},
	{"die", "answers `allow` and ends with exit code 3"},
	{"killed", "answers `allow` and is killed"},
	{"hang", "answers `allow` and hangs"},
	{"late", "answers `allow` after its time"},
	{"flood", "writes without an end"},
	{"shout", "answers `allow` and writes to standard error without an end"},
	{"twice", "answers twice"},
	{"unknown", "answers with an unknown member"},
	{"word", "answers with an unknown decision"},
	{"case", "answers with a member in another case"},
	{"list", "answers with a list"},
	{"garbage", "writes something that is not JSON"},
	{"deaf", "closes standard input and answers `allow`"},
	{"daemon", "leaves a daemon that holds its output, and answers `allow`"},
	{"changed", "was changed after it was trusted"},
	{"missing", "does not exist"},
}

// TestMain is the program of the user if a test starts this binary with a mode.
func TestMain(m *testing.M) {
	if os.Getenv(program.Variable) == "" {
		os.Exit(m.Run())
	}
	const yes = `{"decision":"allow","reason":"yes"}`
	for i, mode := range os.Args {
		switch mode {
		case "allow":
			fmt.Println(yes)
		case "deny":
			fmt.Println(`{"decision":"deny","reason":"no"}`)
		case "ask":
			fmt.Println(`{"decision":"ask"}`)
		case "die":
			fmt.Println(yes)
			os.Exit(3)
		case "killed":
			fmt.Println(yes)
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			waitForEver()
		case "hang":
			fmt.Println(yes)
			_ = os.Stdout.Close()
			waitForEver()
		case "late":
			waitForEver()
			fmt.Println(yes)
		case "flood":
			for {
				fmt.Println(yes)
			}
		case "shout":
			fmt.Println(yes)
			for {
				fmt.Fprintln(os.Stderr, strings.Repeat("x", 1000))
			}
		case "twice":
			fmt.Println(yes)
			fmt.Println(yes)
		case "unknown":
			fmt.Println(`{"decision":"allow","remember":true}`)
		case "word":
			fmt.Println(`{"decision":"ALLOW"}`)
		case "case":
			fmt.Println(`{"Decision":"allow"}`)
		case "list":
			fmt.Println("[" + yes + "]")
		case "garbage":
			fmt.Println("allow")
		case "deaf":
			_ = os.Stdin.Close()
			fmt.Println(yes)
		case "daemon":
			child := exec.Command(os.Args[0], "sleep", os.Args[i+1])
			child.Stdout, child.Stderr = os.Stdout, os.Stderr
			if err := child.Start(); err != nil {
				panic(err)
			}
			if err := os.WriteFile(os.Args[i+1], fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
				panic(err)
			}
			fmt.Println(yes)
			os.Exit(0)
		case "sleep":
			waitForEver()
		}
	}
	os.Exit(0)
}

// waitForEver reads a pipe that nobody writes.
func waitForEver() {
	r, w, err := os.Pipe()
	if err == nil {
		_, err = r.Read(make([]byte, 1))
	}
	panic(fmt.Sprint(w, err))
}

// TestMisbehaviours asks programs that misbehave. An answer is accepted only if it is a single valid one and the
// program ended well. The results are the table in docs/policy-programs.md.
func TestMisbehaviours(t *testing.T) {
	var table strings.Builder
	table.WriteString("| the program | counts as | reason on record |\n|---|---|---|\n")
	for _, c := range misbehaviours {
		t.Run(c.mode, func(t *testing.T) {
			effect, why := ask(t, c.mode)
			want := policy.Effect(c.mode)
			switch c.mode {
			case "deaf", "daemon":
				want = policy.Allow
			case "allow", "deny":
			default:
				want = policy.Ask
			}
			if effect != want || (why == "") != (c.mode == "ask" || want != policy.Ask) {
				t.Errorf("counts as %s (%q), want %s", effect, why, want)
			}
			fmt.Fprintf(&table, "| %s | %s | %s |\n", c.text, effect, strings.ReplaceAll(why, "|", `\|`))
		})
	}
	const begin, end = "<!-- begin of the table: go test ./kernel/hook -update -->\n", "<!-- end of the table -->"
	const doc = "../../docs/policy-programs.md"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	old, after, ok := strings.Cut(rest, end)
	switch {
	case !ok:
		t.Fatal("docs/policy-programs.md has no place for the table")
	case *update:
		if err := os.WriteFile(doc, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != table.String() && !t.Failed():
		t.Errorf("the table in docs/policy-programs.md differs: go test ./kernel/hook -update\n%s", table.String())
	}
}

// ask starts this binary in a mode as a policy program, and returns the effect and the reason of a failure.
func ask(t *testing.T, mode string) (effect policy.Effect, why string) {
	t.Helper()
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	path := filepath.Join(project, "judge")
	store := newStore(t, dir, path)
	limit := 10 * time.Second
	if mode == "hang" || mode == "late" {
		limit = 300 * time.Millisecond
	}
	pid := filepath.Join(dir, "pid")
	switch mode {
	case "changed":
		appendTo(t, path, "x")
	case "missing":
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	effect = policy.Ask
	ruling := hook.NewJudges(store, []hook.Judge{{Command: program.Command{Words: []string{"./judge", mode, pid},
		Folder: project}, Timeout: limit, Origin: "config:1"}}).Ask(t.Context(), hook.Question{Limit: "ask"},
		func(f fact.HookFailed) { why = strings.ReplaceAll(f.Why, project, "/project") })
	if ruling.Effect != "" {
		effect = ruling.Effect
	}
	if mode == "daemon" {
		checkEnded(t, pid)
	}
	return effect, why
}

// newStore returns a store for the project of path. This binary is at path, and it is trusted.
func newStore(t *testing.T, dir, path string) *program.Store {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	store := &program.Store{Dir: filepath.Join(dir, "state"), Project: filepath.Dir(path),
		Roots: []string{filepath.Dir(path)}, Environ: os.Environ()}
	files, err := store.Files(program.Command{Words: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Trust(files); err != nil {
		t.Fatal(err)
	}
	return store
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSeveralPrograms checks that a later no outweighs a yes, and that a yes is ignored if another program failed.
func TestSeveralPrograms(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "project", "judge")
	store := newStore(t, dir, path)
	for modes, want := range map[string]policy.Effect{
		"allow ask": policy.Allow, "ask allow": policy.Allow, "allow deny": policy.Deny, "deny allow": policy.Deny,
		"allow die": "", "die allow": "", "die deny": policy.Deny, "ask ask": "",
	} {
		var list []hook.Judge
		for mode := range strings.FieldsSeq(modes) {
			list = append(list, hook.Judge{Command: program.Command{Words: []string{path, mode}}, Timeout: time.Minute})
		}
		got := hook.NewJudges(store, list).Ask(t.Context(), hook.Question{Limit: "ask"}, func(fact.HookFailed) {})
		if got.Effect != want {
			t.Errorf("%s: %q, want %q", modes, got.Effect, want)
		}
		if (got.Program != nil) != (want != "") || got.Program != nil && len(got.Program.Files) != 1 {
			t.Errorf("%s: recorded %+v", modes, got.Program)
		}
	}
}

// TestStopped checks that the end of the turn ends the program at once.
func TestStopped(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "project", "judge")
	store := newStore(t, dir, path)
	pid := filepath.Join(dir, "pid")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	got := hook.NewJudges(store, []hook.Judge{{Command: program.Command{Words: []string{path, "late", pid}},
		Timeout: time.Hour}}).Ask(ctx, hook.Question{Limit: "ask"}, func(f fact.HookFailed) { t.Errorf("failed: %+v", f) })
	if got.Effect != "" || ctx.Err() == nil {
		t.Errorf("%+v", got)
	}
}
