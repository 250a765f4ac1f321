package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxVariants is the maximum number of variants of one word, after the expansion of braces and unknown defaults.
const maxVariants = 128

// lookup returns the value of a variable. It returns false if neither the script nor the place determines the value.
func (w *walker) lookup(name string, st *state) (field, bool) {
	if v, ok := st.vars[name]; ok {
		if to, known := st.vars[v.refers]; known && to.refers == "" {
			v = to
		}
		return v.field, !v.vague
	}
	switch name {
	case "PWD":
		if len(st.dirs) == 1 && st.dirs[0].path != "" {
			return literal(st.dirs[0].path), true
		}
	case "PATH", "_perlica_path":
		return literal(pathText), true
	case "IFS":
		return literal(" \t\n"), true
	case "?", "#", "$", "!", "RANDOM", "UID":
		return literal("0"), true
	}
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' && st.args != nil {
		return nth(st.args, int(name[0]-'1'))
	}
	return w.inherited(name)
}

// inherited returns the value of an environment variable, such as HOME, that follows from the place of the command.
func (w *walker) inherited(name string) (field, bool) {
	value, unsure := "", false
	switch {
	case name == "HOME":
		value = w.place.Home
	case (name == "TMPDIR" || name == "TMP" || name == "TEMP") && len(w.place.Temp) > 0:
		value, unsure = w.place.Temp[0], true
	case name == "PERLICA_HOME" && len(w.place.Own) > 0:
		value = w.place.Own[0]
	case name == "PERLICA_HOME" && w.place.Home != "":
		value = w.place.Home + "/.config/perlica"
	case xdgDirs[name] != "" && w.place.Home != "":
		value, unsure = w.place.Home+xdgDirs[name], true
	}
	if value == "" {
		return field{}, false
	}
	f := literal(value)
	f.unsure = unsure
	return f, true
}

// expandParam expands a variable or another parameter, such as $x, ${x%.go} or $@.
func (w *walker) expandParam(p *syntax.ParamExp, quoted bool, st *state) []run {
	if list, ok := w.elements(p, st); ok {
		return w.words(list, quoted, st)
	}
	w.judgeSubscripts(p, st)
	if p.Length {
		return []run{known("0", true)}
	}
	if !plainParam(p) || p.Index != nil {
		w.walkSubstitutions(p, st)
		r := vague(quoted)
		r.loose = many(p)
		return []run{r}
	}
	v, ok := w.lookup(p.Param.Value, st)
	if p.Exp != nil {
		had := v
		v, ok = w.applyOperator(p.Exp, v, ok, st)
		assigned(p, had, v, ok, st)
	}
	if !ok {
		r := partly(v, quoted)
		r.loose = many(p)
		return []run{r}
	}
	return []run{valueRun(v, quoted)}
}

// judgeSubscripts judges the parts of an expansion that bash evaluates once more: x and y in ${a[x]} and ${a:x:y}, and
// the value of a in ${!a} and ${a@P}.
func (w *walker) judgeSubscripts(p *syntax.ParamExp, st *state) {
	assoc := p.Param != nil && st.vars[st.referred(p.Param.Value)].assoc
	if index, ok := p.Index.(*syntax.Word); p.Index != nil && !assoc &&
		!(ok && (index.Lit() == "@" || index.Lit() == "*")) {
		w.judgeArithmeticIn(p.Index, st)
	}
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				w.judgeArithmeticIn(x, st)
			}
		}
	}
	if p.Param == nil {
		return
	}
	v, known := w.lookup(p.Param.Value, st)
	switch {
	case p.Excl && p.Names == 0 && known:
		w.judgeSubscript(v, st)
	case p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && p.Exp.Word != nil && p.Exp.Word.Lit() == "P":
		if !known {
			w.askUnknown(whyUnknownPrompt, p.Param.Value)
		}
		w.walkScript(`: "`+strings.ReplaceAll(v.text, `"`, `"`)+`"`, st.fork(), flow{})
	}
}

// plainParam reports whether an expansion has only operations that this package can compute.
func plainParam(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Flags == nil && !p.Excl && !p.Width && !p.IsSet && p.Slice == nil && p.Repl == nil &&
		p.Names == 0 &&
		p.NestedParam == nil && len(p.Modifiers) == 0
}

// valueRun returns the run for a variable's value. The value of a loop's variable may be a pattern. It then stays a
// pattern even inside quotes.
func valueRun(v field, quoted bool) run {
	if v.glob {
		return run{field: v, quoted: quoted}
	}
	r := known(v.text, quoted)
	r.origin, r.swept, r.unsure = v.origin, v.swept, v.unsure
	return r
}

// partly returns the run for an unknown value. It keeps the known parts of the value.
func partly(v field, quoted bool) run {
	r := vague(quoted)
	r.origin = v.origin
	if v.vague && v.text != "" {
		r.text, r.pat = v.text, escape(v.text)
	}
	return r
}

// applyOperator applies an operator such as the one in ${x-…} or ${x%…} to the value v. ok says that v is known. For an
// unknown v, the function variants has already added the alternative value.
func (w *walker) applyOperator(e *syntax.Expansion, v field, ok bool, st *state) (field, bool) {
	arg := w.scalar(e.Word, st)
	alternate := e.Op == syntax.AlternateUnset || e.Op == syntax.AlternateUnsetOrNull
	switch {
	case offersDefault(e.Op) && ok && alternate == (v.text != ""):
		return arg, !arg.vague
	case offersDefault(e.Op), e.Op == syntax.ErrorUnset, e.Op == syntax.ErrorUnsetOrNull:
		return v, ok
	case !ok || arg.vague:
		return field{}, false
	}
	return trim(e.Op, v, arg.text)
}

// assigned records the assignment that ${x:=y} or ${x=y} makes. The parameter "had" is the value of x before, and v is
// the value after. For ${x=y} and an empty x, the new value is unknown.
func assigned(p *syntax.ParamExp, had, v field, ok bool, st *state) {
	name := st.referred(p.Param.Value)
	switch {
	case !syntax.ValidName(name) || had.text != "" && !had.vague:
	case p.Exp.Op == syntax.AssignUnsetOrNull && ok:
		st.setVariable(name, variable{field: v})
	case p.Exp.Op == syntax.AssignUnset, p.Exp.Op == syntax.AssignUnsetOrNull:
		st.setVariable(name, variable{field: unknownField("")})
	}
}

// trim computes ${x%arg}, ${x#arg} and similar operators for the value v. It returns false if arg is a pattern, except
// for the usual patterns that split a path.
func trim(op syntax.ParExpOperator, v field, arg string) (field, bool) {
	plain := !HasMeta(arg)
	switch {
	case plain && (op == syntax.RemSmallSuffix || op == syntax.RemLargeSuffix):
		v.text, v.pat = strings.TrimSuffix(v.text, arg), strings.TrimSuffix(v.pat, arg)
	case plain && (op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix):
		v.text, v.pat = strings.TrimPrefix(v.text, arg), strings.TrimPrefix(v.pat, arg)
	case op == syntax.RemLargePrefix && arg == "*/":
		v.text, v.pat = path.Base(v.text), path.Base(v.pat)
	case op == syntax.RemSmallSuffix && arg == "/*" && strings.Contains(v.text, "/"):
		v.text, v.pat = path.Dir(v.text), path.Dir(v.pat)
	default:
		return field{}, false
	}
	return v, true
}

// variants returns the possible expansions of a word with ${x:-y} or similar parts if x is unknown: one with x and one
// with y. It subtracts 1 from *left for each result, and stops when *left is negative.
func (w *walker) variants(parts []syntax.WordPart, st *state, left *int) [][]syntax.WordPart {
	out := [][]syntax.WordPart{nil}
	for _, part := range parts {
		choices := w.choices(part, st, left)
		var next [][]syntax.WordPart
		for _, head := range out {
			for _, tail := range choices {
				if *left--; *left < 0 {
					return nil
				}
				next = append(next, append(head[:len(head):len(head)], tail...))
			}
		}
		out = next
	}
	return out
}

func (w *walker) choices(part syntax.WordPart, st *state, left *int) [][]syntax.WordPart {
	var out [][]syntax.WordPart
	switch p := part.(type) {
	case *syntax.DblQuoted:
		for _, inner := range w.variants(p.Parts, st, left) {
			q := *p
			q.Parts = inner
			out = append(out, []syntax.WordPart{&q})
		}
		return out
	case *syntax.ParamExp:
		if p.Exp != nil && p.Exp.Word != nil && p.Param != nil && offersDefault(p.Exp.Op) {
			if _, ok := w.lookup(p.Param.Value, st); !ok {
				bare := *p
				bare.Exp = nil
				return append([][]syntax.WordPart{{&bare}}, w.variants(p.Exp.Word.Parts, st, left)...)
			}
		}
	case *syntax.ExtGlob:
		if p.Op == syntax.GlobOne || p.Op == syntax.GlobZeroOrOne {
			for alt := range strings.SplitSeq(p.Pattern.Value, "|") {
				out = append(out, []syntax.WordPart{&syntax.Lit{Value: alt}})
			}
			return out
		}
	}
	return [][]syntax.WordPart{{part}}
}

func offersDefault(op syntax.ParExpOperator) bool {
	return slices.Contains([]syntax.ParExpOperator{syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset,
		syntax.AssignUnsetOrNull, syntax.AlternateUnset, syntax.AlternateUnsetOrNull}, op)
}

// variable is the value of a variable with its attributes.
type variable struct {
	field
	exported bool
	refers   string  // the variable to which declare -n made this one a reference
	integer  bool    // declare -i was used: bash evaluates the values as arithmetic
	assoc    bool    // an associative array, with subscripts that are not arithmetic
	list     []field // elements of an array; the field has the first one, too; nil if unknown
}

// same reports whether two variables have the same value.
func (v variable) same(o variable) bool {
	return v.text == o.text && v.vague == o.vague && v.refers == o.refers && (v.list == nil) == (o.list == nil) &&
		sameFields(v.list, o.list)
}

func sameFields(a, b []field) bool {
	return slices.EqualFunc(a, b, func(a, b field) bool { return a.text == b.text && a.vague == b.vague })
}

// assignVariables records the values that assignments give to variables.
func (w *walker) assignVariables(assigns []*syntax.Assign, st *state, export bool) {
	for _, a := range assigns {
		if a.Name == nil { // a quoted assignment, as in export "X=y"
			value := w.scalar(a.Value, st)
			if name, _, ok := strings.Cut(value.text, "="); ok && syntax.ValidName(name) {
				w.leadingAssigns([]field{value}, st)
			} else if ok {
				st.setVariable(name, variable{field: unknownField("")})
			}
			continue
		}
		name := st.referred(a.Name.Value)
		if name == "BASH_CMDS" || name == "BASH_ALIASES" {
			w.askUnknown(whyOtherMeaning, name)
		}
		old, had := st.vars[name]
		if a.Naked {
			if had && export {
				old.exported = true
				st.vars[name] = old
				w.judgeExported(name, old.field, st)
			}
			continue
		}
		v := variable{field: w.scalar(a.Value, st)}
		switch {
		case a.Array != nil:
			v = w.array(a, old, st)
		case a.Index != nil:
			if v.assoc = old.assoc; !v.assoc {
				w.judgeArithmeticIn(a.Index, st)
			}
			v.field = unknownField("")
		case a.Append:
			v.field = w.appended(name, v.field, st)
		}
		v.exported = export || old.exported
		if v.integer = old.integer; v.integer {
			w.judgeArithmetic(v.field, st, maxReferences)
		}
		st.vars[name] = v
		w.judgeVariable(name, v.field, st)
		if v.exported {
			w.judgeExported(name, v.field, st)
		}
	}
}

func (w *walker) appended(name string, tail field, st *state) field {
	head, ok := w.lookup(name, st)
	if !ok {
		return unknownField("")
	}
	head.appendField(tail)
	return head
}

// array returns the variable NAME after NAME=(…) or NAME+=(…). The parameter "old" is the variable before.
func (w *walker) array(a *syntax.Assign, old variable, st *state) variable {
	list := []field{}
	if a.Append {
		if list = slices.Clone(old.list); list == nil {
			list = []field{old.field}
		}
	}
	for _, e := range a.Array.Elems {
		switch {
		case e.Index != nil: // an element with an index, as in NAME=([3]=x), makes the whole array unknown
			if old.assoc {
				w.walkSubstitutions(e, st)
			} else {
				w.judgeArithmeticIn(e.Index, st)
			}
			return variable{field: unknownField(""), assoc: old.assoc}
		case e.Value != nil:
			list = append(list, w.fields([]*syntax.Word{e.Value}, st)...)
		}
	}
	if len(list) > maxArgs {
		return variable{field: unknownField("")}
	}
	v := variable{list: list}
	if len(list) > 0 {
		v.field = list[0]
	}
	return v
}

// printfTo sets the variable NAME for printf -v NAME. It reports whether args have this form.
func (w *walker) printfTo(args []field, st *state) bool {
	if len(args) == 0 || !strings.HasPrefix(args[0].text, "-v") {
		return false
	}
	name := strings.TrimPrefix(args[0].text, "-v")
	if args = args[1:]; name == "" {
		if len(args) == 0 {
			return true
		}
		name, args = args[0].text, args[1:]
	}
	w.judgeSubscript(field{text: name, src: name, vague: strings.Contains(name, unknownText)}, st)
	out := printed("printf", args)
	v := field{text: out.text, pat: escape(out.text), vague: !out.known, origin: out.origin}
	if len(args) == 0 {
		v = unknownField("")
	}
	w.judgeVariable(name, v, st)
	st.setVariable(name, variable{field: v})
	return true
}
