// Package perlica_test holds what is true of the whole tree: which folder may import which,
// how long a file may be, and that the documents name what exists.
package perlica_test

import (
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
	"testing"
)

const module = "github.com/perlica/perlica"

// mayImport is the house: imports point downwards only, and a folder that is not listed
// here does not exist. Tests obey the same table.
var mayImport = map[string][]string{
	"eventlog":              {"eventlog/anchor", "eventlog/event", "eventlog/evidence", "eventlog/fault", "eventlog/folder", "eventlog/intents", "eventlog/store", "eventlog/tree"},
	"eventlog/intents":      {"eventlog/durable", "eventlog/fault", "eventlog/folder"},
	"eventlog/anchor":       {"eventlog/durable", "eventlog/evidence", "eventlog/fault", "eventlog/folder"},
	"eventlog/durable":      {},
	"eventlog/fault":        {},
	"eventlog/folder":       {},
	"eventlog/event":        {"eventlog/evidence", "eventlog/strict"},
	"eventlog/store":        {"eventlog/durable", "eventlog/event", "eventlog/evidence", "eventlog/fault", "eventlog/folder", "eventlog/tree"},
	"eventlog/view":         {"eventlog/event", "eventlog/fault", "eventlog/folder", "eventlog/store"},
	"eventlog/export":       {"eventlog/anchor", "eventlog/durable", "eventlog/event", "eventlog/evidence", "eventlog/fault", "eventlog/folder", "eventlog/store", "eventlog/strict", "eventlog/tree", "eventlog/verify"},
	"eventlog/verify":       {"eventlog/anchor", "eventlog/event", "eventlog/evidence", "eventlog/fault", "eventlog/folder", "eventlog/intents", "eventlog/store", "eventlog/tree"},
	"eventlog/strict":       {},
	"eventlog/tree":         {"eventlog/event"},
	"eventlog/evidence":     {"eventlog/durable"},
	"eventlog/redact":       {},
	"eventlog/trail":        {"eventlog/redact"},
	"eventlog/witness":      {"eventlog", "eventlog/evidence", "eventlog/store"},
	"interaction":           {"eventlog", "eventlog/event", "eventlog/store"},
	"interaction/card":      {"interaction"},
	"interaction/form":      {"interaction"},
	"policy":                {"policy/shell"},
	"policy/shell":          {},
	"policy/standing":       {"eventlog/event", "eventlog/store", "eventlog/view", "policy"},
	"policy/toolcall":       {"policy", "policy/shell"},
	"provider":              {"provider/jsonrpc", "provider/process"},
	"provider/process":      {"provider/descent"},
	"provider/registry":     {"provider"},
	"provider/descent":      {},
	"provider/predictable":  {},
	"provider/model":        {},
	"provider/replay":       {"eventlog/event", "eventlog/export", "eventlog/store"},
	"kernel/config":         {"eventlog/durable", "eventlog/redact", "policy"},
	"kernel/fact":           {"eventlog/event", "interaction", "provider"},
	"kernel/fact/bridge":    {"eventlog/event"},
	"kernel/fact/web":       {"kernel/fact/bridge"},
	"kernel/fact/team":      {},
	"kernel/agents":         {"eventlog/redact", "kernel/config", "provider", "provider/jsonrpc", "provider/registry", "provider/model"},
	"kernel/sessions":       {"eventlog/event", "eventlog/store", "eventlog/view", "kernel/fact"},
	"kernel/approvals":      {"eventlog", "eventlog/durable", "eventlog/event", "eventlog/evidence", "eventlog/store", "kernel/config", "kernel/fact", "policy"},
	"kernel/filelock":       {"eventlog/folder"},
	"kernel/language":       {"interaction", "interaction/card"},
	"kernel/queue":          {"eventlog", "eventlog/event", "eventlog/store", "kernel/fact"},
	"kernel/login":          {"eventlog/event", "eventlog/redact", "kernel", "kernel/agents", "kernel/fact", "provider/process"},
	"kernel/logtrust":       {"eventlog", "eventlog/event", "eventlog/evidence", "eventlog/folder", "eventlog/intents", "eventlog/store", "eventlog/verify"},
	"kernel":                {"eventlog", "eventlog/event", "eventlog/evidence", "eventlog/folder", "eventlog/redact", "eventlog/store", "eventlog/view", "interaction", "interaction/form", "kernel/agents", "kernel/approvals", "kernel/config", "kernel/fact", "kernel/filelock", "kernel/logtrust", "kernel/sessions", "policy", "policy/shell", "policy/standing", "policy/toolcall", "provider", "provider/jsonrpc", "provider/process"},
	"kernel/report":         {"eventlog/event", "eventlog/store", "eventlog/verify", "eventlog/view", "interaction", "kernel", "kernel/fact", "kernel/fact/bridge", "kernel/fact/team", "kernel/fact/web", "kernel/language", "policy", "provider", "provider/registry"},
	"kernel/project":        {"eventlog/event", "eventlog/fault", "eventlog/redact", "eventlog/store", "eventlog/trail", "kernel", "kernel/agents", "kernel/approvals", "kernel/config", "kernel/logtrust", "kernel/sessions", "policy"},
	"kernel/streamjson":     {"eventlog/event", "kernel", "kernel/fact", "provider"},
	"kernel/checkup":        {"eventlog", "eventlog/anchor", "eventlog/event", "eventlog/evidence", "eventlog/fault", "eventlog/folder", "eventlog/intents", "eventlog/store", "eventlog/trail", "eventlog/verify", "eventlog/view", "interaction", "kernel", "kernel/agents", "kernel/config", "kernel/filelock", "provider/process"},
	"kernel/command":        {"kernel/language", "eventlog/event", "eventlog/evidence", "eventlog/store", "eventlog/verify", "interaction", "interaction/card", "kernel", "kernel/agents", "kernel/checkup", "kernel/config", "kernel/fact", "kernel/report", "kernel/sessions"},
	"service":               {"eventlog", "eventlog/event", "eventlog/folder", "eventlog/store", "eventlog/view", "interaction", "interaction/card", "kernel", "kernel/approvals", "kernel/checkup", "kernel/command", "kernel/fact", "kernel/fact/bridge", "kernel/language", "kernel/queue", "policy", "service/access", "service/bot", "service/channel", "service/team", "service/team/door"},
	"service/bot":           {"eventlog", "eventlog/event", "eventlog/store", "kernel/fact/bridge", "service/channel"},
	"service/channel":       {},
	"service/access":        {"kernel/fact/bridge"},
	"service/web":           {"eventlog", "eventlog/event", "eventlog/evidence", "eventlog/fault", "eventlog/store", "eventlog/strict", "eventlog/verify", "interaction", "interaction/card", "kernel", "kernel/agents", "kernel/config", "kernel/fact", "kernel/filelock", "kernel/language", "kernel/logtrust", "kernel/project", "kernel/report", "kernel/sessions", "kernel/streamjson", "policy", "provider", "service/access", "service/acp", "service/attachment", "service/team", "service/team/copies", "service/team/door", "service/team/proposal", "service/web/device", "service/web/push"},
	"service/web/push":      {"eventlog/durable"},
	"service/web/device":    {"eventlog", "eventlog/event", "eventlog/store", "kernel/fact", "kernel/fact/bridge", "kernel/fact/web", "service/access"},
	"service/acp":           {"eventlog/event", "interaction", "interaction/form", "kernel", "kernel/agents", "kernel/filelock", "policy", "policy/shell", "provider", "provider/jsonrpc", "provider/process", "eventlog/redact", "kernel/fact"},
	"service/team":          {"eventlog", "eventlog/event", "eventlog/evidence", "eventlog/export", "eventlog/tree", "eventlog/verify", "interaction", "kernel", "kernel/agents", "kernel/checkup", "kernel/fact/team", "kernel/filelock", "kernel/project", "kernel/sessions", "kernel/streamjson", "policy", "provider", "service/attachment", "service/team/copies", "service/team/hub", "service/team/proposal"},
	"service/team/copies":   {"eventlog/event", "eventlog/evidence", "eventlog/store", "eventlog/tree", "eventlog/verify", "eventlog/view", "service/team/hub"},
	"service/team/door":     {"eventlog/event", "interaction", "service/team", "service/team/proposal"},
	"service/team/hub":      {"service/team/proposal"},
	"service/team/proposal": {},
	"provider/jsonrpc":      {},
	"service/local":         {"eventlog/strict", "provider/descent", "service/channel"},
	"service/attachment":    {"eventlog/durable"},
	"service/telegram":      {"eventlog/strict", "service/attachment", "service/channel"},
	"service/webhook":       {"eventlog/strict", "provider/descent", "service/attachment", "service/channel"},
	"service/imessage":      {"service/channel"},
	"cmd/perlica/term":      {},
	"cmd/perlica/builtin":   {"provider/predictable"},
	"cmd/perlica/markdown":  {"cmd/perlica/term"},
	"cmd/perlica/editor":    {"cmd/perlica/term"},
	"cmd/bench":             {"eventlog", "eventlog/event", "kernel", "kernel/agents", "kernel/approvals", "kernel/config", "policy", "provider", "provider/predictable"},
	"cmd/bench/bare":        {},

	"service/telegram/telegramtest": {},
	"service/team/hub/hubtest":      {},
	"service/web/page":              {},
	"service/web/device/devicetest": {"service/web/device"},
	"service/web/push/pushtest":     {"service/web/push"},
	"cmd/perlica/term/termtest":     {},
}

// mayImportInTests is what tests need beside that.
var mayImportInTests = map[string][]string{
	"service/acp":       {"kernel/project", "kernel/sessions", "provider/predictable"},
	"eventlog/witness":  {"eventlog/event"},
	"kernel/agents":     {"provider/predictable"},
	"kernel/approvals":  {"eventlog/verify"},
	"eventlog/view":     {"eventlog"},
	"eventlog/store":    {"eventlog"},
	"eventlog/verify":   {"eventlog", "eventlog/export", "service/team/copies", "service/team/hub", "service/team/hub/hubtest"},
	"eventlog":          {"eventlog/export", "eventlog/verify", "eventlog/view"},
	"kernel/checkup":    {"kernel/project"},
	"kernel/command":    {"kernel/project", "policy", "provider", "provider/predictable"},
	"kernel/report":     {"eventlog", "eventlog/evidence"},
	"provider":          {"provider/predictable"},
	"provider/registry": {"provider/process"},
	"provider/replay":   {"eventlog"},
	"kernel":            {"eventlog/fault", "eventlog/verify", "kernel/project", "provider/predictable"},
	"service/web":       {"provider/predictable", "service/team/hub/hubtest", "service/web/page", "service/web/device/devicetest", "service/web/push/pushtest"},
	"service/web/push":  {"service/web/push/pushtest"},
	"kernel/project":    {"eventlog", "eventlog/view", "interaction", "kernel/streamjson", "provider/predictable"},
	"service":           {"eventlog/verify", "kernel/agents", "kernel/config", "provider", "provider/predictable", "service/local", "service/team/hub", "service/team/hub/hubtest", "service/team/proposal", "service/telegram", "service/telegram/telegramtest"},
	"service/telegram":  {"service/telegram/telegramtest"},
	"service/team/hub":  {"service/team/hub/hubtest"},

	"service/team/copies": {"service/team/hub/hubtest", "service/team/proposal"},

	"service/team": {"eventlog/store", "eventlog/tree", "eventlog/verify", "provider/predictable", "service/team/hub/hubtest"},

	"cmd/perlica/markdown": {"cmd/perlica/term/termtest"},
	"cmd/perlica/editor":   {"cmd/perlica/term/termtest"},

	"service/web/device": {"eventlog/verify", "service/web/device/devicetest"},
	"cmd/perlica":        {"eventlog/anchor", "eventlog/store", "eventlog/verify", "policy/shell", "eventlog", "eventlog/event", "eventlog/evidence", "interaction", "kernel", "kernel/command", "kernel/report", "kernel/streamjson", "service/web/device/devicetest", "service/web/device", "kernel/filelock", "kernel/fact/web", "kernel/config", "policy", "provider/registry", "service/telegram/telegramtest", "service/webhook", "cmd/perlica/term/termtest", "service/team/hub/hubtest"},
}

// only lists who may import what is not ours: who starts processes, listens to signals,
// opens a socket, speaks SQL, is a command line.
var only = map[string][]string{
	"os/exec":                          {"provider/process", "kernel/project", "service", "service/imessage", "cmd/perlica/chat", "cmd/perlica/provider", "cmd/bench", "service/team/hub/hubtest"}, // of service see onlyName
	"os/signal":                        {"cmd/perlica/chat", "cmd/perlica/log", "cmd/perlica/service", "cmd/perlica/signals", "cmd/perlica/team", "cmd/perlica/watch", "cmd/perlica/web", "cmd/perlica/builtin"},
	"net":                              {"service/web/push", "service/web/push/pushtest", "service/web", "cmd/perlica/web", "service/web/device", "interaction", "service/local", "service/webhook", "cmd/perlica/service", "provider/model", "service/team/hub", "service/team/hub/hubtest"},
	"net/http":                         {"cmd/bench", "service/web/push", "service/web/push/pushtest", "service/web", "cmd/perlica/web", "service/web/device", "service/web/device/devicetest", "eventlog/witness", "service/channel", "service/telegram", "service/telegram/telegramtest", "service/webhook", "kernel", "provider/model"}, // of kernel see onlyName
	"plugin":                           {},
	"github.com/jackc/pgx/v5":          {"service/team/copies", "service/team/hub"},
	"rsc.io/qr":                        {"cmd/perlica/printing"},
	"github.com/spf13/cobra":           {"cmd/perlica/acp", "cmd/perlica", "cmd/perlica/chat", "cmd/perlica/cli", "cmd/perlica/config", "cmd/perlica/dialog", "cmd/perlica/doctor", "cmd/perlica/export", "cmd/perlica/log", "cmd/perlica/pending", "cmd/perlica/policy", "cmd/perlica/provider", "cmd/perlica/remote", "cmd/perlica/run", "cmd/perlica/selection", "cmd/perlica/service", "cmd/perlica/session", "cmd/perlica/team", "cmd/perlica/watch", "cmd/perlica/web"},
	"github.com/chzyer/readline":       {"cmd/perlica/editor"},
	"golang.org/x/term":                {"cmd/perlica/term"},
	"modernc.org/sqlite":               {"eventlog", "cmd/bench/bare", "eventlog/fault", "eventlog/store"},
	"zombiezen.com/go/sqlite":          {"eventlog", "eventlog/fault", "eventlog/verify"},
	"golang.org/x/mod/sumdb/tlog":      {"eventlog", "eventlog/event", "eventlog/evidence", "eventlog/tree", "eventlog/store", "eventlog/export", "eventlog/verify"},
	"gopkg.in/natefinch/lumberjack.v2": {"eventlog/trail"},
	"github.com/pelletier/go-toml/v2":  {"kernel/config", "cmd/perlica/config"},
	"mvdan.cc/sh/v3/syntax":            {"kernel/agents", "policy/shell"},                                                                                                                                              // of kernel/agents see onlyName
	"github.com/coder/acp-go-sdk":      {"service/acp", "kernel/report", "kernel/project", "kernel/agents", "kernel", "cmd/perlica", "cmd/perlica/provider", "cmd/perlica/dialog", "provider", "provider/predictable"}, // no payload has its types
}

// onlyName is finer: of these packages, a folder uses nothing but the names listed.
var onlyName = map[string]map[string][]string{
	"os/exec":                         {"cmd/perlica/chat": {"LookPath", "Command"}, "cmd/perlica/provider": {"CommandContext"}, "kernel/project": {"LookPath"}, "service": {}}, // the user's own editor
	"net":                             {"cmd/perlica/service": {"Dial"}, "service/web/device": {"SplitHostPort"}, "service/web": {"SplitHostPort"}},
	"net/http":                        {"kernel": {"DetectContentType"}},
	"mvdan.cc/sh/v3/syntax":           {"kernel/agents": {"Quote", "LangBash"}},
	"github.com/pelletier/go-toml/v2": {"cmd/perlica/config": {"Unmarshal"}},
}

// saysNothing are names of folders that tell a reader nothing.
var saysNothing = []string{"util", "utils", "common", "types", "models", "errors", "helpers", "misc", "base", "shared", "internal"}

// maySleep are tests with a child process that does nothing until it is ended, or that
// look again and again, for a bounded time, at what other processes do. No other test
// waits for time to pass.
var maySleep = []string{
	"provider/process/process_test.go", "provider/process/process_linux_test.go", "provider/harness_test.go",
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
	folders := maps.Clone(mayImport)
	maps.Copy(folders, commandMayImport)
	for _, s := range sources(t) {
		if s.dir == "." {
			continue
		}
		if _, ok := folders[s.dir]; !ok {
			t.Errorf("%s: the folder %s is not in the table of layout_test.go", s.name, s.dir)
			continue
		}
		for name, p := range s.imports(t) {
			if ours, ok := strings.CutPrefix(p, module+"/"); ok {
				allowed := ours == s.dir && s.test || slices.Contains(folders[s.dir], ours) ||
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
