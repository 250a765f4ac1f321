package shell

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// state is the knowledge about a shell at one point of its script.
type state struct {
	dirs    []dir // directories that it may be in
	pending []dir // directories that it is in if the last cd failed
	vars    map[string]variable
	args    []field // positional parameters; nil if unknown
	input   *flow   // standard input after exec
	traps   []field // commands that the shell runs at its end or on a signal
	keeps   bool    // exec was called without a command, so its redirections last
	far     bool    // a shell on another machine
	errexit bool    // set -e: after a failed cd nothing follows
}

// dir is a directory that the shell may be in. An empty path is unknown. If doubt is true, the shell is there only if
// a cd fails.
type dir struct {
	path  string
	doubt bool
}

// flow is the output of one command of a pipe and the input of the next.
type flow struct {
	piped    bool    // a pipe or a file, not the terminal
	known    bool    // text is complete
	text     string  // the text
	other    string  // the text in a shell whose echo reads escapes, if it differs
	origin   origin  // origin of parts of the text
	operands []field // the file names that it lists, if known
	number   bool    // it is some number
	written  bool    // it comes from a file that the command itself wrote
}

// then returns the flow of two commands in sequence.
func (f flow) then(g flow) flow {
	out := flow{
		piped: f.piped || g.piped, known: f.known && g.known, text: f.text,
		origin: f.origin | g.origin, number: f.number && g.text == "" ||
			g.number && f.text == "" && !f.piped, written: f.written ||
			g.written, operands: append(slices.Clip(f.operands), g.operands...),
	}
	if len(f.text)+len(g.text) > maxText {
		out.known = false
	} else {
		if f.other != "" || g.other != "" {
			out.other = cmp.Or(f.other, f.text) + cmp.Or(g.other, g.text)
		}
		out.text += g.text
	}
	return out
}

func (st *state) clone() *state {
	c := *st
	c.dirs, c.pending, c.vars = slices.Clone(st.dirs), slices.Clone(st.pending), maps.Clone(st.vars)
	return &c
}

// fork returns the state of a subshell, which starts without traps.
func (st *state) fork() *state {
	c := st.clone()
	c.traps = nil
	return c
}

// referred returns the name of the variable that an assignment to name sets.
func (st *state) referred(name string) string {
	if to := st.vars[name].refers; to != "" {
		return to
	}
	return name
}

// setVariable gives a named variable a value. If the name has a subscript, the value is unknown, because the walker
// does not know the element.
func (st *state) setVariable(name string, v variable) {
	name, _, element := strings.Cut(name, "[")
	if element {
		v = variable{field: unknownField("")}
	}
	if syntax.ValidName(name) {
		st.vars[st.referred(name)] = v
	}
}

// restoreVariable gives a variable its old value after a command with an assignment, as in NAME=value COMMAND. given
// has the values of the assignment. If the command itself set another value, that value may last. In some shells the
// assignments before a special builtin last, too: lasts is true for such a builtin.
func (st *state) restoreVariable(name string, before *state, given map[string]variable, lasts bool) {
	old, had := before.vars[name]
	now, has := st.vars[name]
	switch {
	case !has || !now.same(given[name]), lasts && !(had && old.same(now)):
		st.vars[name] = variable{field: unknownField("")}
	case had:
		st.vars[name] = old
	default:
		delete(st.vars, name)
	}
}

// child returns the state of a new process, which knows only exported variables.
func (st *state) child(args []field) *state {
	c := st.clone()
	c.args, c.errexit, c.traps = positional(args), false, nil
	maps.DeleteFunc(c.vars, func(name string, v variable) bool { return !v.exported })
	return c
}

// joinStates sets st to the knowledge that a and b share.
func (st *state) joinStates(a, b *state) {
	dirs, pending := slices.Clone(a.dirs), slices.Clone(a.pending)
	for _, d := range b.dirs {
		dirs = with(dirs, d)
	}
	for _, d := range b.pending {
		pending = with(pending, d)
	}
	vars := maps.Clone(b.vars)
	maps.Copy(vars, a.vars)
	for name, x := range vars {
		_, inA := a.vars[name]
		if y, inB := b.vars[name]; !inA || !inB || !x.same(y) {
			vars[name] = variable{field: unknownField("")}
		}
	}
	args := a.args
	if (a.args == nil) != (b.args == nil) || !sameFields(a.args, b.args) {
		args = nil
	}
	traps := a.traps
	for _, t := range b.traps {
		traps = withTrap(traps, t)
	}
	*st = state{
		dirs: dirs, pending: pending, vars: vars, args: args, input: either(a.input,
			b.input), traps: traps, errexit: a.errexit && b.errexit,
	}
}

// either returns the flow of an input that may be a or b.
func either(a, b *flow) *flow {
	if a == b {
		return a
	}
	out := flow{piped: true}
	for _, f := range []*flow{a, b} {
		if f != nil {
			out = out.then(*f)
		}
	}
	return &out
}

// with adds a directory unless it is in the list.
func with(dirs []dir, d dir) []dir {
	for i, have := range dirs {
		if have.path == d.path {
			dirs[i].doubt = have.doubt && d.doubt
			return dirs
		}
	}
	return append(dirs, d)
}

// endStatement ends a statement without a following && or ||: the next statement runs even if its cd failed.
func (st *state) endStatement() {
	if !st.errexit {
		for _, d := range st.pending {
			st.dirs = with(st.dirs, dir{d.path, true})
		}
	}
	st.pending = nil
}

// chdir moves to the target of a cd with this operand.
func (st *state) chdir(to field) {
	var dirs []dir
	for _, d := range st.dirs {
		switch {
		case to.vague || to.glob || (d.path == "" && !path.IsAbs(to.text)):
			dirs = with(dirs, dir{"", d.doubt})
		default:
			dirs = with(dirs, dir{resolve(d.path, to.text), d.doubt})
		}
	}
	st.pending = append(st.pending, st.dirs...)
	st.dirs = dirs
}

// resolve returns the clean absolute path of target, seen from dir.
func resolve(dir, target string) string {
	if path.IsAbs(target) {
		return slashPath(target)
	}
	return path.Join(dir, target)
}

// trap judges trap ACTION SIGNAL…. The action may run at any later time, and at the end.
func (w *walker) trap(args []field, st *state) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	later := st.fork()
	w.walkNested(args[0].text, args[0], later, flow{})
	st.joinStates(st.clone(), later)
	st.traps = withTrap(st.traps, args[0])
}

// withTrap adds an action unless it is in the list.
func withTrap(traps []field, t field) []field {
	if slices.ContainsFunc(traps, func(have field) bool { return have.text == t.text }) {
		return traps
	}
	return append(slices.Clip(traps), t)
}

// judgeTraps judges the traps at the end of a list of statements, because the shell may end there.
func (w *walker) judgeTraps(st *state) {
	for _, t := range st.traps {
		w.walkNested(t.text, t, st.fork(), flow{})
	}
}

// maxFunctions is the number of definitions of one name that are followed.
const maxFunctions = 16

// function is one definition of a name in the script: a function or an alias.
type function struct {
	body *syntax.Stmt
	text string // the script around it
}

// declareFunction remembers a function and judges the parts of its body that do not depend on the arguments. The other
// parts are judged at each call.
func (w *walker) declareFunction(c *syntax.FuncDecl, st *state) {
	if c.Name == nil || c.Body == nil {
		return
	}
	name := c.Name.Value
	if multiplies(name, c.Body) {
		w.addFinding(Refused, whyForkBomb.With(w.source(c)), "bomb")
	}
	fn := function{c.Body, w.text}
	w.defineName(name, fn)
	inner := st.clone()
	inner.args = nil
	w.declaring++
	w.enterFunction(fn, inner, flow{})
	w.declaring--
}

// defineName adds a definition of a name. A definition is never removed, because branches, subshells and unset decide
// which one a call reaches.
func (w *walker) defineName(name string, fn function) {
	have := w.funcs[name]
	if slices.Contains(have, fn) {
		return
	}
	if len(have) == maxFunctions {
		w.askUnknown(whyFunctionMeanings, name)
		return
	}
	w.funcs[name] = append(have, fn)
}

// alias defines a name as the start of a command.
func (w *walker) alias(name, text string) {
	if list, read, err := parse(text + ` "$@"`); err == nil && len(list) == 1 {
		w.defineName(name, function{list[0], read})
	}
}

// callFunctions walks every definition that a call may reach. Afterwards st has the knowledge that all of them share.
func (w *walker) callFunctions(fs []field, st *state, in flow) flow {
	var out flow
	var after []*state
	for i, fn := range slices.Clone(w.funcs[fs[0].text]) {
		inner := st.clone()
		inner.args = positional(fs[1:])
		o := w.enterFunction(fn, inner, in)
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
		st.joinStates(st.clone(), other)
	}
	return out
}

// enterFunction walks the body of a function, unless that body is already being walked.
func (w *walker) enterFunction(fn function, st *state, in flow) flow {
	if w.active[fn.body] || w.steps > maxSteps {
		return flow{}
	}
	outer := w.text
	w.active[fn.body], w.text = true, fn.text
	out := w.walkStmt(fn.body, st, in)
	st.endStatement()
	w.active[fn.body], w.text = false, outer
	return out
}

// multiplies reports whether a function starts itself in a pipe or in the background.
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

// mentions reports whether the statement contains a command of this name.
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
