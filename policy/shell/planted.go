package shell

import (
	_ "embed"
	"path"
	"strings"
	"sync"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perlica/perlica/eventlog/message"
)

// targetRows is the table of files that a program runs later or that grant rights, such as .bashrc. A change of
// such a file needs a person.
//
//go:embed targets.txt
var targetRows string

// plantedRow is one entry of the table targets.txt: a path or the end of a path, split into names.
type plantedRow struct {
	names    []string
	folder   bool // the row also matches everything below the path
	absolute bool
	why      *message.Text // the reason to ask; nil means that the path is an exception
}

var plantedTable = sync.OnceValue(func() (list []plantedRow) {
	var why *message.Text
	for line := range strings.Lines(targetRows) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "== "); ok {
			why = plantedReasons[title]
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		for text := range strings.FieldsSeq(line) {
			row := plantedRow{why: why}
			if rest, ok := strings.CutPrefix(text, "!"); ok {
				text, row.why = rest, nil
			}
			text, row.folder = strings.CutSuffix(text, "/")
			text, row.absolute = strings.CutPrefix(text, "/")
			row.names = strings.Split(strings.ToLower(text), "/")
			list = append(list, row)
		}
	}
	return list
})

// planted returns the reason why a person must decide about a change of the target, such as a git hook. It returns nil
// if plantedTable does not list the target. The parameter "target" is a clean absolute path or pattern. For a target in
// the working directory, planted compares only the part of the path below this directory.
func (p Place) planted(target string, glob bool) *message.Text {
	below, inside := target, p.Dir != "/" && within(p.Dir, target)
	if inside {
		below = target[len(p.Dir):]
	}
	names := strings.Split(strings.TrimPrefix(below, "/"), "/")
	for i, name := range names {
		names[i] = foldName(name)
	}
	var why *message.Text
	for _, row := range plantedTable() {
		if why != nil && row.why != nil || row.absolute && inside || !row.fits(names, glob) {
			continue
		}
		if row.why == nil {
			return nil
		}
		why = row.why
	}
	return why
}

// fits reports whether the path with these names matches the row, or lies below it if the row is a folder. If the
// row begins with a hidden folder, such as .git in .git/hooks, a path to this folder matches, too. A command may
// create the folder together with its files.
func (r plantedRow) fits(names []string, glob bool) bool {
	for i := range names {
		if r.absolute && i > 0 {
			break
		}
		n := 0
		for n < len(r.names) && i+n < len(names) && sameName(names[i+n], r.names[n], glob) {
			n++
		}
		whole := n == len(r.names)
		// A project's folder .config is an exception, because it has settings of many programs.
		brings := n > 0 && r.names[0][0] == '.' && r.names[0] != ".config" && r.why != nil
		if whole && (r.folder || i+n == len(names)) || brings && i+n == len(names) {
			return true
		}
	}
	return false
}

// foldName returns a canonical form of a file's name. Names with the same form may be the same file: Windows and macOS
// ignore case, macOS ignores invisible characters, and Windows ignores dots and spaces at the end.
func foldName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector) || r == '\u034f' {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, name)
	name, _, _ = strings.Cut(name, ":") // a data stream of the Windows file system NTFS
	return strings.TrimRight(name, ". ")
}

// shortName matches short names of Windows, such as GIT~1 for .git.
var shortName = lazily(`^([^.~]{1,6})~[0-9]+(\.[^.]{0,3})?$`)

// sameName compares a result of foldName with a name of the table. If glob is true, the name may be a pattern. A
// wildcard matches a hidden file only if the pattern begins with a dot, as in a shell.
func sameName(name, row string, glob bool) bool {
	if name == row {
		return true
	}
	if m := shortName().FindStringSubmatch(name); m != nil {
		stem := strings.TrimLeft(strings.TrimSuffix(row, path.Ext(strings.TrimLeft(row, "."))), ".")
		stem = strings.ReplaceAll(stem, ".", "")
		return m[1] == stem[:min(6, len(stem))]
	}
	if strings.Contains(row, "*") {
		ok, err := path.Match(row, name)
		return ok && err == nil
	}
	if glob && name != "" && name[0] == row[0] && row[0] == '.' && HasMeta(name) {
		ok, err := doublestar.Match(name, row)
		return ok && err == nil
	}
	return false
}
