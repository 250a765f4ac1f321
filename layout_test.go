// Package perlica_test checks rules for the whole tree: imports, complexity, words of comments, and names in
// documents.
package perlica_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/perlica/perlica"

// mayReach lists, for each room, the other rooms that it may import. A room is a top-level folder.
var mayReach = map[string][]string{
	"eventlog":    {},
	"interaction": {"eventlog"},
	"policy":      {"eventlog"},
	"provider":    {"eventlog"},
	"kernel":      {"eventlog", "interaction", "policy", "provider"},
	"service":     {"eventlog", "interaction", "policy", "provider", "kernel"},
	"cmd":         {"eventlog", "interaction", "policy", "provider", "kernel", "service"},
}

// maxFloors is the largest length of a chain of imports among the packages of this tree.
const maxFloors = 13

// families are the folders with commands. A family must not import another family. Code for two families belongs in
// a package outside of both.
var families = []string{
	"cmd/perlica/acp", "cmd/perlica/chat", "cmd/perlica/config", "cmd/perlica/demo", "cmd/perlica/doctor",
	"cmd/perlica/flow",
	"cmd/perlica/hook", "cmd/perlica/log", "cmd/perlica/notify", "cmd/perlica/origin", "cmd/perlica/pending",
	"cmd/perlica/policy", "cmd/perlica/provider", "cmd/perlica/run",
	"cmd/perlica/sandbox", "cmd/perlica/schedule",
	"cmd/perlica/service",
	"cmd/perlica/session", "cmd/perlica/team", "cmd/perlica/watch", "cmd/perlica/web",
}

// only lists packages of other modules and of the standard library, each with the folders that may import it. These
// packages start processes, receive signals, open sockets, speak SQL, or read a command line.
var only = map[string][]string{
	"github.com/wneessen/go-mail/smtp":          {"service/email"},
	"github.com/emersion/go-imap/v2/imapclient": {"service/email"},
	// The table onlyName allows some of these folders only single names of this package.
	"os/exec": {"provider/process", "provider/proxy", "provider/sandbox", "kernel/program", "kernel/project",
		"service", "service/imessage", "service/notify", "cmd/perlica/chat", "cmd/perlica/demo",
		"cmd/perlica/provider", "cmd/bench",
		"cmd/measure",
		"service/team/hub/hubtest"},
	"os/signal": {"cmd/perlica/chat", "cmd/perlica/log", "cmd/perlica/service", "cmd/perlica/frame",
		"cmd/perlica/team", "cmd/perlica/watch", "cmd/perlica/web", "cmd/perlica/builtin"},
	"net": {"provider/proxy", "provider/sandbox", "service/web/push", "service/web/push/pushtest",
		"service/notify", "service/web", "cmd/perlica/web", "service/web/device", "interaction", "service/local",
		"service/webhook", "service/webhook/webhooktest", "service/channel/channeltest", "service/email",
		"service/email/emailtest", "cmd/perlica/service", "provider/model", "service/team/hub",
		"service/team/hub/hubtest"},
	"net/http": {"cmd/bench", "service/web/push", "service/web/push/pushtest", "service/web",
		"service/notify", "cmd/perlica/web", "service/web/device", "service/web/device/devicetest", "eventlog/witness",
		"service/channel", "service/matrix", "service/matrix/matrixtest", "service/ntfy", "service/ntfy/ntfytest",
		"service/discord", "service/discord/discordtest", "service/feishu", "service/feishu/feishutest",
		"service/slack", "service/slack/slacktest",
		"service/telegram", "service/telegram/telegramtest", "service/webhook", "service/webhook/webhooktest",
		"provider/model",
		"provider/proxy"},
	"plugin":                         {},
	"text/template":                  {},
	"html/template":                  {},
	"github.com/jackc/pgx/v5/pgconn": {"service/team/hub"},
	"rsc.io/qr":                      {"cmd/perlica/frame"},
	"github.com/spf13/cobra": {"cmd/perlica/acp", "cmd/perlica", "cmd/perlica/budget", "cmd/perlica/chat",
		"cmd/perlica/frame",
		"cmd/perlica/config", "cmd/perlica/demo",
		"cmd/perlica/dialog", "cmd/perlica/doctor", "cmd/perlica/export", "cmd/perlica/flow",
		"cmd/perlica/hook", "cmd/perlica/log", "cmd/perlica/notify", "cmd/perlica/origin",
		"cmd/perlica/pending", "cmd/perlica/policy", "cmd/perlica/provider", "cmd/perlica/run", "cmd/perlica/sandbox",
		"cmd/perlica/schedule",
		"cmd/perlica/service", "cmd/perlica/session", "cmd/perlica/team", "cmd/perlica/watch", "cmd/perlica/web"},
	"github.com/chzyer/readline": {"cmd/perlica/screen"},
	"golang.org/x/term":          {"cmd/perlica/screen"},
	"modernc.org/sqlite":         {"eventlog", "cmd/bench/bare", "eventlog/disk", "eventlog/store"},
	"zombiezen.com/go/sqlite":    {"eventlog", "eventlog/disk", "eventlog/verify"},
	"golang.org/x/mod/sumdb/tlog": {"eventlog", "eventlog/event", "eventlog/evidence", "eventlog/tree",
		"eventlog/store", "eventlog/export", "eventlog/verify"},
	"gopkg.in/natefinch/lumberjack.v2": {"eventlog/trail"},
	"github.com/pelletier/go-toml/v2":  {"kernel/config", "kernel/flow", "cmd/perlica/config"},
	// The table onlyName allows kernel/agents only single names of this package.
	"mvdan.cc/sh/v3/syntax": {"kernel/agents", "policy/shell"},
	// The types of this package must not occur in recorded payloads, so that its next version cannot change their
	// format.
	"github.com/coder/acp-go-sdk": {"service/acp", "kernel/report", "kernel/record", "kernel/project", "kernel/agents",
		"kernel", "cmd/perlica", "cmd/perlica/provider", "cmd/perlica/dialog", "provider", "provider/predictable"},
}

// onlyName lists, for a package and a folder, the only names of the package that the folder may use.
var onlyName = map[string]map[string][]string{
	// The chat starts the user's own editor.
	"os/exec": {"cmd/perlica/chat": {"LookPath", "Command"},
		"service/notify":       {"LookPath", "CommandContext", "ExitError"},
		"cmd/perlica/demo":     {"CommandContext", "Cmd", "ExitError"},
		"cmd/perlica/provider": {"CommandContext"}, "kernel/program": {"LookPath"},
		"kernel/project": {"LookPath"}, "service": {}},
	"net": {"cmd/perlica/service": {"Dial"}, "service/web/device": {"SplitHostPort"},
		"service/web": {"SplitHostPort"}},
	"mvdan.cc/sh/v3/syntax":           {"kernel/agents": {"Quote", "LangBash"}},
	"github.com/pelletier/go-toml/v2": {"cmd/perlica/config": {"Unmarshal"}},
}

// saysNothing are names of folders that say nothing about the content.
var saysNothing = []string{"util", "utils", "common", "types", "models", "errors", "helpers", "misc", "base", "shared",
	"internal"}

// maySleep are the files of tests that may wait for time to pass. Some have a child process that does nothing until
// it is ended. Others look at other processes again and again, for a limited time. The last three need the passing
// of time itself. A log promises to notice a moved file after a time, and a slow disk takes time.
var maySleep = []string{
	"provider/process/process_test.go", "provider/process/process_linux_test.go", "provider/harness_test.go",
	"cmd/perlica/script_poll_test.go", "cmd/perlica/run_world_test.go",
	"eventlog/hostile_test.go", "eventlog/patience_test.go", "kernel/reopen_unix_test.go",
}

// source is one Go file. Its name has slashes on every system.
type source struct {
	name string
	dir  string
	test bool
	text []byte
	ast  *ast.File
	fset *token.FileSet
}

// sources returns every Go file of the tree after parsing, for every operating system.
func sources(t *testing.T) []source {
	t.Helper()
	list, err := parseTree()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Fatalf("%d Go files found, want at least 50", len(list))
	}
	return list
}

// parseTree parses the tree once for all tests. The tests must not change the result.
var parseTree = sync.OnceValues(func() (list []source, err error) {
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "dist") {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s := source{name: filepath.ToSlash(name), test: strings.HasSuffix(name, "_test.go"), text: text,
			fset: token.NewFileSet()}
		s.dir = path.Dir(s.name)
		s.ast, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		list = append(list, s)
		return err
	})
	return list, err
})

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// imports maps the local names of a file's imports to their paths.
func (s source) imports(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, spec := range s.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		name := path.Base(p)
		if majorVersion.MatchString(name) {
			name = strings.TrimPrefix(path.Base(path.Dir(p)), "go-")
		}
		if spec.Name != nil {
			name = spec.Name.Name
			if name == "_" || name == "." {
				name += p
			}
		}
		names[name] = p
	}
	return names
}

// uses returns the names that the file uses from an imported package. The parameter "name" is the local name of the
// import.
func (s source) uses(name string) (used []string) {
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == name {
				used = append(used, sel.Sel.Name)
			}
		}
		return true
	})
	return used
}

// TestImports compares the imports among the packages of this tree with testdata/imports.txt and with mayReach. The
// file lists each package with its imports.
func TestImports(t *testing.T) {
	imports := map[string][]string{}
	for _, s := range sources(t) {
		if s.dir == "." || s.test {
			continue
		}
		list := imports[s.dir]
		for _, p := range s.imports(t) {
			if ours, ok := strings.CutPrefix(p, module+"/"); ok && !slices.Contains(list, ours) {
				list = append(list, ours)
			}
		}
		imports[s.dir] = list
	}
	floor := map[string]int{}
	var floorOf func(dir string) int
	floorOf = func(dir string) int {
		if n, ok := floor[dir]; ok {
			return n
		}
		n := 0
		for _, p := range imports[dir] {
			n = max(n, floorOf(p)+1)
		}
		floor[dir] = n
		return n
	}
	dirs := slices.SortedFunc(maps.Keys(imports), func(a, b string) int {
		return cmp.Or(cmp.Compare(floorOf(a), floorOf(b)), cmp.Compare(a, b))
	})
	var table strings.Builder
	for i, dir := range dirs {
		if i == 0 || floor[dir] != floor[dirs[i-1]] {
			fmt.Fprintf(&table, "# floor %d\n", floor[dir])
		}
		slices.Sort(imports[dir])
		fmt.Fprintln(&table, strings.TrimSpace(dir+": "+strings.Join(imports[dir], " ")))
		room, _, _ := strings.Cut(dir, "/")
		for _, p := range imports[dir] {
			other, _, _ := strings.Cut(p, "/")
			if room != other && !slices.Contains(mayReach[room], other) {
				t.Errorf("%s may not import %s", dir, p)
			}
			if slices.Contains(families, dir) && slices.Contains(families, p) {
				t.Errorf("%s may not import %s: it is another family of commands", dir, p)
			}
		}
	}
	if n := floor[dirs[len(dirs)-1]] + 1; n > maxFloors {
		t.Errorf("%d floors, want at most %d", n, maxFloors)
	}
	if *update {
		if err := os.WriteFile("testdata/imports.txt", []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/imports.txt")
	if err != nil {
		t.Fatal(err)
	}
	if table.String() != string(want) {
		t.Errorf("the imports differ from testdata/imports.txt. If they are meant, run: go test . -update")
	}
}

// TestForeignImports compares the imports from other modules and from the standard library with the tables only and
// onlyName.
func TestForeignImports(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for name, p := range s.imports(t) {
			if dirs, ok := only[p]; ok && !slices.Contains(dirs, s.dir) {
				t.Errorf("%s: %s may not import %s", s.name, s.dir, p)
			}
			names, ok := onlyName[p][s.dir]
			if !ok {
				continue
			}
			for _, n := range s.uses(name) {
				if !slices.Contains(names, n) {
					t.Errorf("%s: %s may not use %s.%s", s.name, s.dir, name, n)
				}
			}
		}
	}
}

// TestNoTemplates checks that the program does not use text/template. Its reflection would stop the linker from
// removing unused methods. Only the functions of cobra in this expression use text/template.
func TestNoTemplates(t *testing.T) {
	calls := regexp.MustCompile(`\.(Set(Version|Help|Usage)Template|AddTemplateFuncs?)\(`)
	for _, s := range sources(t) {
		if found := calls.Find(s.text); found != nil {
			t.Errorf("%s calls %s", s.name, found)
		}
	}
}

// TestFolders refuses folders with names that say nothing, such as util. It also refuses a package with a name that
// differs from its folder.
func TestFolders(t *testing.T) {
	for _, s := range sources(t) {
		for part := range strings.SplitSeq(s.dir, "/") {
			if slices.Contains(saysNothing, part) {
				t.Errorf("%s: the folder name %q says nothing", s.name, part)
			}
		}
		want := path.Base(s.dir)
		switch s.dir {
		case "cmd/perlica", "cmd/bench", "cmd/bench/bare", "cmd/image", "cmd/measure":
			want = "main"
		case ".":
			want = "perlica_test"
		}
		if got := s.ast.Name.Name; got != want && got != want+"_test" {
			t.Errorf("%s: package %s, want %s", s.name, got, want)
		}
	}
}

// generated matches the line by which Go recognises a generated file.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// TestNoSleep refuses a test that waits for time to pass, because it should wait for an event. A receive from
// time.After counts, too, except as a deadline in a select. In a file with synctest, time passes at once.
func TestNoSleep(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test || slices.Contains(maySleep, s.name) {
			continue
		}
		_, bubble := s.imports(t)["synctest"]
		for _, at := range s.sleeps() {
			if !bubble {
				t.Errorf("%s sleeps", at)
			}
		}
	}
}

// TestTimezones refuses time.LoadLocation outside config.Timezone, because not every system has a database of timezones.
func TestTimezones(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.name == "kernel/config/timezone.go" {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok && isCallOf(e, "time", "LoadLocation") {
				t.Errorf("%s: use config.Timezone", s.fset.Position(n.Pos()))
			}
			return true
		})
	}
}

// sleeps returns the places in a file that wait for time to pass.
func (s source) sleeps() (places []token.Position) {
	inSelect := map[ast.Node]bool{}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CommClause:
			if stmt, ok := n.Comm.(*ast.ExprStmt); ok {
				inSelect[stmt.X] = true
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && isCallOf(n.X, "time", "After") && !inSelect[n] {
				places = append(places, s.fset.Position(n.Pos()))
			}
		case *ast.CallExpr:
			if isCallOf(n, "time", "Sleep") {
				places = append(places, s.fset.Position(n.Pos()))
			}
		}
		return true
	})
	return places
}

// isCallOf reports whether e is a call of a function in a package.
func isCallOf(e ast.Expr, pkg, function string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg && sel.Sel.Name == function
}

// tools matches the names of tools that may be missing where the tests run.
var tools = regexp.MustCompile(`(?i)postgresql|chromium|strace|sandbox|python|openssl|\bnode\b|\bnpm\b`)

// TestSkipsNameTheirPromise checks the text with which a test skips because a tool is missing. It must have the form
// "NOT TESTED: the promise: the reason". The step test of .ci/run lists these lines at its end.
func TestSkipsNameTheirPromise(t *testing.T) {
	found := 0
	for _, s := range sources(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			function, ok := call.Fun.(*ast.SelectorExpr)
			message, isText := call.Args[0].(*ast.BasicLit)
			if !ok || !isText || function.Sel.Name != "Skip" && function.Sel.Name != "Skipf" {
				return true
			}
			if strings.HasPrefix(message.Value, `"NOT TESTED: `) {
				found++
			} else if tools.MatchString(message.Value) {
				t.Errorf("%s: got a skip with %s, want NOT TESTED: the promise: the reason", s.fset.Position(n.Pos()),
					message.Value)
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("got %d skips that name their promise, want at least 20", found)
	}
}

// TestPackageComments checks that every folder has exactly one package comment. It must be in the file with the
// folder's name, or in main.go for a command.
func TestPackageComments(t *testing.T) {
	said := map[string][]string{}
	for _, s := range sources(t) {
		if !s.test && s.dir != "." {
			if s.ast.Doc != nil {
				said[s.dir] = append(said[s.dir], path.Base(s.name))
			} else if said[s.dir] == nil {
				said[s.dir] = []string{}
			}
		}
	}
	for dir, files := range said {
		want := path.Base(dir) + ".go"
		if strings.HasPrefix(dir, "cmd/") && !strings.HasPrefix(dir, "cmd/perlica/") {
			want = "main.go"
		}
		if len(files) != 1 || files[0] != want {
			t.Errorf("%s: package comments in %v, want one in %s", dir, files, want)
		}
	}
}
