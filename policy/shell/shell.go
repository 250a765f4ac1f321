// Package shell judges shell commands: what a script or the words of a program would
// destroy, overwrite, hand over or change, as far as their text tells. It promises that a
// command which destroys the root, the home, the working directory or a device is Refused,
// and that what cannot be followed is AlwaysAsked.
//
// Commands are parsed and followed, never matched as text. The package runs nothing and
// looks at no disk: what a program or a script does when it runs is beyond it.
package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// Tier says how far rules and modes may go with a command.
type Tier string

const (
	// Ordinary is a command about which nothing below was found.
	Ordinary Tier = "ordinary"
	// AlwaysAsked is a command that a person sees in every mode, unless a rule
	// names it.
	AlwaysAsked Tier = "always-asked"
	// Refused is a command that no rule, mode or standing approval lets through.
	Refused Tier = "refused"
)

// Above says whether a tier is graver than another; the empty one is ordinary.
func (t Tier) Above(other Tier) bool { return t.rank() > other.rank() }

func (t Tier) rank() int { return slices.Index([]Tier{AlwaysAsked, Refused}, t) }

// Verdict is which tier a shell command belongs to, and why.
type Verdict struct {
	Tier Tier
	Why  string // in words; empty for an ordinary command
	Word string // what a person types to let a refused command through once

	// Unknown is set where the effect depends on something the text of the command
	// does not tell, so that the same text may do something else next time.
	Unknown bool
}

// maxDepth and maxSteps bound the work that loops, functions and nested shells make.
const (
	maxDepth = 50
	maxSteps = 20000
)

// A walker goes through one command.
type walker struct {
	place   Place
	verdict Verdict
	calls   []Call

	text      string // the script being read, for quoting from it
	depth     int
	steps     int
	funcs     map[string][]function
	active    map[*syntax.Stmt]bool // bodies being walked
	files     map[string]origin     // what the command itself put into files
	written   map[string]flow       // what it wrote into files, as far as that is known
	touched   Changed               // the files that it wrote
	unseen    map[string]int        // how often it wrote into a file something that its text does not tell
	committed bool                  // something private may be in a commit
	remotes   []string              // the names of git's remotes that the command itself adds
	rows      map[string]*program   // the rows of programs that were read
	writes    bool                  // it changes or removes a file, as far as the text tells
	pipes     map[string]field      // what stands behind the names of <(…) and >(…)
	sinks     []*sink               // those of the statement being walked
	unnamed   origin                // what it put into files whose names are unknown

	declaring   int  // above zero, the body of a function is read that is not called yet
	refusedOnly int  // above zero, only what is refused counts
	packages    int  // above zero, a launcher runs a program of the project's packages
	suffixes    bool // the words are the end of a command that is read word by word
}

func newWalker(at Place) *walker {
	return &walker{
		place:   at.slashed(),
		verdict: Verdict{Tier: Ordinary},
		funcs:   map[string][]function{}, active: map[*syntax.Stmt]bool{}, files: map[string]origin{}, written: map[string]flow{},
		touched: Changed{}, unseen: map[string]int{},
		pipes: map[string]field{}, rows: map[string]*program{},
	}
}

func newState(dirPath string) *state {
	return &state{vars: map[string]variable{}, dirs: []dir{{path: dirPath}}}
}

// Judgement is what the text of a command tells about it.
type Judgement struct {
	Verdict Verdict
	Calls   []Call // every simple command met, wrappers' inner ones included
	Writes  bool   // it changes or removes a file

	// Changed are the files that it writes, as far as the text tells. What a compiler or a formatter makes of
	// other files is not among them.
	Changed Changed
}

// Judge reads a shell command. It expands what is constant, follows cd, wrappers, nested
// shells and functions, and takes what it cannot follow as AlwaysAsked.
func Judge(c Command, at Place) Judgement {
	w := newWalker(at)
	text, ok := c.script()
	if !ok {
		w.unknown("cannot be parsed: words that no shell can hold")
	}
	w.script(text, newState(slashPath(c.StartDir(at))), flow{})
	return Judgement{Verdict: w.verdict, Calls: w.calls, Writes: w.writes, Changed: w.touched}
}

// Unclear is the verdict on something whose effect cannot be known; why says so in words.
func Unclear(why string) Verdict {
	return Verdict{Tier: AlwaysAsked, Why: tidy(why), Unknown: true}
}

// add keeps the gravest finding, and among equals the first.
func (w *walker) add(tier Tier, why, word string) {
	if w.refusedOnly > 0 && tier != Refused {
		return
	}
	if tier.Above(w.verdict.Tier) {
		w.verdict.Tier, w.verdict.Why, w.verdict.Word = tier, tidy(why), word
	}
}

func (w *walker) ask(format string, args ...any) {
	w.add(AlwaysAsked, fmt.Sprintf(format, args...), "")
}

// unknown asks because the text does not tell what would happen.
func (w *walker) unknown(format string, args ...any) {
	if w.declaring > 0 {
		return
	}
	w.ask(format, args...)
	w.verdict.Unknown = w.verdict.Unknown || w.refusedOnly == 0
}

// tidy makes one short line that a terminal can show.
func tidy(s string) string {
	s = Printable(s)
	if runes := []rune(s); len(runes) > 240 {
		s = string(runes[:239]) + "…"
	}
	return s
}

// Printable puts a mark in place of every character of s that a terminal may obey, and a space
// for a line end.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// script reads a whole shell text. What stands before a syntax error is judged too,
// because a shell runs it before it finds the error.
func (w *walker) script(text string, st *state, in flow) flow {
	if w.depth++; w.depth > maxDepth || w.steps > maxSteps {
		w.unknown("nested too deeply to be judged")
		w.depth--
		return flow{}
	}
	w.steps += 1 + len(text)/64 // parsing is work, too
	outer, before, suffixes := w.text, st.clone(), w.suffixes
	w.suffixes = false
	list, read, err := parse(text)
	w.text = read
	input := st.input
	if in.piped {
		st.input = nil
	}
	out := w.stmts(list, st, in)
	if st.input == nil {
		st.input = input
	}
	if err != nil {
		w.unknown("cannot be parsed: %v", err)
		if again := reread(text); again != text {
			w.script(again, before, in)
		}
	}
	w.text, w.suffixes = outer, suffixes
	w.depth--
	return out
}

// source is the node as it was written.
func (w *walker) source(n syntax.Node) string { return w.slice(n.Pos().Offset(), n.End().Offset()) }

// slice is the text from one offset to another.
func (w *walker) slice(from, to uint) string {
	if to < from || to > uint(len(w.text)) {
		return ""
	}
	return w.text[from:to]
}

// shown is a simple command as it was written, as far as a verdict quotes it.
func shown(fs []field) string {
	var b strings.Builder
	for i, f := range fs {
		if b.Len() > 1000 {
			break
		}
		if i > 0 && f.src == fs[i-1].src && strings.ContainsAny(f.src, "{$") {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(cmp.Or(f.src, f.text))
	}
	return b.String()
}
