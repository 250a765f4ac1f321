package config

import (
	"net/url"
	"sort"
	"strings"

	"github.com/perlica/perlica/eventlog/redact"
)

// Value is a key with its value, for `config show`. The field Value is a TOML literal on one line. Its secrets are
// masked, and it has no control characters.
type Value struct {
	Key    string
	Value  string
	Origin string // "default", "user file PATH:3", "project file PATH:3", "environment PERLICA_X" or "flag"
}

// Values returns every key that has a value. The keys have the order of the documentation. The keys of providers are
// ordered by provider.
func (c *Config) Values() []Value {
	settings := append([]setting(nil), c.settings...)
	rank := make(map[*row]int, len(table))
	for i := range table {
		rank[&table[i]] = i
	}
	sort.SliceStable(settings, func(i, j int) bool {
		a, b := settings[i], settings[j]
		if isList(a.row.section()) || isList(b.row.section()) {
			// Servers and rules are in order already, and come last.
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

// mask is the text that replaces a secret.
const mask = "xxxxxxxx"

// programs maps the key of a program's arguments, such as "mcp.servers[0].args", to the program.
type programs map[string]string

func (p programs) addKey(key string, value any) {
	if program, ok := value.(string); ok && strings.HasSuffix(key, ".command") {
		p[strings.TrimSuffix(key, "command")+"args"] = program
	}
}

// shownValue returns a value as TOML with masked secrets. The secret flags in arguments depend on the program.
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

// maskURL masks the user name, the password and the query of an address. If secret is true, it also masks the path.
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
