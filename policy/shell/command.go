package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Command is one command of a request: either a text for a shell, or the words of a program.
type Command struct {
	Text  string
	Argv  []string
	Dir   string   // starting directory; empty means the working directory
	Env   []string // variables for the command, each as NAME=value
	Stdin string   // standard input, if the request has it
}

// String returns the command as text for a shell.
func (c Command) String() string {
	text, _ := c.script()
	return text
}

// script returns the command as one script for a shell. It sets the variables with export before the command and passes
// the input as a here-document. If the words are sh -c TEXT, the command is TEXT. script returns false if a shell
// cannot express the command.
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

// bare returns the command as text for a shell, without its variables and its input.
func (c Command) bare() (string, bool) {
	if len(c.Argv) == 0 {
		return c.Text, true
	}
	if text, ok := shellText(c.Argv); ok {
		return text, true
	}
	return Words(c.Argv)
}

// Words joins the words of a program into a text for a shell, with quotes where they are needed. It returns false if a
// shell cannot express a word.
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

// StartDir returns the directory in which the command starts. A relative Dir starts at the working directory.
func (c Command) StartDir(at Place) string {
	switch {
	case c.Dir == "":
		return at.Dir
	case filepath.IsAbs(c.Dir):
		return c.Dir
	}
	return filepath.Join(at.Dir, c.Dir)
}

// Call is one simple command, such as git status in git status && ls, as a list of its expanded words.
type Call []field

// Program returns the name of the called program.
func (c Call) Program() string { return commandName(c[0]) }

// SameText reports whether two commands have the same canonical text after sh -c around them has been removed.
func (c Command) SameText(other Command) bool { return c.core() == other.core() }

// Canonical returns a canonical text of the command, without comments, needless quotes and needless white space. It
// returns false for a text that cannot be parsed.
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
			// In a here-document, quotes around the delimiter switch off expansions. So these quotes stay.
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

// core returns the canonical text of the command after removing up to four levels of sh -c.
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

// unwrapped returns TEXT if the command is sh -c TEXT with a known text, and false otherwise.
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

// requote rewrites a word without expansions with the simplest quotes.
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

// Simple splits a command into simple commands joined by && || | ;. It returns false if the command contains a part
// that an allow rule cannot cover: a redirection, a substitution, an assignment, a background job or a compound
// command.
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

// plain reports whether a statement is a foreground command without redirections, except to /dev/null and between
// descriptors.
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

// still reports whether a simple command has no assignments, and no expansions except patterns of file names, ~ and
// command substitutions with a constant result.
func still(c *syntax.CallExpr) bool {
	if len(c.Assigns) > 0 || len(c.Args) == 0 {
		return false
	}
	quiet := true
	syntax.Walk(c, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			quiet = quiet && constant(n)
			return false
		case *syntax.ParamExp, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
			quiet = false
		}
		return quiet
	})
	return quiet
}

// constant reports whether a command substitution always has the same result. It must be cat with one here-document or
// here-string, or echo or printf, all without expansions.
func constant(c *syntax.CmdSubst) bool {
	if len(c.Stmts) != 1 {
		return false
	}
	s := c.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Background || s.Coprocess || s.Disown || s.Negated || !still(call) {
		return false
	}
	switch call.Args[0].Lit() {
	case "cat":
		return len(call.Args) == 1 && len(s.Redirs) == 1 && literalInput(s.Redirs[0])
	case "echo":
		return len(s.Redirs) == 0
	case "printf":
		return len(s.Redirs) == 0 && len(call.Args) > 1 && !strings.HasPrefix(call.Args[1].Lit(), "-")
	}
	return false
}

// literalInput reports whether a redirection is a here-document or here-string without expansions, for the standard
// input.
func literalInput(r *syntax.Redirect) bool {
	text := r.Hdoc
	switch r.Op {
	case syntax.WordHdoc:
		text = r.Word
	case syntax.Hdoc, syntax.DashHdoc:
	default:
		return false
	}
	if r.N != nil && r.N.Value != "0" || text == nil {
		return r.N == nil && text == nil // an empty here-document
	}
	return still(&syntax.CallExpr{Args: []*syntax.Word{text}})
}
