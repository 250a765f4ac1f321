package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"
)

// Problem is one mistake: where it is, what is wrong, and the nearest thing that
// would have been right.
type Problem struct {
	Source  string `json:"source"` // a file, "environment PERLICA_X" or "flag"
	Line    int    `json:"line"`   // 1 is the first; 0 where there are no lines
	Column  int    `json:"column"` // in bytes; 0 when only the line is known
	Key     string `json:"key"`    // the key as it was written; "" when it is about the whole source
	Reason  string `json:"reason"`
	Nearest string `json:"nearest"` // the nearest valid key or value, or ""
	Err     error  `json:"-"`       // the cause, where there is one
}

// Error is one printable line.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(printable(p.Source))
	for _, n := range []int{p.Line, p.Column} {
		if n > 0 {
			b.WriteString(":" + strconv.Itoa(n))
		}
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(printable(p.Key) + ": ")
	}
	b.WriteString(p.Reason)
	if p.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %q?", p.Nearest)
	}
	return b.String()
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Problems are all the mistakes of a configuration, in the order of its layers.
type Problems []*Problem

// Error has one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// fault is what is wrong with a value, before it is known where it stands.
type fault struct {
	reason, nearest string
}

// nearest returns the candidate that was probably meant, or "".
func nearest(word string, candidates []string) string {
	if len(word) > 100 {
		return ""
	}
	slips := max(2, min(len(word), 24)/3)
	if len(word) < 4 {
		slips = 1
	}
	best, least := "", slips+1
	for _, c := range candidates {
		if d := levenshtein.Distance(strings.ToLower(word), strings.ToLower(c), nil); d < least && c != anyID {
			best, least = c, d
		}
	}
	return best
}

// printable returns s unless it holds something that a terminal would obey or hide
// (controls, direction marks, invalid UTF-8); then it returns s quoted. What is very
// long is cut.
func printable(s string) string {
	const limit = 400
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return strconv.Quote(s)
		}
	}
	return s
}

// isSection says whether keys lie below a path.
func isSection(path []string) bool {
	for i := range table {
		if rest, ok := within(table[i].name, path); ok && rest != "" {
			return true
		}
	}
	return false
}

// below returns what the keys and sections next below a path are called.
func below(path []string) []string {
	var names []string
	for i := range table {
		rest, _ := within(table[i].name, path)
		next, _, _ := strings.Cut(rest, ".")
		next = strings.TrimSuffix(next, "[]")
		if next != "" && (len(names) == 0 || names[len(names)-1] != next) {
			names = append(names, next)
		}
	}
	return names
}

// within cuts a path off the beginning of a row's name.
func within(name string, path []string) (rest string, ok bool) {
	for _, part := range path {
		var next string
		next, name, _ = strings.Cut(name, ".")
		next = strings.TrimSuffix(next, "[]")
		if next != part && (next != anyID || !validID(part)) {
			return "", false
		}
	}
	return name, true
}
