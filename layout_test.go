// Package perlica_test holds what is true of the whole tree: which folder may import which,
// how long a file may be, and that the documents name what exists.
package perlica_test

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/perlica/perlica"

// mayImport is the house: imports point downwards only, and a folder that is not listed
// here does not exist. Tests obey the same table.
var mayImport = map[string][]string{
	"eventlog":             {"eventlog/event", "eventlog/evidence", "eventlog/strict"},
	"eventlog/event":       {"eventlog/evidence", "eventlog/strict"},
	"eventlog/strict":      {},
	"eventlog/evidence":    {},
	"eventlog/redact":      {},
	"eventlog/trail":       {"eventlog/redact"},
	"eventlog/witness":     {"eventlog", "eventlog/event", "eventlog/evidence"},
	"interaction":          {"eventlog", "eventlog/event"},
	"interaction/card":     {"interaction"},
	"policy":               {"eventlog", "eventlog/event"},
	"policy/toolcall":      {"policy"},
	"provider":             {"provider/descent"},
	"provider/descent":     {},
	"provider/predictable": {},
	"kernel/config":        {"policy", "eventlog/redact"},
	"kernel/approvals":     {"policy"},
	"kernel/agents":        {"eventlog/redact", "provider", "kernel/config"},
	"kernel/sessions":      {"eventlog", "eventlog/event", "kernel/fact"},
	"kernel/fact":          {"eventlog/event", "interaction", "provider"},
	"kernel/fact/bridge":   {"eventlog/event"},
	"kernel/filelock":      {"eventlog"},
	"kernel/logtrust":      {"eventlog", "eventlog/event", "eventlog/evidence"},
	"kernel":               {"eventlog", "eventlog/event", "eventlog/evidence", "eventlog/redact", "interaction", "policy", "policy/toolcall", "provider", "kernel/agents", "kernel/config", "kernel/fact", "kernel/filelock", "kernel/logtrust", "kernel/sessions", "kernel/approvals"},
	"kernel/report":        {"eventlog", "eventlog/event", "interaction", "policy", "provider", "kernel", "kernel/fact", "kernel/fact/bridge"},
	"kernel/project":       {"eventlog", "eventlog/event", "eventlog/redact", "eventlog/trail", "policy", "kernel", "kernel/agents", "kernel/config", "kernel/sessions", "kernel/approvals"},
	"kernel/streamjson":    {"provider", "kernel", "kernel/fact"},
	"kernel/checkup":       {"eventlog", "eventlog/event", "eventlog/evidence", "eventlog/trail", "interaction", "provider", "kernel", "kernel/agents", "kernel/config", "kernel/filelock"},
	"kernel/command":       {"eventlog", "eventlog/event", "eventlog/evidence", "interaction", "interaction/card", "kernel", "kernel/checkup", "kernel/agents", "kernel/config", "kernel/fact", "kernel/report", "kernel/sessions"},
	"service":              {"interaction/card", "kernel", "kernel/checkup", "kernel/command", "kernel/agents", "kernel/config", "kernel/fact", "kernel/fact/bridge", "eventlog", "eventlog/event", "interaction", "policy", "kernel/approvals"},
	"service/local":        {"provider/descent", "service"},
	"service/attachment":   {},
	"service/telegram":     {"service", "service/attachment"},
	"service/webhook":      {"provider/descent", "service", "service/attachment"},
	"service/imessage":     {"service"},
	"cmd/perlica/term":     {},
	"cmd/perlica/markdown": {"cmd/perlica/term"},
	"cmd/perlica/editor":   {"cmd/perlica/term"},
	"cmd/bench":            {"eventlog", "eventlog/event", "kernel", "kernel/agents", "kernel/config", "policy", "provider", "provider/predictable", "kernel/approvals"},
	"cmd/bench/bare":       {},

	"service/telegram/telegramtest": {},
	"cmd/perlica": {
		"cmd/perlica/term", "cmd/perlica/editor", "cmd/perlica/markdown", "service", "service/local", "service/telegram", "service/webhook",
		"service/imessage", "kernel", "kernel/agents", "kernel/checkup", "kernel/command", "kernel/config", "kernel/sessions",
		"kernel/fact", "kernel/filelock", "kernel/logtrust", "kernel/project", "kernel/report", "kernel/streamjson", "provider", "provider/descent", "provider/predictable", "policy", "interaction", "interaction/card", "eventlog", "eventlog/event", "eventlog/evidence",
		"eventlog/redact", "eventlog/trail", "eventlog/witness",
	},
}

// mayImportInTests is what tests need beside that.
var mayImportInTests = map[string][]string{
	"kernel/report": {"eventlog/evidence"},

	"provider":      {"provider/predictable"},
	"kernel":        {"provider/predictable"},
	"kernel/agents": {"provider/predictable"},

	"kernel/project": {"interaction", "kernel/streamjson", "provider/predictable"},
	"service":        {"provider", "provider/predictable", "service/local", "service/telegram", "service/telegram/telegramtest"},

	"service/telegram": {"service/telegram/telegramtest"},
	"cmd/perlica":      {"service/telegram/telegramtest"},
}

// only lists who may import what is not ours: who starts processes, listens to signals,
// opens a socket, speaks SQL, is a command line.
var only = map[string][]string{
	"os/exec":                          {"provider", "provider/predictable", "kernel/project", "service", "service/imessage", "cmd/perlica", "cmd/bench"}, // of service see onlyName
	"os/signal":                        {"cmd/perlica"},
	"net":                              {"interaction", "service/local", "service/webhook", "cmd/perlica"},                                     // of cmd/perlica see onlyName
	"net/http":                         {"eventlog/witness", "service/telegram", "service/telegram/telegramtest", "service/webhook", "kernel"}, // of kernel see onlyName
	"plugin":                           {},
	"github.com/coder/acp-go-sdk":      {"provider", "provider/predictable", "kernel", "kernel/agents", "kernel/project", "kernel/report", "cmd/perlica"}, // no payload has its types
	"github.com/spf13/cobra":           {"cmd/perlica"},
	"github.com/chzyer/readline":       {"cmd/perlica/editor"},
	"golang.org/x/term":                {"cmd/perlica/term"},
	"modernc.org/sqlite":               {"eventlog", "cmd/bench/bare"},
	"zombiezen.com/go/sqlite":          {"eventlog"},
	"golang.org/x/mod/sumdb/tlog":      {"eventlog", "eventlog/event", "eventlog/evidence"},
	"gopkg.in/natefinch/lumberjack.v2": {"eventlog/trail"},
	"github.com/pelletier/go-toml/v2":  {"kernel/config", "cmd/perlica"},
	"mvdan.cc/sh/v3/syntax":            {"policy", "kernel/agents"}, // of kernel/agents see onlyName
}

// onlyName is finer: of these packages, a folder uses nothing but the names listed.
var onlyName = map[string]map[string][]string{
	"os/exec":                         {"cmd/perlica": {"LookPath", "Command"}, "kernel/project": {"LookPath"}, "service": {}}, // the user's own editor
	"net":                             {"cmd/perlica": {"Dial"}},
	"net/http":                        {"kernel": {"DetectContentType"}},
	"mvdan.cc/sh/v3/syntax":           {"kernel/agents": {"Quote", "LangBash"}},
	"github.com/pelletier/go-toml/v2": {"cmd/perlica": {"Unmarshal"}},
}

// saysNothing are names of folders that tell a reader nothing.
var saysNothing = []string{"util", "utils", "common", "types", "models", "errors", "helpers", "misc", "base", "shared", "internal"}

// maxLines is where a file is too big to hold in the head.
const maxLines = 500

// maySleep are tests with a child process that does nothing until it is ended, or that
// look again and again, for a bounded time, at what other processes do. No other test
// waits for time to pass.
var maySleep = []string{
	"provider/process_test.go", "provider/process_linux_test.go", "provider/harness_test.go",
	"cmd/perlica/script_poll_test.go", "cmd/perlica/run_world_test.go",
}

// source is one Go file, with slashes in its name.
type source struct {
	name string
	dir  string
	test bool
	text []byte
	ast  *ast.File
	fset *token.FileSet
}

// sources parses every Go file of the tree, whatever system it is for.
func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
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
		s := source{name: filepath.ToSlash(name), test: strings.HasSuffix(name, "_test.go"), text: text, fset: token.NewFileSet()}
		s.dir = path.Dir(s.name)
		s.ast, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		list = append(list, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Fatalf("only %d Go files were found", len(list))
	}
	return list
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// imports maps the names under which a file knows its imports to their paths.
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

// uses lists the names of the package imported as name that the file mentions.
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

// TestImports holds every import against the tables.
func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir == "." {
			continue
		}
		if _, ok := mayImport[s.dir]; !ok {
			t.Errorf("%s: the folder %s is not in the table of layout_test.go", s.name, s.dir)
			continue
		}
		for name, p := range s.imports(t) {
			if ours, ok := strings.CutPrefix(p, module+"/"); ok {
				allowed := ours == s.dir && s.test || slices.Contains(mayImport[s.dir], ours) ||
					s.test && slices.Contains(mayImportInTests[s.dir], ours)
				if !allowed {
					t.Errorf("%s: %s may not import %s", s.name, s.dir, ours)
				}
				continue
			}
			if s.test {
				continue
			}
			if dirs, ok := only[p]; ok && !slices.Contains(dirs, s.dir) {
				t.Errorf("%s: %s may not import %s", s.name, s.dir, p)
			}
			if dirs, ok := onlyName[p]; ok {
				for _, n := range s.uses(name) {
					if names, ok := dirs[s.dir]; ok && !slices.Contains(names, n) {
						t.Errorf("%s: %s may not use %s.%s", s.name, s.dir, name, n)
					}
				}
			}
		}
	}
}

// TestFolders refuses folders whose names say nothing, and packages named otherwise than
// their folders.
func TestFolders(t *testing.T) {
	for _, s := range sources(t) {
		for part := range strings.SplitSeq(s.dir, "/") {
			if slices.Contains(saysNothing, part) {
				t.Errorf("%s: the folder name %q says nothing", s.name, part)
			}
		}
		want := path.Base(s.dir)
		switch s.dir {
		case "cmd/perlica", "cmd/bench", "cmd/bench/bare":
			want = "main"
		case ".":
			want = "perlica_test"
		}
		if got := s.ast.Name.Name; got != want && got != want+"_test" {
			t.Errorf("%s: package %s, want %s", s.name, got, want)
		}
	}
}

// generated is the line by which Go knows a generated file.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// TestFileLength refuses files that are too long to be held in the head.
func TestFileLength(t *testing.T) {
	for _, s := range sources(t) {
		lines := bytes.Count(s.text, []byte("\n"))
		if lines > maxLines && !generated.Match(s.text) {
			t.Errorf("%s has %d lines; more than %d are too many", s.name, lines, maxLines)
		}
	}
}

// TestNoSleep keeps tests from waiting for time instead of for what they wait for.
func TestNoSleep(t *testing.T) {
	for _, s := range sources(t) {
		if s.test && s.imports(t)["time"] == "time" && slices.Contains(s.uses("time"), "Sleep") && !slices.Contains(maySleep, s.name) {
			t.Errorf("%s sleeps", s.name)
		}
	}
}

// TestPackageComments asks of every folder one comment that says what it promises, in the
// file that bears the folder's name (a command's in main.go).
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

// What the documents name.
var (
	backticked = regexp.MustCompile("`([^`\n]+)`")
	fileName   = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)
	goTest     = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*\b`)
	mdLink     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// TestArchitectureNamesWhatExists looks up every file, folder and test that ARCHITECTURE.md
// names.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	folders := map[string]bool{}
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test {
				tests[f.Name.Name] = true
			}
		}
		for dir := s.dir; dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for _, name := range goTest.FindAllString(string(text), -1) {
		if !tests[name] {
			t.Errorf("ARCHITECTURE.md names the test %s, which does not exist", name)
		}
	}
	for _, m := range backticked.FindAllStringSubmatch(string(text), -1) {
		name := strings.TrimSuffix(m[1], "/")
		if isOurs(name) && !exists(name) {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", m[1])
		}
	}
	for dir := range folders {
		if !strings.Contains(string(text), "`"+dir+"`") && dir != "cmd" {
			t.Errorf("ARCHITECTURE.md says nothing of the folder %s", dir)
		}
	}
	if n := bytes.Count(text, []byte("\n")); n > 300 {
		t.Errorf("ARCHITECTURE.md has %d lines; more than 300 are not read", n)
	}
}

// isOurs reports whether a word in backticks is meant to be a file or folder of the tree:
// its first element is one, or it ends as source and documents do.
func isOurs(name string) bool {
	if !fileName.MatchString(name) || strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".perlica") {
		return false
	}
	switch path.Ext(name) {
	case ".go", ".md", ".sql", ".txtar":
		return true
	}
	first, _, nested := strings.Cut(name, "/")
	if !nested {
		return false // a command, an event's type, a method: too short to tell
	}
	info, err := os.Stat(first)
	return err == nil && info.IsDir()
}

func exists(name string) bool {
	_, err := os.Stat(filepath.FromSlash(name))
	return err == nil
}

// pages are the documents, wherever they lie.
func pages(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	for _, must := range []string{"README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"} {
		if !slices.Contains(list, must) {
			t.Errorf("there is no %s", must)
		}
	}
	return list
}

// TestLinks follows the links of the documents that stay in the tree, to their headings.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mdLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			if file == "" {
				target = page
			}
			if !exists(target) {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
				continue
			}
			if heading != "" && !slices.Contains(anchors(t, target), heading) {
				t.Errorf("%s links to %s, but there is no such heading", page, m[1])
			}
		}
	}
}

// anchors are the headings of a page as links name them.
func anchors(t *testing.T, page string) (list []string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	code := false
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		line := sc.Text()
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code || !strings.HasPrefix(line, "#") {
			continue
		}
		title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f:
				return r
			}
			return -1
		}, title))
	}
	return list
}

// TestIndex sees that docs/README.md leads to every page, and that decisions are numbered
// without a gap.
func TestIndex(t *testing.T) {
	index, err := os.ReadFile(filepath.Join("docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range pages(t) {
		page = filepath.ToSlash(page)
		rel, ok := strings.CutPrefix(page, "docs/")
		if !ok || rel == "README.md" {
			continue
		}
		if !strings.Contains(string(index), "]("+rel+")") {
			t.Errorf("docs/README.md does not lead to %s", page)
		}
		if base, ok := strings.CutPrefix(rel, "decisions/"); ok {
			if n++; !strings.HasPrefix(base, fmt.Sprintf("%04d-", n)) {
				t.Errorf("%s: decision number %d is missing", page, n)
			}
		}
	}
}
