package config

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"

	"github.com/perlica/perlica/eventlog/message"
)

// Problem is one mistake: its place, its reason, and the nearest valid key or value.
type Problem struct {
	Source string `json:"source"` // a file, "environment PERLICA_X" or "flag"
	Line   int    `json:"line"`   // 1 for the first line; 0 if the source has no lines
	Column int    `json:"column"` // counted in bytes; 0 if only the line is known
	// Key is the key as a person wrote it. "" means that the problem concerns the whole source.
	Key           string `json:"key"`
	Reason        string `json:"reason"`
	message.Coded        // the code of Reason; empty if the reason is not translated
	// Nearest is the nearest valid key or value, or "".
	Nearest string `json:"nearest"`
	// Err is the cause, or nil.
	Err error `json:"-"`
}

// Error returns one printable line.
func (p *Problem) Error() string { return p.Tell().Text }

// Tell returns the problem's sentence.
func (p *Problem) Tell() *message.Text {
	place := printable(p.Source)
	for _, n := range []int{p.Line, p.Column} {
		if n > 0 {
			place += ":" + strconv.Itoa(n)
		}
	}
	if p.Key != "" {
		place += ": " + printable(p.Key)
	}
	t := inSource.With(place, &message.Text{Text: p.Reason, Coded: p.Coded})
	if p.Nearest != "" {
		t = didYouMean.With(t, p.Nearest)
	}
	return t
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Problems are all the mistakes of a configuration, in the order of its layers.
type Problems []*Problem

// Error returns one line for each problem.
func (ps Problems) Error() string { return ps.Tell().String() }

// Tell returns the sentences of the problems, one in each line. It returns nil if there are no problems.
func (ps Problems) Tell() (all *message.Text) {
	for i, p := range ps {
		if i == 0 {
			all = p.Tell()
		} else {
			all = nextLine.With(all, p)
		}
	}
	return all
}

// Unwrap returns the problems.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// fault is a mistake in a value, without the value's place.
type fault struct {
	reason  *message.Text
	nearest string
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

// printable returns s without harm for a terminal. It cuts a very long s. It quotes s if s has control characters,
// direction marks or invalid UTF-8.
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

// isSection reports whether the table has keys below a path.
func isSection(path []string) bool {
	for i := range table {
		if rest, ok := within(table[i].name, path); ok && rest != "" {
			return true
		}
	}
	return false
}

// below returns the names of the keys and sections one level below a path.
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

// within returns the rest of a row's name after a path. ok is false if the path is not the beginning of the name.
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
