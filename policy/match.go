package policy

import (
	"fmt"

	"mvdan.cc/sh/v3/syntax"
)

// A pattern is the command of a rule: words, of which a bare * stands for any one
// word and a bare ... at the end for any number of words, also none.
type pattern struct {
	text  string
	words []*syntax.Word
}

const (
	anyWord = "*"
	anyRest = "..."
)

// parsePattern reads the command of a rule as a shell reads words.
func parsePattern(text string) (*pattern, error) {
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
	p := &pattern{text: read, words: call.Args}
	for i, word := range p.words {
		if word.Lit() == anyRest && i < len(p.words)-1 {
			return nil, fmt.Errorf("command %q: ... stands for the rest, so it can only be the last word", text)
		}
	}
	return p, nil
}

// names says whether the pattern tells which command it means.
func (p *pattern) names() bool {
	first := p.words[0].Lit()
	return first != anyWord && first != anyRest
}

// fields is the pattern as the place makes it, with ~ for example expanded.
func (p *pattern) fields(at Place) []field {
	w := newWalker(at)
	w.text = p.text
	return w.fields(p.words, newState(w.place.Dir))
}

// An answer says whether a command is what a pattern means.
type answer int

const (
	no    answer = iota
	maybe        // it depends on a value the text does not tell
	yes
)

// exact matches for allow rules: word by word, and nothing unknown.
func (p *pattern) exact(call []field, at Place) bool {
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

// liberal matches for deny and ask rules: the command word also with a directory
// before it, and an unknown word may be any.
func (p *pattern) liberal(call []field, at Place) answer {
	want := p.fields(at)
	result := yes
	for i, f := range want {
		switch {
		case f.src == anyRest:
			return result
		case i >= len(call):
			return no
		case f.src == anyWord:
		case call[i].vague && i > 0:
			result = maybe
		case f.text == call[i].text:
		case i == 0 && commandName(f) == commandName(call[i]):
		default:
			return no
		}
	}
	if len(call) != len(want) {
		return no
	}
	return result
}

// simpleCalls takes a command apart into simple commands joined by && || | ; and
// returns false if there is anything else to it that an allow rule does not speak
// of: redirections, substitutions, assignments, background, compound commands.
func simpleCalls(text string, at Place) ([][]field, bool) {
	list, read, err := parse(text)
	if err != nil || len(list) == 0 {
		return nil, false
	}
	w := newWalker(at)
	w.text = read
	var out [][]field
	for _, s := range list {
		if !w.collect(s, &out) {
			return nil, false
		}
	}
	return out, true
}

func (w *walker) collect(s *syntax.Stmt, out *[][]field) bool {
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
