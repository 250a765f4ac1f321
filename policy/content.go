package policy

import (
	"slices"
	"strings"

	"github.com/perlica/perlica/policy/shell"
)

// Shows reports whether approved diffs show the content of all reported diffs. Some agents ask with a part of a file
// and report the same change with lines around it, or the reverse. An approval without a diff covers any content.
// Reported patches are not compared.
func Shows(approved, made []Diff, at shell.Place) bool {
	if len(approved) == 0 {
		return true
	}
	r := reader{place: at}
	for _, d := range made {
		if d.Old == d.New || d.isPatch() {
			continue
		}
		var shown []Diff
		for _, a := range approved {
			if a.Path == "" || d.Path == "" || r.absolute(a.Path) == r.absolute(d.Path) {
				shown = append(shown, a.plain())
			}
		}
		if !show(shown, d.plain()) {
			return false
		}
	}
	return true
}

// show reports whether the approved diffs of a file show the content of a reported diff.
func show(approved []Diff, made Diff) bool {
	one, all := made.Old+"\n", made.Old+"\n"
	for _, a := range approved {
		if a.hasPart(made) {
			return true
		}
		if a.Old != "" {
			one, all = strings.Replace(one, a.Old, a.New, 1), strings.ReplaceAll(all, a.Old, a.New)
		}
	}
	return slices.Contains([]string{strings.TrimSuffix(one, "\n"), strings.TrimSuffix(all, "\n")}, made.New)
}

// plain returns the diff with "\n" in place of "\r\n", and without a line feed at the end. If the new text is a patch,
// the result has the texts before and after the patch.
func (d Diff) plain() Diff {
	text := func(s string) string { return strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n") }
	before, after := text(d.Old), text(d.New)
	if d.isPatch() {
		var from, to strings.Builder
		for line := range strings.Lines(after) {
			rest := line[min(1, len(line)):]
			if !strings.HasPrefix(line, "+") {
				from.WriteString(rest)
			}
			if !strings.HasPrefix(line, "-") {
				to.WriteString(rest)
			}
		}
		before, after = from.String(), to.String()
	}
	return Diff{Path: d.Path, Old: before, New: after}
}

// isPatch reports whether the new text is a patch.
func (d Diff) isPatch() bool {
	return d.Old == "" && (isPatch().MatchString(d.New) || hunksOnly().MatchString(d.New))
}

// hasPart reports whether a reported diff is a part of the diff d. It ignores unchanged lines around the reported
// change. If the old text of d is empty, d is the whole content of a file.
func (d Diff) hasPart(made Diff) bool {
	if d.Old == "" {
		return made.New == d.New || made.New != "" && strings.Contains(d.New, made.New)
	}
	core := made.core()
	return strings.Contains(d.Old, made.Old) && strings.Contains(d.New, made.New) ||
		strings.Contains(d.Old, core.Old) && strings.Contains(d.New, core.New)
}

// core returns the diff without the unchanged lines at its beginning and its end. It also trims white space there.
func (d Diff) core() Diff {
	a, b := strings.Split(d.Old, "\n"), strings.Split(d.New, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return Diff{Old: strings.TrimSpace(strings.Join(a, "\n")), New: strings.TrimSpace(strings.Join(b, "\n"))}
}
