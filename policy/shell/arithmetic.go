package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxReferences is the maximum length of a chain of variables in arithmetic, such as a=b and b=c.
const maxReferences = 8

// identifiers matches the names of variables in arithmetic. Bash evaluates the value of each name as arithmetic, too.
var identifiers = lazily(`[A-Za-z_][A-Za-z0-9_]*`)

// judgeArithmetic judges a text that bash evaluates as arithmetic. Bash expands substitutions in the text, so
// arithmetic can run commands. Bash also evaluates the values of the variables in the text. The parameter "left" is the
// maximum number of further variables in such a chain.
func (w *walker) judgeArithmetic(f field, st *state, left int) {
	text := f.text
	switch {
	case strings.Trim(text, "0123456789") == "" || left == 0:
		return
	case f.origin.is(foreign):
		w.askUnknown(whyArithmeticOnDownload, text)
	case strings.Contains(text, unknownText):
		w.askUnknown(whyUnknownArithmetic, f.src)
	}
	if strings.Contains(text, "$(") || strings.Contains(text, "`") {
		w.askBecause(whyArithmeticCommand, text)
		w.walkScript(`: "`+strings.ReplaceAll(text, `"`, `\"`)+`"`, st.fork(), flow{})
	}
	for _, name := range identifiers().FindAllString(text, 64) {
		if v, ok := st.vars[st.referred(name)]; ok {
			w.judgeArithmetic(v.field, st, left-1)
		}
	}
}

// judgeArithmeticIn judges each word in an arithmetic expression of the parsed script.
func (w *walker) judgeArithmeticIn(n syntax.Node, st *state) {
	syntax.Walk(n, func(n syntax.Node) bool {
		word, ok := n.(*syntax.Word)
		if !ok {
			return true
		}
		w.judgeArithmetic(w.scalar(word, st), st, maxReferences)
		return false
	})
}

// judgeSubscript judges an operand that names a variable. Bash evaluates a subscript in it as arithmetic, so a[$(ls)]
// runs ls.
func (w *walker) judgeSubscript(f field, st *state) {
	name, _, _ := strings.Cut(f.text, "=")
	if _, index, ok := strings.Cut(name, "["); ok {
		w.judgeArithmetic(*part(f, index), st, maxReferences)
	} else if f.vague && strings.HasPrefix(name, unknownText) {
		w.askUnknown(whyUnknownVariable, f.src)
	}
}

// judgeTest judges the expression in [[ … ]]. Operators such as -eq evaluate arithmetic, and the operator -v evaluates
// a subscript.
func (w *walker) judgeTest(x syntax.TestExpr, st *state) {
	syntax.Walk(x, func(n syntax.Node) bool {
		switch t := n.(type) {
		case *syntax.BinaryTest:
			switch t.Op {
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
				w.judgeArithmeticIn(t.X, st)
				w.judgeArithmeticIn(t.Y, st)
				return false
			}
		case *syntax.UnaryTest:
			if word, ok := t.X.(*syntax.Word); ok && (t.Op == syntax.TsVarSet || t.Op == syntax.TsRefVar) {
				w.judgeSubscript(w.scalar(word, st), st)
				return false
			}
		case *syntax.Word:
			w.walkSubstitutions(t, st)
			return false
		}
		return true
	})
}

// integers records the variables that declare -i or declare -A declares. Bash evaluates the values after declare -i as
// arithmetic, and does not evaluate subscripts after declare -A.
func (w *walker) integers(c *syntax.DeclClause, st *state) {
	integer, assoc := false, false
	for _, a := range c.Args {
		if a.Naked && a.Name == nil && a.Value != nil {
			flags := w.scalar(a.Value, st)
			integer = integer || strings.HasPrefix(flags.text, "-") && strings.Contains(flags.text, "i")
			assoc = assoc || strings.HasPrefix(flags.text, "-") && strings.Contains(flags.text, "A")
			if !strings.HasPrefix(flags.text, "-") {
				w.judgeSubscript(flags, st)
			}
		}
		if integer && a.Name != nil && a.Value == nil {
			v := st.vars[a.Name.Value]
			if v.integer = true; v.text == "" {
				v.field = unknownField("")
			}
			st.vars[a.Name.Value] = v
		}
		if assoc && a.Name != nil {
			st.vars[a.Name.Value] = variable{field: unknownField(""), assoc: true}
		}
		if integer && a.Name != nil && a.Value != nil {
			w.judgeArithmetic(w.scalar(a.Value, st), st, maxReferences)
		}
	}
}
