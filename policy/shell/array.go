package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// array is the variable that NAME=(…) or NAME+=(…) makes.
func (w *walker) array(a *syntax.Assign, old variable, st *state) variable {
	list := []field{}
	if a.Append {
		if list = slices.Clone(old.list); list == nil {
			list = []field{old.field}
		}
	}
	for _, e := range a.Array.Elems {
		switch {
		case e.Index != nil: // which of them comes first nobody can tell
			w.substitutions(e, st)
			return variable{field: unknownField("")}
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

// expansion is what several words are expanded from.
type expansion struct {
	list []field
	join bool // one word inside quotes: "$*"
}

// elements are the words of $@, $*, ${NAME[@]}, ${NAME[*]} and ${NAME[1]}, where they are known.
func (w *walker) elements(p *syntax.ParamExp, st *state) (expansion, bool) {
	if p.Param == nil || p.Flags != nil || p.Excl || p.Length || p.Width || p.IsSet || p.Slice != nil || p.Repl != nil ||
		p.Exp != nil || p.Names != 0 || p.NestedParam != nil || len(p.Modifiers) > 0 {
		return expansion{}, false
	}
	name := p.Param.Value
	if p.Index == nil {
		return expansion{st.args, name == "*"}, (name == "@" || name == "*") && st.args != nil
	}
	v := st.vars[name]
	if v.refers != "" {
		v = st.vars[v.refers]
	}
	index, _ := p.Index.(*syntax.Word)
	if v.list == nil || index == nil {
		return expansion{}, false
	}
	switch which := index.Lit(); which {
	case "@", "*":
		return expansion{v.list, which == "*"}, true
	default:
		n, err := strconv.Atoi(which)
		if n < 0 {
			n += len(v.list)
		}
		if err != nil || n < 0 || n >= len(v.list) {
			return expansion{}, err == nil
		}
		return expansion{v.list[n : n+1 : n+1], true}, true
	}
}

// runs are the runs of the words, kept apart unless they are joined.
func (e expansion) runs(quoted bool) []run {
	if !quoted || !e.join {
		return all(e.list, quoted)
	}
	var whole field
	for i, f := range e.list {
		if i > 0 {
			whole.add(field{text: " ", pat: " "})
		}
		whole.add(field{text: f.text, pat: escape(f.text), vague: f.vague, origin: f.origin, swept: f.swept, unsure: f.unsure})
	}
	return []run{{field: whole, quoted: true}}
}

// printfTo is printf -v NAME.
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
	out := printed("printf", args)
	v := field{text: out.text, pat: escape(out.text), vague: !out.known, origin: out.origin}
	name, _, element := strings.Cut(name, "[")
	if element || len(args) == 0 {
		v = unknownField("")
	}
	if syntax.ValidName(name) {
		st.vars[name] = variable{field: v}
		w.environment(name, v, st)
	}
	return true
}
