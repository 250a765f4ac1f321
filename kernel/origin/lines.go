package origin

import (
	"slices"
	"strings"
	"unicode"
)

// unmatched and unsure are results of match. A line is unsure if a has an equal line, but it may not be the same line.
const (
	unmatched = -1
	unsure    = -2
)

// match returns for each line of b the index of the same line in a, or unmatched, or unsure. The texts a and b are one
// place of a file before and after a change. Equal lines at the beginning and at the end of both are the same lines. So
// are lines with at least minAnchor letters that occur once in a and once in b, in the same order. If an insertion fits
// at several places, match chooses the last one, as git does.
func match(a, b []string) []int {
	m := make([]int, len(b))
	for i := range m {
		m[i] = unmatched
	}
	matchGap(m, a, b, 0, 0)
	return m
}

// matchGap matches the lines between two matched lines. Their text begins at line i in a, and at line j in b.
func matchGap(m []int, a, b []string, i, j int) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		m[j] = i
		a, b, i, j = a[1:], b[1:], i+1, j+1
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
		m[j+len(b)] = i + len(a)
	}
	if len(a) == 0 || len(b) == 0 {
		return
	}
	anchors := anchorsOf(a, b)
	if len(anchors) == 0 {
		for k, line := range b {
			if slices.Contains(a, line) {
				m[j+k] = unsure
			}
		}
		return
	}
	fromA, fromB := 0, 0
	for _, at := range append(anchors, pair{len(a), len(b)}) {
		matchGap(m, a[fromA:at.a], b[fromB:at.b], i+fromA, j+fromB)
		if at.b < len(b) {
			m[j+at.b] = i + at.a
		}
		fromA, fromB = at.a+1, at.b+1
	}
}

// pair has the indexes of a line in a and of an equal line in b.
type pair struct{ a, b int }

// minAnchor is the minimum number of letters and digits of a line that identifies a place.
const minAnchor = 16

// anchorsOf returns the pairs of equal lines that occur once in a and once in b and have minAnchor letters and digits.
// If their orders differ, it returns the longest list of pairs in the same order.
func anchorsOf(a, b []string) []pair {
	type count struct{ a, b, atA, atB int }
	counts := make(map[string]*count, len(b))
	for j, line := range b {
		c := counts[line]
		if c == nil {
			c = &count{}
			counts[line] = c
		}
		c.b++
		c.atB = j
	}
	for i, line := range a {
		if c := counts[line]; c != nil {
			c.a++
			c.atA = i
		}
	}
	var list []pair
	for j, line := range b {
		if c := counts[line]; c.a == 1 && c.b == 1 && c.atB == j && letters(line) >= minAnchor {
			list = append(list, pair{c.atA, j})
		}
	}
	return increasing(list)
}

// increasing returns the longest part of the list in which both numbers grow. The list is ordered by b.
func increasing(list []pair) []pair {
	var ends []int // ends[n] is the index of the smallest pair that can end a part of n+1 pairs
	before := make([]int, len(list))
	for k, p := range list {
		n, _ := slices.BinarySearchFunc(ends, p.a, func(e, a int) int { return list[e].a - a })
		before[k] = -1
		if n > 0 {
			before[k] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, k)
		} else {
			ends[n] = k
		}
	}
	if len(ends) == 0 {
		return nil
	}
	out := make([]pair, len(ends))
	for k, n := ends[len(ends)-1], len(ends)-1; n >= 0; k, n = before[k], n-1 {
		out[n] = list[k]
	}
	return out
}

// letters returns the number of letters and digits in a line.
func letters(line string) (n int) {
	for _, r := range line {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// splitLines returns the lines of a text. The last line is empty if the text ends with a line feed.
func splitLines(text string) []string { return strings.Split(text, "\n") }

// countLines returns the number of lines that a change adds and the number of lines that it removes.
func countLines(e edit) (added, removed int) {
	a, b := textLines(e.old), textLines(e.new)
	same := 0
	for _, i := range match(a, b) {
		if i != unmatched {
			same++
		}
	}
	return len(b) - same, max(len(a)-same, 0)
}

// maxContext is the number of unchanged lines before and after the changed lines in a diff.
const maxContext = 3

// diffText returns a change as lines that begin with a blank, a minus or a plus.
func diffText(e edit) string {
	a, b := textLines(e.old), textLines(e.new)
	var out, added, same []string
	flush := func(end bool) {
		head, tail := min(maxContext, len(same)), min(maxContext, len(same))
		if len(out) == 0 {
			head = 0
		}
		if end {
			tail = 0
		}
		if cut := len(same) - head - tail; cut > 0 {
			out = append(out, same[:head]...)
			if !end && head > 0 {
				out = append(out, " …")
			}
			same = same[head+cut:]
		}
		out, same = append(out, same...), nil
	}
	i := 0
	remove := func(until int) {
		if i < until || len(added) > 0 {
			flush(false)
		}
		for ; i < until; i++ {
			out = append(out, "-"+a[i])
		}
		out, added = append(out, added...), nil
	}
	for j, at := range match(a, b) {
		if at < 0 {
			added = append(added, "+"+b[j])
			continue
		}
		remove(at)
		same = append(same, " "+b[j])
		i = at + 1
	}
	remove(len(a))
	flush(true)
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "\n") + "\n"
}

// textLines returns the lines of a text without the empty line after its last line feed.
func textLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
