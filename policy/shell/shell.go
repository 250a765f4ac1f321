// Package shell judges shell commands by the losses and changes that their text shows. A command that destroys the
// root, the home, the working directory or a device is Refused. A command that cannot be followed is AlwaysAsked.
//
// Commands are parsed and followed, never matched as text. The package runs nothing and reads no disk, so it does not
// know the effects of other programs and scripts.
//
// A walk method follows the syntax, a judge method adds findings to the verdict, and an expand method expands words.
package shell

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perlica/perlica/eventlog/message"
)

// Tier limits the power of rules and modes over a command.
type Tier string

const (
	// Ordinary is a command without any finding.
	Ordinary Tier = "ordinary"
	// AlwaysAsked is a command that a person sees in every mode, unless a rule names it.
	AlwaysAsked Tier = "always-asked"
	// Refused is a command that no rule, mode or standing approval allows.
	Refused Tier = "refused"
)

// Above reports whether a tier is graver than another; the empty tier is ordinary.
func (t Tier) Above(other Tier) bool { return t.rank() > other.rank() }

func (t Tier) rank() int { return slices.Index([]Tier{AlwaysAsked, Refused}, t) }

// Verdict is the tier of a shell command, with the reason.
type Verdict struct {
	Tier Tier
	Why  string // the reason; empty for an ordinary command
	message.Coded
	Word string // the word that a person types to let a refused command through once

	// Unknown means that the effect depends on values that the text does not contain. The same text may then have
	// another effect next time.
	Unknown bool

	// Stopped is the reason why the sandbox will stop the action, or nil. The tier is then at least AlwaysAsked.
	Stopped *message.Text
}

// maxDepth and maxSteps bound the work for loops, functions and nested shells.
const (
	maxDepth = 50
	maxSteps = 20000
)

// walker walks through one command and collects its verdict.
type walker struct {
	place   Place
	verdict Verdict
	calls   []Call

	text      string // the script that is being read, for quotations
	depth     int
	steps     int
	funcs     map[string][]function
	active    map[*syntax.Stmt]bool // bodies that are being walked
	files     map[string]origin     // origins of the files that the command wrote
	written   map[string]flow       // texts that the command wrote into files, if known
	touched   Changed               // the files that it wrote
	unseen    map[string]int        // number of unknown texts that it wrote into a file
	committed bool                  // a commit may contain private data
	remotes   []string              // names of the git remotes that the command adds
	rows      map[string]*program   // the rows of programs that were read
	writes    bool                  // the command changes or removes a file
	pipes     map[string]field      // the process substitutions, by their names
	sinks     []*sink               // the sinks of the current statement
	unnamed   origin                // origins of the files with unknown names
	stopped   *message.Text         // the reason why the sandbox will stop the command, or nil

	declaring   int  // above zero while the body of a function is read before its call
	refusedOnly int  // above zero while only refused commands count
	packages    int  // above zero while a launcher runs a program of the project's packages
	suffixes    bool // the words are a suffix of an unknown program's words
}

func newWalker(at Place) *walker {
	return &walker{
		place:   at.slashed(),
		verdict: Verdict{Tier: Ordinary},
		funcs:   map[string][]function{}, active: map[*syntax.Stmt]bool{},
		files: map[string]origin{}, written: map[string]flow{},
		touched: Changed{}, unseen: map[string]int{},
		pipes: map[string]field{}, rows: map[string]*program{},
	}
}

func newState(dirPath string) *state {
	return &state{vars: map[string]variable{}, dirs: []dir{{path: dirPath}}}
}

// Judgement is the result of reading a command.
type Judgement struct {
	Verdict Verdict
	Calls   []Call // every simple command, including those inside wrappers
	Writes  bool   // it changes or removes a file

	// Changed lists the files that the text shows to be written. Files that a compiler or a formatter makes from
	// other files are missing.
	Changed Changed
}

// Judge reads a shell command. It expands constants and follows cd, wrappers, nested shells and functions. A command
// that it cannot follow is AlwaysAsked.
func Judge(c Command, at Place) Judgement {
	w := newWalker(at)
	text, ok := c.script()
	if !ok {
		w.askUnknown(whyNotShell)
	}
	w.walkScript(text, newState(slashPath(c.StartDir(at))), flow{})
	if w.stopped != nil {
		if w.verdict.Stopped = tidied(w.stopped); w.verdict.Tier == Ordinary {
			w.verdict.Tier = AlwaysAsked
		}
	}
	return Judgement{Verdict: w.verdict, Calls: w.calls, Writes: w.writes, Changed: w.touched}
}

// Unclear returns the verdict for an effect that cannot be known, with its reason.
func Unclear(why *message.Text) Verdict {
	v := because(AlwaysAsked, why)
	v.Unknown = true
	return v
}

// Asked returns the verdict for an effect that a person decides about, with its reason.
func Asked(why *message.Text) Verdict { return because(AlwaysAsked, why) }

// Reason returns the reason as a sentence.
func (v Verdict) Reason() *message.Text { return &message.Text{Text: v.Why, Coded: v.Coded} }

// because returns a verdict with a reason that a terminal can show.
func because(tier Tier, why *message.Text) Verdict {
	why = tidied(why)
	return Verdict{Tier: tier, Why: why.Text, Coded: why.Coded}
}

// tidied is tidy for a sentence and its insertions.
func tidied(t *message.Text) *message.Text {
	clean := &message.Text{Text: tidy(t.Text), Coded: message.Coded{Code: t.Code}}
	for _, a := range t.Args {
		switch v := a.(type) {
		case *message.Text:
			a = tidied(v)
		case error:
			a = tidy(v.Error())
		case string:
			a = tidy(v)
		}
		clean.Args = append(clean.Args, a)
	}
	return clean
}

// addFinding keeps the gravest finding. Of equal findings it keeps the first.
func (w *walker) addFinding(tier Tier, why *message.Text, word string) {
	if w.refusedOnly > 0 && tier != Refused {
		return
	}
	if tier.Above(w.verdict.Tier) {
		unknown := w.verdict.Unknown
		w.verdict = because(tier, why)
		w.verdict.Word, w.verdict.Unknown = word, unknown
	}
}

func (w *walker) askBecause(why *message.Text, args ...any) {
	if len(args) > 0 {
		why = why.With(args...)
	}
	w.addFinding(AlwaysAsked, why, "")
}

// askUnknown asks because the text does not determine the effect.
func (w *walker) askUnknown(why *message.Text, args ...any) {
	if w.declaring > 0 {
		return
	}
	w.askBecause(why, args...)
	w.verdict.Unknown = w.verdict.Unknown || w.refusedOnly == 0
}

// tidy returns one short line that a terminal can show.
func tidy(s string) string {
	s = Printable(s)
	if runes := []rune(s); len(runes) > 240 {
		s = string(runes[:239]) + "…"
	}
	return s
}

// Printable replaces every character of s that a terminal may obey by a mark, and each line end by a space.
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

// walkScript reads a whole shell text. It also judges the statements before a syntax error, because a shell runs them
// before it finds the error.
func (w *walker) walkScript(text string, st *state, in flow) flow {
	if w.depth++; w.depth > maxDepth || w.steps > maxSteps {
		w.askUnknown(whyNested)
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
	out := w.walkStmts(list, st, in)
	if st.input == nil {
		st.input = input
	}
	if err != nil {
		w.askUnknown(whyUnparsed, err)
		if again := reread(text); again != text {
			w.walkScript(again, before, in)
		}
	}
	w.text, w.suffixes = outer, suffixes
	w.depth--
	return out
}

// source returns the written text of a node.
func (w *walker) source(n syntax.Node) string { return w.slice(n.Pos().Offset(), n.End().Offset()) }

// slice returns the text from one offset to another.
func (w *walker) slice(from, to uint) string {
	if to < from || to > uint(len(w.text)) {
		return ""
	}
	return w.text[from:to]
}

// shown returns a simple command as it was written, for quotations in a verdict.
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
