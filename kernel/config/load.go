package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perlica/perlica/policy"
)

// setting is the value of a key, in one layer or after all layers.
type setting struct {
	row    *row
	key    string // with all parts, such as "providers.claude.acp.mode"
	id     string // the id in the key, or ""
	value  any
	origin string // such as "user file PATH:3"
}

// Load reads all layers. flags maps keys such as "model.default_provider" to values. environ is the result of
// os.Environ.
//
// The error is of type Problems and lists every mistake. The Config is never nil. With an error it has the valid
// settings. Only `doctor` and `config show` may use it then. Load writes nothing.
func Load(ws Workspace, dirs Dirs, environ []string, flags map[string]string) (*Config, error) {
	l := &loader{values: map[string]setting{}, config: &Config{}}
	l.defaults()
	l.user(dirs)
	l.project(ws, dirs, environ)
	l.environment(environ)
	for _, key := range slices.Sorted(maps.Keys(flags)) { // flags are the highest layer
		row, id := rowOf(key)
		if row == nil || !row.kind.scalar() || strings.Contains(row.name, "[]") {
			l.problems = append(l.problems, &Problem{Source: "flag", Key: key, Reason: "is not a key a flag can set"})
			continue
		}
		l.putText(row, key, id, flags[key], "flag")
	}
	// The settings become the typed Config.
	c := l.config
	c.Providers, c.ContextWindows, c.Service.Channels = map[string]Provider{}, map[string]int{}, map[string]bool{}
	for _, key := range l.order {
		s := l.values[key]
		c.settings = append(c.settings, s)
		if s.row.reserved {
			c.Notes = append(c.Notes, s.origin+": "+key+" is reserved and does nothing: "+s.row.help)
		}
		t := target{config: c, id: s.id}
		if s.row.section() != providerSection {
			s.row.store(t, s.value)
			continue
		}
		p := c.Provider(s.id)
		t.provider = &p
		s.row.store(t, s.value)
		c.Providers[s.id] = p
	}
	l.buildLists()
	if len(l.problems) > 0 {
		return l.config, l.problems
	}
	return l.config, nil
}

// loader collects the layers, the lowest first.
type loader struct {
	config   *Config
	order    []string // keys in the order of their first setting
	values   map[string]setting
	elements []element
	problems Problems
}

// putSetting replaces the earlier value of a key. If the key's row says that files add to a list, putSetting appends
// instead.
func (l *loader) putSetting(s setting) {
	if old, ok := l.values[s.key]; !ok {
		l.order = append(l.order, s.key)
	} else if s.row.adds {
		s.value = append(slices.Clip(old.value.([]string)), s.value.([]string)...)
		s.origin = old.origin + ", " + s.origin
	}
	l.values[s.key] = s
}

func (l *loader) defaults() {
	for i := range table {
		if r := &table[i]; r.static() && r.def != nil {
			l.putSetting(setting{row: r, key: r.name, value: r.def, origin: "default"})
		}
	}
}

func (l *loader) user(dirs Dirs) {
	path := dirs.ConfigFile()
	data, err := ReadRegular(path, maxFileSize)
	if problem := unreadable(path, err); problem != nil {
		l.problems = append(l.problems, problem)
		return
	}
	if data == nil {
		return
	}
	layer := readLayer("user file", path, data)
	l.problems = append(l.problems, layer.problems...)
	for _, e := range layer.entries {
		l.putSetting(e.setting)
	}
	layer.setFolder(dirs.Config)
	l.elements = append(l.elements, layer.elements...)
}

// project adds the project file: all of it if it is trusted, otherwise only the tightening keys.
func (l *loader) project(ws Workspace, dirs Dirs, environ []string) {
	files, problems := readProject(ws)
	l.problems = append(l.problems, problems...)
	if !files.present() {
		return
	}
	l.config.Project.Digest = files.digest()
	l.config.Project.Trusted = l.trusted(ws, dirs, environ)
	if files.config != nil {
		layer := readLayer(projectFile, ws.ConfigFile(), files.config)
		l.problems = append(l.problems, layer.problems...)
		layer.setFolder(ws.Root)
		l.tightenLayer(layer)
	}
	switch {
	case files.prompt == nil:
	case !utf8.Valid(files.prompt):
		l.problems = append(l.problems, &Problem{Source: ws.SystemPromptFile(), Reason: "is not UTF-8"})
	case l.config.Project.Trusted:
		l.config.SystemPrompt = string(files.prompt)
	default:
		l.withholdSetting(ws.SystemPromptFile(), "text sent to the agent")
	}
}

// setFolder sets the folder from which the relative paths of the layer's tables start.
func (l *layer) setFolder(dir string) {
	for i := range l.elements {
		l.elements[i].folder = dir
	}
}

// trusted reports whether all settings of the project take effect. If the trust store is broken, trusted adds a problem
// and returns false.
func (l *loader) trusted(ws Workspace, dirs Dirs, environ []string) bool {
	if v := lookup(environ, trustVariable); v != "" {
		ok, err := strconv.ParseBool(v)
		if err != nil {
			l.problems = append(l.problems, &Problem{Source: "environment " + trustVariable, Reason: "must be 1 or 0"})
		}
		l.config.Project.Once = ok
		return ok
	}
	ok, err := Trusted(dirs, ws, l.config.Project.Digest)
	if err != nil {
		l.problems = append(l.problems, &Problem{Source: dirs.trustFile(ws), Reason: err.Error(), Err: err})
	}
	return ok
}

// buildLists fills the lists of the Config. A project's server or schedule replaces a user's with the same name.
// readLayer has already refused two of the same name in one file.
func (l *loader) buildLists() {
	c, count := l.config, map[string]int{}
	for i, e := range l.elements {
		if l.replaced(i) {
			continue
		}
		t := target{
			server: &MCPServer{Origin: e.place}, rule: &policy.Rule{Origin: e.place},
			program: &PolicyProgram{Origin: e.place, Folder: e.folder}, schedule: &Schedule{Origin: e.place},
			budget: &Budget{Origin: e.place}, hook: &Hook{Origin: e.place, Folder: e.folder},
			notify: &Notify{Origin: e.place},
		}
		for i := range table {
			if r := &table[i]; r.section() == e.list && r.def != nil {
				r.store(t, r.def)
			}
		}
		for _, f := range e.entries {
			f.row.store(t, f.value)
			f.key = e.list + "[" + strconv.Itoa(count[e.list]) + "]." + f.key
			c.settings = append(c.settings, f.setting)
		}
		count[e.list]++
		switch e.list {
		case serverSection:
			c.MCPServers = append(c.MCPServers, *t.server)
		case programSection:
			c.Programs = append(c.Programs, *t.program)
		case scheduleSection:
			c.Schedules = append(c.Schedules, *t.schedule)
		case budgetSection:
			c.Budgets = append(c.Budgets, *t.budget)
		case hookSection:
			c.Hooks = append(c.Hooks, *t.hook)
		case notifySection:
			c.Notify = append(c.Notify, *t.notify)
		case ruleSection:
			c.Rules = append(c.Rules, *t.rule)
			if t.rule.Effect == policy.Allow && t.rule.Provider == "" && len(t.rule.Kind) == 0 && t.rule.Path == "" &&
				t.rule.Command == "" {
				c.Warnings = append(c.Warnings, t.rule.Origin+": this rule allows everything")
			}
		}
	}
}

// replaced reports whether a later file replaces the i-th element by one with the same name.
func (l *loader) replaced(i int) bool {
	e := &l.elements[i]
	key := nameKey[e.list]
	return key != "" && slices.ContainsFunc(l.elements[i+1:], func(later element) bool {
		return later.list == e.list && later.valueOf(key) == e.valueOf(key)
	})
}

// unreadable turns the error of reading a file into a problem. A missing file is not a problem.
func unreadable(path string, err error) *Problem {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	why := err
	var pe *fs.PathError
	if errors.As(err, &pe) {
		why = pe.Err
	}
	said := errUnreadable.With(why)
	return &Problem{Source: path, Reason: said.Text, Coded: said.Coded, Err: err}
}

var errIrregular = errors.New("not a regular file")

// ReadRegular reads a regular file of at most limit bytes. It does not wait for a writer of a pipe.
func ReadRegular(path string, limit int64) ([]byte, error) {
	return readRegular(os.Stat, func(p string) (io.ReadCloser, error) { return os.Open(p) }, path, limit)
}

// ReadRegularIn reads a regular file below a folder, as ReadRegular does. No symbolic link leads out of the folder.
func ReadRegularIn(root *os.Root, name string, limit int64) ([]byte, error) {
	return readRegular(root.Stat, func(p string) (io.ReadCloser, error) { return root.Open(p) }, name, limit)
}

// readRegular reads a regular file of at most limit bytes. It calls stat before open, because opening a pipe would wait
// for a writer.
func readRegular(stat func(string) (fs.FileInfo, error), open func(string) (io.ReadCloser, error), path string,
	limit int64) ([]byte, error) {
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errIrregular
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %d KiB", limit>>10)
	}
	return data, err
}

// readProject reads the project's two files. It opens the project's directory as a root, so that no symbolic link leads
// to a file outside.
func readProject(ws Workspace) (projectFiles, Problems) {
	var files projectFiles
	if !ws.Exists {
		return files, nil
	}
	root, err := os.OpenRoot(ws.Root)
	if err != nil {
		return files, Problems{unreadable(ws.Root, err)}
	}
	defer root.Close()
	open := func(p string) (io.ReadCloser, error) { return root.Open(p) }
	var problems Problems
	read := func(path string, limit int64) []byte {
		rel, err := filepath.Rel(ws.Root, path)
		if err != nil {
			rel = path // the following reads report an error, because the root refuses this path
		}
		data, err := readRegular(root.Stat, open, rel, limit)
		if problem := unreadable(path, err); problem != nil {
			problems = append(problems, problem)
		}
		return data
	}
	files.config, files.prompt = read(ws.ConfigFile(), maxProjectSize), read(ws.SystemPromptFile(), maxFileSize)
	return files, problems
}

// ReadRules returns the policy rules in a file of the configuration's format. The file need not be in use. ReadRules
// checks all its keys. An error about a key is of type Problems.
func ReadRules(path string) ([]policy.Rule, error) {
	data, err := ReadRegular(path, maxFileSize)
	if err != nil {
		return nil, err
	}
	return ParseRules(path, data)
}

// ParseRules returns the policy rules in a text of the configuration's format, as ReadRules does. Errors and origins of
// rules begin with the parameter "name".
func ParseRules(name string, data []byte) ([]policy.Rule, error) {
	file := readLayer("file", name, data)
	l := &loader{values: map[string]setting{}, config: &Config{}, problems: file.problems}
	for _, e := range file.elements {
		if e.list == ruleSection {
			l.elements = append(l.elements, e)
		}
	}
	l.buildLists()
	if len(l.problems) > 0 {
		return nil, l.problems
	}
	return l.config.Rules, nil
}

// FormatRule returns the rule as a table of a configuration file. It leaves out the origin.
func FormatRule(r policy.Rule) string {
	var b strings.Builder
	b.WriteString("[[" + ruleSection + "]]\n")
	for _, field := range []struct {
		key   string
		value any
		set   bool
	}{
		{"effect", string(r.Effect), true}, {"tier", string(r.Tier), r.Tier != ""},
		{"provider", r.Provider, r.Provider != ""}, {"kind", r.Kind, len(r.Kind) > 0}, {"path", r.Path, r.Path != ""},
		{"command", r.Command, r.Command != ""}, {"reason", r.Reason, r.Reason != ""},
	} {
		if field.set {
			fmt.Fprintf(&b, "%s = %s\n", field.key, format(field.value))
		}
	}
	return b.String()
}
