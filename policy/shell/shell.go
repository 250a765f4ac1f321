// Package shell judges shell commands by the losses and changes that their text shows. A command that destroys the
// root, the home, the working directory or a device is Refused. A command with an effect that the text does not show is
// AlwaysAsked.
//
// The package parses a command and follows its statements, variables and nested shells. It runs nothing and reads no
// disk, so it does not know the content of scripts. The table programs.txt tells it about other programs.
//
// A walk method follows the syntax tree. A judge method may make the verdict graver. An expand method expands the words
// of a command into fields. A field is one word with all that is known about it. A flow is the output of one command,
// which may be the input of the next.
package shell

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perlica/perlica/eventlog/message"
)

// Tier says how dangerous a command is, which limits the rules and modes that may allow it.
type Tier string

const (
	// Ordinary is the tier of a command in which this package found no danger.
	Ordinary Tier = "ordinary"
	// AlwaysAsked is the tier of a command that needs a person or a rule that names the command. No mode allows it.
	AlwaysAsked Tier = "always-asked"
	// Refused is the tier of a command that no rule, mode or standing approval allows.
	Refused Tier = "refused"
)

// Above reports whether the tier t is more dangerous than the other tier. The empty tier is Ordinary.
func (t Tier) Above(other Tier) bool { return t.rank() > other.rank() }

func (t Tier) rank() int { return slices.Index([]Tier{AlwaysAsked, Refused}, t) }

// Verdict is the tier of a shell command, with the reason.
type Verdict struct {
	Tier Tier
	Why  string // the reason; empty for an ordinary command
	message.Coded
	Word string // the word that a person types to let a refused command through once

	// Unknown means that the effect depends on values that the text does not contain, so the same text may have another
	// effect next time.
	Unknown bool

	// Stopped is the reason why the sandbox will stop the action, or nil. The tier is then at least AlwaysAsked.
	Stopped *message.Text
}

// maxDepth limits the nesting of functions, shells and wrappers. maxSteps limits the work for one command.
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
	active    map[*syntax.Stmt]bool // bodies of functions that are being walked
	files     map[string]origin     // origins of the files that the script wrote
	written   map[string]flow       // known texts that the script wrote into files
	touched   Changed               // the files that the script wrote
	unseen    map[string]int        // number of unknown texts that the script wrote into each file
	committed bool                  // a commit in the script may contain private data
	remotes   []string              // names of the git remotes that the script adds
	rows      map[string]*program   // rows of programs.txt that were already parsed
	writes    bool                  // the script changes or removes a file
	pipes     map[string]field      // process substitutions such as <(…), by their invented names
	sinks     []*sink               // the processes of >(…) in the statements that are being walked
	unnamed   origin                // origins of the files that were written under unknown names
	stopped   *message.Text         // the reason why the sandbox will stop the command, or nil

	declaring   int  // above zero while the walker judges the body of a function at its declaration
	refusedOnly int  // above zero while the walker looks only for refused commands
	packages    int  // above zero while a launcher runs a program of the project's packages
	suffixes    bool // the command is only a guess: a suffix of the words of an unknown program
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
	Writes  bool   // the command changes or removes a file

	// Changed lists the files that the command writes, as its text shows. It does not have files that a compiler or a
	// formatter makes from other files.
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

// Unclear returns the verdict AlwaysAsked with the reason in "why", for an effect that cannot be known.
func Unclear(why *message.Text) Verdict {
	v := because(AlwaysAsked, why)
	v.Unknown = true
	return v
}

// Asked returns the verdict AlwaysAsked with the reason in "why", for a known effect about which a person decides.
func Asked(why *message.Text) Verdict { return because(AlwaysAsked, why) }

// Reason returns the reason as a sentence.
func (v Verdict) Reason() *message.Text { return &message.Text{Text: v.Why, Coded: v.Coded} }

// because returns a verdict with the reason in "why", in a form that is safe to show on a terminal.
func because(tier Tier, why *message.Text) Verdict {
	why = tidied(why)
	return Verdict{Tier: tier, Why: why.Text, Coded: why.Coded}
}

// tidied applies tidy to a message and to the values in it.
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

// addFinding replaces the verdict if the given tier is above the verdict's tier. So the first reason with the
// highest tier stays.
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

// askUnknown raises the verdict to AlwaysAsked, because the text does not determine the effect.
func (w *walker) askUnknown(why *message.Text, args ...any) {
	if w.declaring > 0 {
		return
	}
	w.askBecause(why, args...)
	w.verdict.Unknown = w.verdict.Unknown || w.refusedOnly == 0
}

// tidy returns a text as one line of at most 240 characters that is safe to show on a terminal.
func tidy(s string) string {
	s = Printable(s)
	if runes := []rune(s); len(runes) > 240 {
		s = string(runes[:239]) + "…"
	}
	return s
}

// Printable replaces each line end and tab by a space, and each other unprintable character by U+FFFD, because a
// terminal may obey such characters.
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

// walkScript judges a script. It also judges the statements before a syntax error, because a shell runs them before it
// finds the error.
func (w *walker) walkScript(text string, st *state, in flow) flow {
	if w.depth++; w.depth > maxDepth || w.steps > maxSteps {
		w.askUnknown(whyNested)
		w.depth--
		return flow{}
	}
	w.steps += 1 + len(text)/64 // parsing counts as work, too
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

// source returns the text of a syntax node as it stands in the script.
func (w *walker) source(n syntax.Node) string { return w.slice(n.Pos().Offset(), n.End().Offset()) }

// slice returns a part of the script by its byte offsets.
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
