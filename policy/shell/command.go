package shell

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Command is one command: a text for a shell, or else the words of a program.
type Command struct {
	Text  string
	Argv  []string
	Dir   string   // where it starts, if that is not the working directory
	Env   []string // NAME=value, set for it
	Stdin string   // what it reads, if the request says so
}

// String is the command as text for a shell.
func (c Command) String() string {
	text, _ := c.script()
	return text
}

// script is the text a shell would run, with the assignments before it and what it reads
// after it. Words of the form sh -c TEXT are the text itself, because that is how agents
// give a text to a shell.
func (c Command) script() (string, bool) {
	text, ok := c.bare()
	for i := len(c.Env) - 1; i >= 0 && ok; i-- {
		name, value, _ := strings.Cut(c.Env[i], "=")
		quoted, err := syntax.Quote(value, syntax.LangBash)
		if ok = err == nil && envName().MatchString(name); ok {
			text = "export " + name + "=" + quoted + "; " + text
		}
	}
	if c.Stdin == "" {
		return text, ok
	}
	end := "INPUT"
	for slices.Contains(strings.Split(c.Stdin, "\n"), end) {
		end += "_"
	}
	if strings.ContainsAny(text, "\n#") || len(c.Env) > 0 {
		text = "{ " + text + "\n}"
	}
	return text + " <<'" + end + "'\n" + strings.TrimSuffix(c.Stdin, "\n") + "\n" + end, ok
}

var envName = lazily(`^[A-Za-z_][A-Za-z0-9_]*$`)

// bare is the command without what it is given.
func (c Command) bare() (string, bool) {
	if len(c.Argv) == 0 {
		return c.Text, true
	}
	if text, ok := shellText(c.Argv); ok {
		return text, true
	}
	return Words(c.Argv)
}

// Words spells the words of a program as a shell reads them. It returns false for words that
// no shell can hold.
func Words(argv []string) (string, bool) {
	words := make([]string, len(argv))
	for i, word := range argv {
		quoted, err := syntax.Quote(word, syntax.LangBash)
		if err != nil {
			return "", false
		}
		words[i] = quoted
	}
	return strings.Join(words, " "), true
}

var dashC = lazily(`^-[il]*c$`)

func shellText(argv []string) (string, bool) {
	if len(argv) != 3 || !dashC().MatchString(argv[1]) {
		return "", false
	}
	name := commandName(literal(argv[0]))
	return argv[2], slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh"}, name)
}

// StartDir is the directory the command starts in.
func (c Command) StartDir(at Place) string {
	switch {
	case c.Dir == "":
		return at.Dir
	case filepath.IsAbs(c.Dir):
		return c.Dir
	}
	return filepath.Join(at.Dir, c.Dir)
}

// A Call is one simple command, as its words are once they are expanded.
type Call []field

// Program is the name of the program that is called.
func (c Call) Program() string { return commandName(c[0]) }

// SameText says whether two commands are the same in one spelling, without the shells that run
// them.
func (c Command) SameText(other Command) bool { return c.core() == other.core() }

// Canonical spells the command so that two that differ only in white space, comments and
// needless quotes are the same. It returns false for what cannot be parsed.
func (c Command) Canonical() (string, bool) {
	text, ok := c.script()
	list, _, err := parse(text)
	if !ok || err != nil || len(list) == 0 {
		return "", false
	}
	file := &syntax.File{Stmts: list}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			// The quotes around a here-document's end are part of its meaning.
			return n.Hdoc == nil
		case *syntax.Word:
			requote(n)
		}
		return true
	})
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.Minify(true)).Print(&b, file); err != nil {
		return "", false
	}
	return strings.TrimSpace(b.String()), true
}

// core is the command in one spelling, without the shells around it.
func (c Command) core() string {
	text, _ := c.script()
	for range 4 {
		inner, ok := unwrapped(text)
		if !ok {
			break
		}
		text = inner
	}
	if same, ok := (Command{Text: text}).Canonical(); ok {
		return same
	}
	return strings.TrimSpace(text)
}

// unwrapped returns TEXT of a command that is sh -c TEXT.
func unwrapped(text string) (string, bool) {
	calls, ok := Command{Text: text}.Simple(Place{})
	if !ok || len(calls) != 1 {
		return "", false
	}
	var argv []string
	for _, f := range calls[0] {
		if f.vague || f.glob {
			return "", false
		}
		argv = append(argv, f.text)
	}
	return shellText(argv)
}

// requote gives a word without expansions its plainest quotes.
func requote(word *syntax.Word) {
	var w walker
	text := ""
	for _, part := range word.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			r := litRun(p.Value, false)
			if HasMeta(r.pat) || strings.ContainsAny(p.Value, "~{") {
				return
			}
			text += r.text
		case *syntax.SglQuoted:
			text += w.runs([]syntax.WordPart{p}, false, nil)[0].text
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return
				}
				text += litRun(lit.Value, true).text
			}
		default:
			return
		}
	}
	quoted, err := syntax.Quote(text, syntax.LangBash)
	if err != nil {
		return
	}
	word.Parts = []syntax.WordPart{&syntax.Lit{Value: quoted}}
}

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
func (p *Pattern) MatchExact(call Call, at Place) bool { return p.match(call, at, true) == Yes }

// MatchLoose matches for deny and ask rules: the command word also with a directory
// before it, and an unknown word may be any.
func (p *Pattern) MatchLoose(call Call, at Place) Answer { return p.match(call, at, false) }

func (p *Pattern) match(call Call, at Place, exact bool) Answer {
	want := p.fields(at)
	result := Yes
	for i, f := range want {
		switch {
		case f.src == anyRest:
			return result
		case i >= len(call), exact && call[i].vague:
			return No
		case f.src == anyWord:
		case call[i].vague && i > 0:
			result = Maybe
		case f.text == call[i].text:
		case i == 0 && !exact && commandName(f) == commandName(call[i]):
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
		dup := (r.Op == syntax.DplOut || r.Op == syntax.DplIn) && descriptors().MatchString(word)
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
