package policy

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perlica/perlica/policy/shell"
)

// Shows reports whether approved requests show the content of a reported call. Some agents ask with a part of a file
// and report the same change with lines around it, or the reverse. An approval without a content covers any
// content. A patch in the input of the reported call must equal an approved patch. If no patch was approved, the
// approved diffs must show each of its hunks. A content that takes too long to compare is not shown.
func Shows(approved []Reading, made Reading, at shell.Place) bool {
	c := comparison{reader: reader{place: at}, left: maxWork, ids: map[string]int{}}
	var patches []string
	for _, r := range approved {
		shown := slices.Clone(r.Diffs)
		for _, b := range r.Bodies {
			if b.patch {
				patches = append(patches, b.New)
				shown = append(shown, b.hunks()...)
			} else {
				shown = append(shown, b)
			}
		}
		for _, d := range shown {
			a := c.split(d)
			if a != nil {
				a.most = r.Request.places()
			}
			c.approved = append(c.approved, a)
		}
	}
	if len(c.approved)+len(patches) == 0 {
		return true
	}
	differs := func(d Diff) bool { return d.Old != d.New && !c.show(d) }
	return !slices.ContainsFunc(made.Diffs, differs) && !slices.ContainsFunc(made.Bodies, func(b Diff) bool {
		if b.patch {
			if len(patches) > 0 {
				return !slices.Contains(patches, b.New)
			}
			if len(shell.PatchFiles(b.New).Paths) > 1 {
				b.Path = "" // a hunk may belong to any of the files
			}
			return slices.ContainsFunc(b.hunks(), differs)
		}
		return differs(b)
	})
}

// places returns the maximum number of places at which an edit tool replaces the old text of the request.
func (r Request) places() int {
	most := 1
	for _, f := range r.Fields {
		switch name := plainName(f.Name[strings.LastIndexByte(f.Name, '.')+1:]); name {
		case "replaceall", "allowmultiple":
			if f.Value == "true" {
				return math.MaxInt
			}
		case "expectedreplacements":
			if n, err := strconv.Atoi(f.Value); err == nil {
				most = max(most, n)
			}
		}
	}
	return most
}

// maxWork bounds the number of bytes that one comparison of contents reads and makes.
const maxWork = 64 << 20

// comparison compares the contents of a reported call with the approved ones.
type comparison struct {
	reader
	approved []*splitDiff
	left     int64          // the number of bytes that the comparison may still read and make
	ids      map[string]int // the numbers of the texts of lines
}

// splitDiff is a diff with its lines as numbers. The lists before and after have the equal lines at both ends, and the
// lists old and new have the other lines. The tables are empty until the comparison needs them.
type splitDiff struct {
	Diff
	before, old, new, after []int
	heads, tails            matches
	most                    int // maximum number of places at which an approved diff replaces its old text
}

// spend reports whether the comparison may read or make n more bytes.
func (c *comparison) spend(n int64) bool {
	c.left -= n
	return c.left >= 0
}

// split returns a diff with its lines, with line feeds as the only ends of lines, and with an absolute path.
func (c *comparison) split(d Diff) *splitDiff {
	if !c.spend(int64(len(d.Old) + len(d.New))) {
		return nil
	}
	if d.Path != "" {
		d.Path = c.absolute(d.Path)
	}
	d.Old, d.New = strings.ReplaceAll(d.Old, "\r\n", "\n"), strings.ReplaceAll(d.New, "\r\n", "\n")
	a, b := c.lines(d.Old), c.lines(d.New)
	if c.left < 0 {
		return nil
	}
	first, last := 0, 0
	for first < min(len(a), len(b)) && a[first] == b[first] {
		first++
	}
	for last < min(len(a), len(b))-first && a[len(a)-1-last] == b[len(b)-1-last] {
		last++
	}
	return &splitDiff{Diff: d, before: a[:first], old: a[first : len(a)-last], new: b[first : len(b)-last],
		after: a[len(a)-last:]}
}

// lines returns the numbers of the lines of a text.
func (c *comparison) lines(text string) (list []int) {
	const bytes = 4 * 8 // of a number in a list that grows
	for line := range strings.Lines(text) {
		if !c.spend(bytes) {
			return nil
		}
		line = strings.TrimSuffix(line, "\n")
		id, ok := c.ids[line]
		if !ok {
			id = len(c.ids)
			c.ids[line] = id
		}
		list = append(list, id)
	}
	return list
}

// show reports whether the approved diffs of a file show a reported diff: one of them contains it, or all of them
// together make its new text from its old text.
func (c *comparison) show(d Diff) bool {
	made := c.split(d)
	if made == nil || len(made.old)+len(made.new) == 0 { // Only the ends of lines change.
		return made != nil
	}
	end := func(s string) string { return strings.TrimSuffix(s, "\n") }
	one, all := end(made.Old)+"\n", end(made.Old)+"\n"
	for _, a := range c.approved {
		if !c.spend(1) {
			return false
		}
		if a.Path != "" && made.Path != "" && a.Path != made.Path {
			continue
		}
		if end(a.Old) == end(made.Old) && end(a.New) == end(made.New) || c.hasPart(a, made) {
			return true
		}
		if a.Old != "" {
			one, all = c.replace(one, a.Diff, 1), c.replace(all, a.Diff, a.most)
		}
	}
	return c.left >= 0 && made.Old != "" && (end(one) == end(made.New) || end(all) == end(made.New))
}

// replace applies an approved diff to the first n places of a text that have its old text. It makes no text that is too
// long for the comparison.
func (c *comparison) replace(text string, a Diff, n int) string {
	n = min(n, strings.Count(text, a.Old))
	if !c.spend(int64(len(text)) + int64(n)*int64(len(a.New))) {
		return ""
	}
	return strings.Replace(text, a.Old, a.New, n)
}

// hasPart reports whether a reported diff has changed blocks of an approved diff, each of them whole and at its place,
// and no other change. An empty old text means that the new text is a whole file.
func (c *comparison) hasPart(a, made *splitDiff) bool {
	switch {
	case c.left < 0:
		return false
	case a.Old == "":
		return made.New != "" && c.hasPlace(a.new, made)
	case made.Old == "":
		return false
	case slices.Equal(a.old, made.old) && slices.Equal(a.new, made.new) && a.meets(made, 0, len(a.old)):
		return true
	}
	if !c.measure(a) {
		return false
	}
	added := c.places(a.new, made.new)
	for _, i := range c.places(a.old, made.old) {
		for _, j := range added {
			if !c.spend(1) {
				return false
			}
			u, v := i+len(made.old), j+len(made.new)
			// A block ends where the approved texts have an equal line.
			begins := i+j == 0 || i > 0 && j > 0 && a.old[i-1] == a.new[j-1]
			ends := u == len(a.old) && v == len(a.new) || u < len(a.old) && v < len(a.new) && a.old[u] == a.new[v]
			if begins && ends && a.meets(made, i, u) && c.measure(made) &&
				a.heads.at(i, j)+made.heads.last()+a.tails.at(len(a.old)-u, len(a.new)-v) == a.heads.last() {
				return true
			}
		}
	}
	return false
}

// hasPlace reports whether the new lines of a reported diff stand in a file. A diff without an equal line before or
// after its change must begin or end with the file.
func (c *comparison) hasPlace(file []int, made *splitDiff) bool {
	part := slices.Concat(made.before, made.new, made.after)
	return slices.ContainsFunc(c.places(file, part), func(i int) bool {
		return (i == 0 || len(made.before) > 0) && (i+len(part) == len(file) || len(made.after) > 0)
	})
}

// meets reports whether the lines next to a reported change are those next to the old lines i to u of the diff.
func (a *splitDiff) meets(made *splitDiff, i, u int) bool {
	last := func(list []int) []int { return list[max(0, len(list)-1):] }
	first := func(list []int) []int { return list[:min(1, len(list))] }
	same := func(a, b []int) bool { return len(a) == 0 || len(b) == 0 || a[0] == b[0] }
	before, after := last(a.old[:i]), first(a.old[u:])
	if i == 0 {
		before = last(a.before)
	}
	if u == len(a.old) {
		after = first(a.after)
	}
	return same(before, last(made.before)) && same(after, first(made.after))
}

// places returns the indexes of the list at which a part stands.
func (c *comparison) places(list, part []int) (found []int) {
	for i := 0; i+len(part) <= len(list); i++ {
		n := 0
		for n < len(part) && list[i+n] == part[n] {
			n++
		}
		if !c.spend(int64(n) + 1) {
			return nil
		}
		if n == len(part) {
			found = append(found, i)
		}
	}
	return found
}

// matches has the lengths of the longest common subsequences of the beginnings of two lists.
type matches struct {
	width int
	cells []int32
}

func (t matches) at(i, j int) int32 { return t.cells[i*t.width+j] }

func (t matches) last() int32 { return t.cells[len(t.cells)-1] }

// measure fills the tables of a diff, and reports whether the comparison may do this.
func (c *comparison) measure(d *splitDiff) bool {
	if d.heads.cells != nil {
		return true
	}
	const bytes = 2 * 4 // of the cells in both tables
	if !c.spend(bytes * int64(len(d.old)+1) * int64(len(d.new)+1)) {
		return false
	}
	a, b := slices.Clone(d.old), slices.Clone(d.new)
	d.heads = matchesOf(a, b)
	slices.Reverse(a)
	slices.Reverse(b)
	d.tails = matchesOf(a, b)
	return true
}

func matchesOf(a, b []int) matches {
	t := matches{len(b) + 1, make([]int32, (len(a)+1)*(len(b)+1))}
	for i := range a {
		for j := range b {
			n := max(t.at(i, j+1), t.at(i+1, j))
			if a[i] == b[j] {
				n = t.at(i, j) + 1
			}
			t.cells[(i+1)*t.width+j+1] = n
		}
	}
	return t
}

// hunks returns the changes of a patch.
func (d Diff) hunks() (list []Diff) {
	var from, to strings.Builder
	head := ""
	finish := func() {
		hunk := Diff{Path: d.Path, Old: from.String(), New: to.String()}
		isNew := strings.HasPrefix(head, "*** Add File: ") || strings.HasPrefix(head, "@@ -0,0 ")
		if hunk.Old == "" && !isNew { // The hunk is not a whole file.
			hunk.Old, hunk.New = head, head+hunk.New
		}
		if hunk.Old != hunk.New {
			list = append(list, hunk)
		}
		from.Reset()
		to.Reset()
	}
	lines := slices.Collect(strings.Lines(d.New))
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if i+2 < len(lines) && strings.HasPrefix(line, "--- ") && strings.HasPrefix(lines[i+1], "+++ ") &&
			strings.HasPrefix(lines[i+2], "@@ ") { // the names of a file
			finish()
			i++
			continue
		}
		switch line[0] {
		case '\\': // "\ No newline at end of file"
		case '-':
			from.WriteString(line[1:])
		case '+':
			to.WriteString(line[1:])
		case ' ', '\n', '\r':
			line = strings.TrimPrefix(line, " ")
			from.WriteString(line)
			to.WriteString(line)
		default:
			finish()
			head = line
		}
	}
	finish()
	return list
}
