package perlica_test

import (
	"encoding/json"
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

// missing returns the lines that only the list "old" has.
func missing(old, now []string) (lost []string) {
	has := map[string]bool{}
	for _, line := range now {
		has[line] = true
	}
	for _, line := range old {
		if !has[line] {
			lost = append(lost, strings.TrimSpace(line))
		}
	}
	return lost
}

// lostNames returns the exported names that only the old file has. Each line of api.txt gets the name of its
// package.
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
			least := []string{"everything"}
			for _, candidate := range today[dir] {
				// Old optional members may be mandatory now.
				members := strings.Split(candidate, "\n")
				for _, m := range members {
					name, kind, _ := strings.Cut(m, " ")
					members = append(members, name+"? "+kind)
				}
				if gone := missing(strings.Split(value, "\n"), members); len(gone) < len(least) || least[0] == "everything" {
					least = append(gone, least[len(least):]...)
				}
				if len(least) == 0 {
					break
				}
			}
			if len(least) > 0 {
				lost = append(lost, fmt.Sprintf("%s of a value in %s", strings.Join(least, ", "), dir))
			}
		}
	}
	return lost
}

// lostRoutes compares descriptions of the HTTP API. A new version may change texts, but it must not make a further
// member of a request mandatory.
func lostRoutes(old, now string) []string {
	lost := missing(routes(old), routes(now))
	known := needed(old)
	for schema, members := range needed(now) {
		if before, ok := known[schema]; ok {
			for _, member := range missing(members, before) {
				lost = append(lost, fmt.Sprintf("%s without the member %s", schema, member))
			}
		}
	}
	return lost
}

// needed returns the mandatory members of each schema of a request.
func needed(text string) map[string][]string {
	var api struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					}
				}
			}
		}
		Components struct {
			Schemas map[string]struct{ Required []string }
		}
	}
	_ = json.Unmarshal([]byte(text), &api) // routes reports its error
	list := map[string][]string{}
	for _, methods := range api.Paths {
		for _, method := range methods {
			for _, content := range method.RequestBody.Content {
				name := path.Base(content.Schema.Ref)
				list[name] = api.Components.Schemas[name].Required
			}
		}
	}
	return list
}

// routes returns the leaves of a description of the HTTP API, except its texts.
func routes(text string) (list []string) {
	var description any
	if err := json.Unmarshal([]byte(text), &description); err != nil {
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
	walk("", description)
	return list
}

var (
	section = regexp.MustCompile(`^# (\[.*\])$`)
	key     = regexp.MustCompile(`^# ([a-z_]+) = `)
	value   = regexp.MustCompile(`^\s+\w+\s+\w+\s+= .*`)
)

// lostKeys compares the keys of the configuration.
func lostKeys(old, now string) []string {
	keys := func(text string) (list []string) {
		table := ""
		for line := range strings.Lines(text) {
			if m := section.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				table = m[1]
			} else if m := key.FindStringSubmatch(line); m != nil {
				list = append(list, table+" "+m[1])
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
