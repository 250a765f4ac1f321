package config

import (
	"strings"
)

// These names begin with envPrefix but do not set keys. environmentName begins the origin of a setting from the
// environment.
const (
	envPrefix       = "PERLICA_"
	homeVariable    = "PERLICA_HOME"
	trustVariable   = "PERLICA_TRUST_PROJECT"
	agentVariable   = "PERLICA_PREDICTABLE"
	descentVariable = "PERLICA_AGENT_" // belongs to package descent
	environmentName = "environment "
)

// lookup returns a variable of an environment, or "".
func lookup(environ []string, name string) string {
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}

// envName is the name of the variable that sets a key.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// environment adds the settings of the environment variables. An empty variable sets nothing. A variable with an
// unknown key is only a warning, because it may belong to another program.
func (l *loader) environment(environ []string) {
	for _, kv := range environ {
		if !strings.HasPrefix(kv, envPrefix) {
			continue
		}
		name, value, _ := strings.Cut(kv, "=")
		if value == "" || name == homeVariable || name == trustVariable || name == TrustLogVariable ||
			strings.HasPrefix(name, agentVariable) || strings.HasPrefix(name, descentVariable) {
			continue
		}
		row, id := l.rowOfVariable(name)
		if row == nil {
			var names []string
			for i := range table {
				if r := &table[i]; r.static() && r.kind.scalar() {
					names = append(names, envName(r.name))
				}
			}
			p := &Problem{Source: environmentName + name, Reason: "sets no key and is ignored", Nearest: nearest(name, names)}
			if p.Nearest == "" {
				for _, n := range names {
					if strings.HasSuffix(n, name[len(envPrefix)-1:]) {
						p.Nearest = n
						break
					}
				}
			}
			l.config.Warnings = append(l.config.Warnings, p.Error())
			continue
		}
		l.putText(row, strings.Replace(row.name, anyID, id, 1), id, value, environmentName+name)
	}
}

// putText parses a text as the value of a key and sets the key.
func (l *loader) putText(row *row, key, id, value, origin string) {
	v, f := row.parseText(value)
	if f != nil {
		p := &Problem{Source: origin, Reason: f.reason.Text, Coded: f.reason.Coded, Nearest: f.nearest}
		if !strings.HasPrefix(origin, environmentName) {
			p.Key = key
		}
		l.problems = append(l.problems, p)
		return
	}
	l.putSetting(setting{row: row, key: key, id: id, value: v, origin: origin})
}

// rowOfVariable returns the row and the provider's id of the key that a variable sets. If the files mention a provider
// with such a name, rowOfVariable returns that provider's id. Otherwise the id has the variable's words in lower case,
// with dashes between them.
func (l *loader) rowOfVariable(name string) (*row, string) {
	for i := range table {
		r := &table[i]
		if !r.kind.scalar() || strings.Contains(r.name, "[]") {
			continue
		}
		before, after, several := strings.Cut(r.name, anyID)
		if !several && envName(r.name) == name {
			return r, ""
		}
		prefix, suffix := envName(before), strings.TrimPrefix(envName(after), envPrefix)
		if !several || len(name) <= len(prefix)+len(suffix) ||
			!strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, suffix) {
			continue
		}
		if id := l.idOf(name[len(prefix) : len(name)-len(suffix)]); validID(id) {
			return r, id
		}
	}
	return nil, ""
}

func (l *loader) idOf(word string) string {
	for _, key := range l.order {
		if id := l.values[key].id; id != "" && envName(id) == envPrefix+word {
			return id
		}
	}
	return strings.ReplaceAll(strings.ToLower(word), "_", "-")
}
