package config

import (
	"net/url"
	"sort"
	"strings"

	"github.com/perlica/perlica/eventlog/redact"
)

// Value is one key, for `config show`. Its Value is a TOML literal on one line, with masked secrets and nothing
// that a terminal would obey.
type Value struct {
	Key    string
	Value  string
	Origin string // "default", "user file PATH:3", "project file PATH:3", "environment PERLICA_X", "flag"
}

// Values returns every key that has a value, in the order of the table of keys, then by name.
func (c *Config) Values() []Value {
	settings := append([]setting(nil), c.settings...)
	rank := make(map[*row]int, len(table))
	for i := range table {
		rank[&table[i]] = i
	}
	sort.SliceStable(settings, func(i, j int) bool {
		a, b := settings[i], settings[j]
		if isList(a.row.section()) || isList(b.row.section()) {
			// Elements are already in order and come last.
			return !isList(a.row.section()) && isList(b.row.section())
		}
		if a.id != b.id && a.row.section() == b.row.section() {
			return a.id < b.id
		}
		return rank[a.row] < rank[b.row]
	})
	programs := programs{}
	for _, s := range settings {
		programs.addKey(s.key, s.value)
	}
	values := make([]Value, len(settings))
	for i, s := range settings {
		values[i] = Value{Key: s.key, Value: shownValue(s.row, s.value, programs[s.key]), Origin: printable(s.origin)}
	}
	return values
}

// mask replaces a secret.
const mask = "xxxxxxxx"

// programs maps each key that holds arguments to the key of the program.
type programs map[string]string

func (p programs) addKey(key string, value any) {
	if program, ok := value.(string); ok && strings.HasSuffix(key, ".command") {
		p[strings.TrimSuffix(key, "command")+"args"] = program
	}
}

// shownValue writes a value as TOML with masked secrets. The program decides which arguments are secret flags.
func shownValue(r *row, v any, program string) string {
	if m, ok := v.(map[string]string); ok && r.secret {
		masked := make(map[string]string, len(m))
		for k := range m {
			masked[k] = mask
		}
		return format(masked)
	}
	if argv, ok := v.([]string); ok && strings.HasSuffix(r.name, ".args") {
		return format(redact.Args(append([]string{program}, argv...))[1:])
	}
	if s, ok := v.(string); ok && r.kind == text {
		return format(maskURL(s, r.secret))
	}
	return format(v)
}

// maskURL masks the credentials and the query of an address. For a secret address it masks the path too.
func maskURL(s string, secret bool) string {
	u, err := url.Parse(s)
	masksPath := err == nil && secret && strings.Trim(u.Path, "/") != ""
	if err != nil || u.Host == "" || u.User == nil && u.RawQuery == "" && !masksPath {
		return s
	}
	if masksPath {
		u.Path, u.RawPath = "/"+mask, ""
	}
	if u.User != nil {
		u.User = url.User(mask)
	}
	if u.RawQuery != "" {
		u.RawQuery = mask
	}
	return u.String()
}
