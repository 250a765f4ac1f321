package card

import (
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/perlica/perlica/interaction"
)

// diff adds a change to a file as a unified diff.
func (l *layout) diff(d interaction.Diff, must bool) {
	l.line("diff", visible(d.Path, true), must, Plain)
	text := string(diff.Diff("old", []byte(d.Old), "new", []byte(d.New)))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[min(3, len(lines)):] // the command that would make it, and two names
	for i := 0; i < len(lines); {
		n := 1
		for blank(lines[i]) && i+n < len(lines) && lines[i+n] == lines[i] {
			n++
		}
		l.diffLine(lines[i], n, must)
		i += n
	}
}

// blank reports whether a line of a diff shows nothing but its sign.
func blank(line string) bool { return line == "" || strings.Trim(line[1:], " \t") == "" }

// diffLine adds a line of a diff that stands there n times.
func (l *layout) diffLine(line string, n int, must bool) {
	sign := ""
	if line != "" {
		sign, line = line[:1], line[1:]
	}
	tone := map[string]Tone{"+": Added, "-": Removed}[sign]
	cells := visible(line, false)
	if n > 1 {
		cells = blankLines(n)
	}
	l.line("", append(visible(sign, false), cells...), must, tone)
}
