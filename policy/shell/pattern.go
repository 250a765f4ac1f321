package shell

import (
	"errors"
	"fmt"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// A Pattern is the command of a rule: words, of which a bare * stands for any one
// word and a bare ... at the end for any number of words, also none.
type Pattern struct {
	text  string
	words []*syntax.Word
}

const (
	anyWord = "*"
	anyRest = "..."
)

var errNotSimple = errors.New("is not one plain command")

// ParsePattern reads the command of a rule as a shell reads words.
func ParsePattern(text string) (*Pattern, error) {
	list, read, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("command %q: %w", text, err)
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("command %q %w", text, errNotSimple)
	}
	call, ok := list[0].Cmd.(*syntax.CallExpr)
	if !ok || !plain(list[0]) || !still(call) {
		return nil, fmt.Errorf("command %q %w", text, errNotSimple)
	}
	p := &Pattern{text: read, words: call.Args}
	for i, word := range p.words {
		if word.Lit() == anyRest && i < len(p.words)-1 {
			return nil, fmt.Errorf("command %q: ... stands for the rest, so it can only be the last word", text)
		}
	}
	return p, nil
}

// Names says whether the pattern tells which command it means.
func (p *Pattern) Names() bool {
	first := p.words[0].Lit()
	return first != anyWord && first != anyRest
}

// Literal says whether the pattern is one command and no other.
func (p *Pattern) Literal() bool {
	return !slices.ContainsFunc(p.words, func(w *syntax.Word) bool { return w.Lit() == anyWord || w.Lit() == anyRest })
}

// fields is the pattern as the place makes it, with ~ for example expanded.
func (p *Pattern) fields(at Place) []field {
	w := newWalker(at)
	w.text = p.text
	return w.fields(p.words, newState(w.place.Dir))
}

// An Answer says whether a command is what a pattern means.
type Answer int

const (
	No    Answer = iota
	Maybe        // it depends on a value the text does not tell
	Yes
)

// MatchExact matches for allow rules: word by word, and nothing unknown.
func (p *Pattern) MatchExact(call Call, at Place) bool {
	want := p.fields(at)
	for i, f := range want {
		switch {
		case f.src == anyRest:
			return true
		case i >= len(call) || call[i].vague:
			return false
		case f.src == anyWord:
		case f.text != call[i].text:
			return false
		}
	}
	return len(call) == len(want)
}

// MatchLoose matches for deny and ask rules: the command word also with a directory
// before it, and an unknown word may be any.
func (p *Pattern) MatchLoose(call Call, at Place) Answer {
	want := p.fields(at)
	result := Yes
	for i, f := range want {
		switch {
		case f.src == anyRest:
			return result
		case i >= len(call):
			return No
		case f.src == anyWord:
		case call[i].vague && i > 0:
			result = Maybe
		case f.text == call[i].text:
		case i == 0 && commandName(f) == commandName(call[i]):
		default:
			return No
		}
	}
	if len(call) != len(want) {
		return No
	}
	return result
}

// Simple takes a command apart into simple commands joined by && || | ; and
// returns false if there is anything else to it that an allow rule does not speak
// of: redirections, substitutions, assignments, background, compound commands.
func (c Command) Simple(at Place) ([]Call, bool) {
	text, ok := c.script()
	list, read, err := parse(text)
	if !ok || err != nil || len(list) == 0 {
		return nil, false
	}
	w := newWalker(at)
	w.text = read
	var out []Call
	for _, s := range list {
		if !w.collect(s, &out) {
			return nil, false
		}
	}
	return out, true
}

func (w *walker) collect(s *syntax.Stmt, out *[]Call) bool {
	if !plain(s) {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return w.collect(c.X, out) && w.collect(c.Y, out)
	case *syntax.CallExpr:
		if !still(c) {
			return false
		}
		fs := w.fields(c.Args, newState(w.place.Dir))
		*out = append(*out, fs)
		return len(fs) > 0
	}
	return false
}

// plain says whether a statement is nothing but its command.
func plain(s *syntax.Stmt) bool {
	if s.Background || s.Coprocess || s.Disown {
		return false
	}
	for _, r := range s.Redirs {
		word := r.Word.Lit()
		dup := (r.Op == syntax.DplOut || r.Op == syntax.DplIn) && isDescriptor(word)
		if !dup && (word != "/dev/null" || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc) {
			return false
		}
	}
	return true
}

// still says whether a simple command has neither assignments nor anything that is
// expanded when it runs, file names and ~ apart.
func still(c *syntax.CallExpr) bool {
	if len(c.Assigns) > 0 || len(c.Args) == 0 {
		return false
	}
	quiet := true
	syntax.Walk(c, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
			quiet = false
		}
		return quiet
	})
	return quiet
}
