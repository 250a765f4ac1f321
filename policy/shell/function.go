package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// maxFunctions bounds how many meanings of one name are followed.
const maxFunctions = 16

// A function is one meaning that the script gives to a name. An alias is one, too.
type function struct {
	body *syntax.Stmt
	text string // the script in which it stands
}

// declare remembers a function, and judges what its body does in any case. What depends on
// its arguments is judged where it is called.
func (w *walker) declare(c *syntax.FuncDecl, st *state) {
	if c.Name == nil || c.Body == nil {
		return
	}
	name := c.Name.Value
	if multiplies(name, c.Body) {
		w.add(Refused, "a fork bomb: "+w.source(c), "bomb")
	}
	fn := function{c.Body, w.text}
	w.define(name, fn)
	inner := st.clone()
	inner.args = nil
	w.declaring++
	w.enter(fn, inner, flow{})
	w.declaring--
}

// define adds a meaning to a name. None is ever taken away: which of them a call
// reaches depends on branches, subshells and unset.
func (w *walker) define(name string, fn function) {
	have := w.funcs[name]
	if slices.Contains(have, fn) {
		return
	}
	if len(have) == maxFunctions {
		w.unknown("a function with too many meanings: %s", name)
		return
	}
	w.funcs[name] = append(have, fn)
}

// alias makes a name stand for the start of a command.
func (w *walker) alias(name, text string) {
	if list, read, err := parse(text + ` "$@"`); err == nil && len(list) == 1 {
		w.define(name, function{list[0], read})
	}
}

// enterAll walks all that a call of this name may run, and leaves in st what holds
// whichever of it was.
func (w *walker) enterAll(fs []field, st *state, in flow) flow {
	var out flow
	var after []*state
	for i, fn := range slices.Clone(w.funcs[fs[0].text]) {
		inner := st.clone()
		inner.args = positional(fs[1:])
		o := w.enter(fn, inner, in)
		inner.args = st.args
		after = append(after, inner)
		if i == 0 {
			out = o
		} else {
			out = out.then(o)
			out.known = false
		}
	}
	*st = *after[0]
	for _, other := range after[1:] {
		st.join(st.clone(), other)
	}
	return out
}

// enter walks the body of a function, unless it is being walked.
func (w *walker) enter(fn function, st *state, in flow) flow {
	if w.active[fn.body] || w.steps > maxSteps {
		return flow{}
	}
	outer := w.text
	w.active[fn.body], w.text = true, fn.text
	out := w.stmt(fn.body, st, in)
	st.settle()
	w.active[fn.body], w.text = false, outer
	return out
}

// multiplies says whether a function starts itself in a pipe or in the background.
func multiplies(name string, body *syntax.Stmt) bool {
	found := false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			found = found || ((n.Background || n.Coprocess) && mentions(name, n))
		case *syntax.BinaryCmd:
			piped := n.Op == syntax.Pipe || n.Op == syntax.PipeAll
			found = found || (piped && (mentions(name, n.X) || mentions(name, n.Y)))
		}
		return !found
	})
	return found
}

// mentions says whether a command of this name stands in the statement.
func mentions(name string, s *syntax.Stmt) bool {
	found := false
	syntax.Walk(s, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == name {
			found = true
		}
		return !found
	})
	return found
}
