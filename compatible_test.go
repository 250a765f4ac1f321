package perlica_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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
	value   = regexp.MustCompile(`^\s+\w+\s+\w+\s+= .*`)
)

// lostKeys compares the keys of the configuration and the kinds of their values.
func lostKeys(old, now string) []string {
	keys := func(text string) (list []string) {
		table := ""
		for line := range strings.Lines(text) {
			if m := section.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				table = m[1]
			} else if m := key.FindStringSubmatch(line); m != nil {
				kind := m[2] // the first character of a text, a list or a table
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

// lostCodes compares the values of constants.
func lostCodes(old, now string) []string {
	values := func(text string) (list []string) {
		for line := range strings.Lines(text) {
			if line, _, _ = strings.Cut(line, "//"); value.MatchString(line) {
				list = append(list, strings.Join(strings.Fields(line), " "))
			}
		}
		return list
	}
	return missing(values(old), values(now))
}
