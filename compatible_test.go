package perlica_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCompatible checks that this version keeps each form of the released versions, which testdata/v* has. A new
// version may add forms. docs/compatibility.md has the promises.
func TestCompatible(t *testing.T) {
	releases, err := filepath.Glob(filepath.Join("testdata", "v*"))
	if err != nil || len(releases) == 0 {
		t.Fatal("no releases:", err)
	}
	for _, dir := range releases {
		for _, form := range []struct {
			old, now string
			lost     func(old, now string) []string
		}{
			{"api.txt", "docs/api.txt", lostNames},
			{"json.txt", "docs/json.txt", lostValues},
			{"commands.txt", "docs/commands.txt", lostCommands},
			{"openapi.json", "service/web/openapi.json", lostRoutes},
			{"config.toml", "kernel/config/testdata/config.toml", lostKeys},
			{"exitcodes.txt", "cmd/perlica/frame/exitcode.go", lostCodes},
			{"types.txt", "eventlog/event/type.go", lostCodes},
			{"payloads.txt", "kernel/fact/testdata/golden.txt", lostPayloads},
			{"hub.sql", "service/team/hub/schema.sql", lostStatements},
			{"eventlog.sql", "eventlog/store/schema.sql", lostStatements},
		} {
			name := filepath.Join(dir, form.old)
			for _, lost := range form.lost(readFile(t, name), readFile(t, form.now)) {
				t.Errorf("%s has %s, and %s does not have it", name, lost, form.now)
			}
		}
		version := readFile(t, filepath.Join(dir, "hub-version.txt"))
		if !strings.Contains(readFile(t, "service/team/hub/schema.go"), "\n"+version) {
			continue
		}
		// The log needs no such check, because each line of its schema is compared when a log is opened.
		was, is := readFile(t, filepath.Join(dir, "hub.sql")), readFile(t, "service/team/hub/schema.sql")
		for _, added := range lostStatements(is, was) {
			t.Errorf("service/team/hub/schema.sql has %s, and %s in %s is without it", added, strings.TrimSpace(version), dir)
		}
	}
}

// TestLost checks the rules for commands and constants.
func TestLost(t *testing.T) {
	const commands = "# comment\n\nperlica run\n\targuments FILE [MORE]\n\talias exec\n\t--json bool\n\t-j means --json\n"
	const constants = "package p\n\nconst (\n\tOne Code = 1\n\tPrefix = \"p:\"\n)\n\nfunc f() { const local = 1 }\n"
	for _, change := range []struct {
		old, was, is string
		lost         func(old, now string) []string
		want         int
	}{
		{commands, "perlica run", "perlica start", lostCommands, 4},
		{commands, "exec", "execute", lostCommands, 1},
		{commands, "--json bool", "--json string", lostCommands, 1},
		{commands, "-j means", "-J means", lostCommands, 1},
		{commands, "--json\n", "--json\n\t--yes bool\n\nperlica more\n", lostCommands, 0},
		{commands, "FILE [MORE]", "[FILE] [MORE] [FURTHER]", lostCommands, 0},
		{commands, "FILE [MORE]", "FILE MORE", lostCommands, 1},
		{commands, "FILE [MORE]", "FILE", lostCommands, 1},
		{commands, "FILE [MORE]", "FILE [MORE] NEEDED", lostCommands, 1},
		{constants, "One", "Two", lostCodes, 1},
		{constants, "1\n", "2\n", lostCodes, 1},
		{constants, `"p:"`, `"q:"`, lostCodes, 1},
		{constants, "local", "other", lostCodes, 0},
	} {
		now := strings.Replace(change.old, change.was, change.is, 1)
		if lost := change.lost(change.old, now); len(lost) != change.want {
			t.Errorf("%q instead of %q: lost %q, want %d", change.is, change.was, lost, change.want)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// missing returns the lines that are only in old. A line that is twice in old must be twice in now.
func missing(old, now []string) (lost []string) {
	has := map[string]int{}
	for _, line := range now {
		has[line]++
	}
	for _, line := range old {
		if has[line]--; has[line] < 0 {
			lost = append(lost, strings.TrimSpace(line))
		}
	}
	return lost
}

// lostPayloads compares examples of payloads. Each old example needs a new one of its type with all its members.
func lostPayloads(old, now string) (lost []string) {
	today := map[string][]string{}
	for line := range strings.Lines(now) {
		kind, payload, _ := strings.Cut(line, "\t")
		today[kind] = append(today[kind], payload)
	}
	for line := range strings.Lines(old) {
		kind, payload, _ := strings.Cut(line, "\t")
		if !slices.ContainsFunc(today[kind], func(p string) bool { return len(missing(leaves(payload), leaves(p))) == 0 }) {
			lost = append(lost, strings.TrimSpace(line))
		}
	}
	return lost
}

// lostNames compares exported names. Each line of api.txt gets the name of its package.
func lostNames(old, now string) []string {
	names := func(text string) (list []string) {
		dir := ""
		for line := range strings.Lines(text) {
			switch line = strings.TrimRight(line, "\n"); {
			case strings.HasPrefix(line, "\t"):
				list = append(list, dir+line)
			case !strings.HasPrefix(line, "#"):
				dir = line
			}
		}
		return list
	}
	return missing(names(old), names(now))
}

// lostValues compares the JSON of commands. Each old value needs a new value in the same folder with all its members. A
// member that was always there must not become optional.
func lostValues(old, now string) (lost []string) {
	values := func(text string) map[string][]string { // by folder
		byDir := map[string][]string{}
		for _, block := range strings.Split(text, "\n\n")[1:] {
			dir, value, _ := strings.Cut(strings.TrimSpace(block), "\n")
			byDir[dir] = append(byDir[dir], value)
		}
		return byDir
	}
	today := values(now)
	for dir, list := range values(old) {
		for _, value := range list {
			least := strings.Split(value, "\n")
			for _, candidate := range today[dir] {
				// Old optional members may be mandatory now.
				members := strings.Split(candidate, "\n")
				for _, m := range members {
					name, kind, _ := strings.Cut(m, " ")
					members = append(members, name+"? "+kind)
				}
				if gone := missing(strings.Split(value, "\n"), members); len(gone) < len(least) {
					least = gone
				}
			}
			if len(least) > 0 {
				lost = append(lost, fmt.Sprintf("%s of a value in %s", strings.Join(least, ", "), dir))
			}
		}
	}
	return lost
}

// lostRoutes compares descriptions of the HTTP API. A new version may change texts, and a request must not need a
// further member or parameter.
func lostRoutes(old, now string) []string {
	lost := missing(leaves(old), leaves(now))
	known, err := needed(old)
	today, err2 := needed(now)
	if err := errors.Join(err, err2); err != nil {
		return []string{err.Error()}
	}
	for place, members := range today {
		if before, ok := known[place]; ok {
			for _, member := range missing(members, before) {
				lost = append(lost, fmt.Sprintf("%s without the mandatory %s", place, member))
			}
		}
	}
	return lost
}

// schema is a schema of the HTTP API.
type schema struct {
	Ref        string `json:"$ref"`
	Required   []string
	Properties map[string]*schema
	Items      *schema
}

// parameter is a parameter of a route.
type parameter struct {
	Ref      string `json:"$ref"`
	Name     string
	Required bool
}

// needed returns the mandatory members of each object in a request, and the mandatory parameters of each route.
func needed(text string) (map[string][]string, error) {
	var api struct {
		Paths map[string]map[string]struct {
			Parameters  []parameter
			RequestBody struct {
				Required bool
				Content  map[string]struct{ Schema *schema }
			}
		}
		Components struct {
			Schemas    map[string]*schema
			Parameters map[string]parameter
		}
	}
	if err := json.Unmarshal([]byte(text), &api); err != nil {
		return nil, err
	}
	list := map[string][]string{}
	var add func(place string, s *schema)
	add = func(place string, s *schema) {
		if s == nil {
			return
		}
		if s.Ref != "" {
			place = path.Base(s.Ref)
			if s = api.Components.Schemas[place]; s == nil || list[place] != nil {
				return
			}
		}
		list[place] = append([]string{}, s.Required...)
		for name, member := range s.Properties {
			add(place+"."+name, member)
		}
		add(place+"[]", s.Items)
	}
	for route, methods := range api.Paths {
		for name, method := range methods {
			place := name + " " + route
			list[place] = []string{}
			for _, p := range method.Parameters {
				if p.Ref != "" {
					p = api.Components.Parameters[path.Base(p.Ref)]
				}
				if p.Required {
					list[place] = append(list[place], p.Name)
				}
			}
			if method.RequestBody.Required {
				list[place] = append(list[place], "body")
			}
			for _, content := range method.RequestBody.Content {
				add(place+" body", content.Schema)
			}
		}
	}
	return list, nil
}

// leaves returns the values in a JSON value with their places, except the texts in a description of the HTTP API.
func leaves(text string) (list []string) {
	var top any
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		return []string{err.Error()}
	}
	var walk func(place string, v any)
	walk = func(place string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if !slices.Contains([]string{"description", "summary", "example", "examples", "tags", "info"}, key) {
					walk(place+"/"+key, v[key])
				}
			}
		case []any:
			for _, item := range v { // the order of a list has no meaning
				walk(place+"/-", item)
			}
		default:
			list = append(list, fmt.Sprintf("%s %v", place, v))
		}
	}
	walk("", top)
	return list
}

var (
	section = regexp.MustCompile(`^# (\[.*\])$`)
	key     = regexp.MustCompile(`^# (\w+) = (?:(["\[{])|(\d)|\w)`)
)

// lostKeys compares the keys of the configuration and the kinds of their values.
func lostKeys(old, now string) []string {
	keys := func(text string) (list []string) {
		table := ""
		for line := range strings.Lines(text) {
			if m := section.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				table = m[1]
			} else if m := key.FindStringSubmatch(line); m != nil {
				kind := m[2] // the character that begins the value: a quote, a bracket or a brace
				if m[3] != "" {
					kind = "number"
				}
				list = append(list, table+" "+m[1]+" "+cmp.Or(kind, "boolean"))
			}
		}
		return list
	}
	return missing(keys(old), keys(now))
}

// lostStatements compares the lines of schemas without their comments.
func lostStatements(old, now string) []string {
	statements := func(text string) (list []string) {
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "--")
			list = append(list, strings.TrimSpace(line))
		}
		return list
	}
	return missing(statements(old), statements(now))
}

// lostCodes compares the exported constants of Go files.
func lostCodes(old, now string) []string {
	constants := func(text string) (list []string) {
		f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
		if err != nil {
			return []string{err.Error()}
		}
		for _, d := range f.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if name.IsExported() && i < len(spec.Values) {
						list = append(list, name.Name+" = "+types.ExprString(spec.Values[i]))
					}
				}
			}
		}
		return list
	}
	return missing(constants(old), constants(now))
}

// lostCommands compares the commands, their arguments and their flags. An argument may become optional, and a further
// argument must be optional.
func lostCommands(old, now string) []string {
	read := func(text string) (lines []string, arguments map[string][]string) {
		arguments = map[string][]string{} // by command
		for _, block := range strings.Split(text, "\n\n")[1:] {
			command, rest, _ := strings.Cut(strings.TrimSuffix(block, "\n"), "\n")
			lines, arguments[command] = append(lines, command), nil
			for line := range strings.Lines(rest) {
				line = strings.TrimSpace(line)
				if words, ok := strings.CutPrefix(line, "arguments "); ok {
					arguments[command] = strings.Fields(words)
				} else {
					lines = append(lines, command+" "+line)
				}
			}
		}
		return lines, arguments
	}
	was, before := read(old)
	is, after := read(now)
	lost := missing(was, is)
	for command, words := range before {
		if today, ok := after[command]; ok && !accepts(today, words) {
			lost = append(lost, command+" "+strings.Join(words, " "))
		}
	}
	return lost
}

// accepts reports whether a command with the arguments now accepts each command line that has the arguments old.
func accepts(now, old []string) bool {
	for i, word := range now {
		switch {
		case i >= len(old):
			if !strings.HasPrefix(word, "[") {
				return false
			}
		case word != old[i] && word != "["+old[i]+"]":
			return false
		}
	}
	return len(now) >= len(old)
}
