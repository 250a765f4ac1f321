package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// ErrExists means that the project already has a configuration file.
var ErrExists = errors.New("config: the project file exists")

// Init creates the workspace and a project file in which every key is commented out. It returns the path of the file.
// If the file exists, Init returns ErrExists and does not change it.
func Init(ws Workspace) (path string, err error) {
	if _, err := ws.Ensure("default"); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(ws.Dir())
	if err != nil {
		return "", fmt.Errorf("config: init: %w", err)
	}
	defer root.Close()
	f, err := root.OpenFile("config.toml", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return ws.ConfigFile(), fmt.Errorf("%w: %s", ErrExists, printable(ws.ConfigFile()))
	}
	if err != nil {
		return "", fmt.Errorf("config: init: %w", err)
	}
	_, err = f.WriteString(defaultFile())
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("config: init: %w", err)
	}
	return ws.ConfigFile(), ws.showInGit()
}

// defaultFile returns the text that Init writes: every key, commented out, with its default.
func defaultFile() string {
	var b strings.Builder
	b.WriteString("# Perlica's configuration of this project. Every key is a comment and shows its\n" +
		"# default or an example; `perlica config show` says what counts and why.\n" +
		"# This file comes with the repository: what loosens counts on another machine\n" +
		"# only after `perlica config trust`. See docs/configuration.md.\n\n")
	section := ""
	for i := range table {
		r := &table[i]
		if r.reserved {
			continue
		}
		if header, _ := r.place(); header != section {
			section = header
			b.WriteString("\n# " + section + "\n")
		}
		_, name := r.place()
		b.WriteString(wrap(r.help, "#   "))
		fmt.Fprintf(&b, "# %s = %s\n", name, r.literal())
	}
	return b.String()
}

// exampleID replaces <id> in examples, unless a row has an own example id.
const exampleID = "claude"

// place returns the header of the table that contains the row's key, and the key's name in that table. The header of a
// top-level key is "".
func (r *row) place() (header, key string) {
	if list, name, ok := strings.Cut(r.name, "[]."); ok {
		return "[[" + list + "]]", name
	}
	name := strings.Replace(r.name, anyID, cmp.Or(r.exampleID, exampleID), 1)
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return "", name
	}
	return "[" + name[:dot] + "]", name[dot+1:]
}

// literal returns the default as TOML. If the default is empty or absent, literal returns the example.
func (r *row) literal() string {
	if r.def != nil && r.def != "" {
		return format(r.def)
	}
	return r.example
}

// wrap breaks a text into lines of at most 80 bytes. Each line begins with lead.
func wrap(s, lead string) string {
	var b strings.Builder
	line := lead
	for _, word := range strings.Fields(s) {
		if len(line)+len(word) > 80 && line != lead {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = lead
		}
		line += word + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}
