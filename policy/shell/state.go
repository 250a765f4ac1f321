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
	dirs    []dir // directories in which the shell may be
	pending []dir // directories in which the shell is if the last cd failed
	vars    map[string]variable
	args    []field // positional parameters; nil if unknown
	input   *flow   // standard input that exec < FILE has set, or nil
	traps   []field // commands that the shell runs at its end or on a signal
	keeps   bool    // exec without a command has just run, so its redirections stay
	far     bool    // the shell runs on another machine
	errexit bool    // set -e is on: the shell ends at a failed cd
	nested  bool    // the agent's shell has started this shell, for example sh, which may expand no braces
}

// dir is a directory in which the shell may be. An empty path means an unknown directory. If doubt is true, the shell
// is in this directory only if an earlier cd failed.
type dir struct {
	path  string
	doubt bool
}

// flow is the output of a command, which may be the input of the next command of a pipe.
type flow struct {
	piped    bool    // the text comes from a pipe or a file, not from the terminal
	known    bool    // text is the whole text
	text     string  // the known parts of the text
	other    string  // the text in a shell whose echo reads escapes or that expands no braces, if it differs
	origin   origin  // origins of the parts of the text
	operands []field // the file names in the text, if it is a known list
	number   bool    // the text is an unknown number
	written  bool    // the text comes from a file that the script itself wrote
}

// then returns the output of two commands in sequence, the flow f followed by the flow g.
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

// referred returns the name of the variable that an assignment to name sets. After declare -n a=b, an assignment to
// a sets b.
func (st *state) referred(name string) string {
	if to := st.vars[name].refers; to != "" {
		return to
	}
	return name
}

// setVariable sets the variable with this name to v. For a name with a subscript, such as a[1], it makes the whole
// variable unknown.
func (st *state) setVariable(name string, v variable) {
	name, _, element := strings.Cut(name, "[")
	if element {
		v = variable{field: unknownField("")}
	}
	if syntax.ValidName(name) {
		st.vars[st.referred(name)] = v
	}
}

// restoreVariable restores a variable after a command with an assignment, as in NAME=value COMMAND. The parameter
// "before" has the old value, and "given" has the assigned value. If COMMAND has set the variable itself, the value
// becomes unknown. The parameter "lasts" says that COMMAND is a special builtin. In some shells an assignment before
// such a builtin stays, so the value becomes unknown, too.
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

// child returns the state of a new shell process. It gets only the exported variables, and args as positional
// parameters.
func (st *state) child(args []field) *state {
	c := st.clone()
	c.args, c.errexit, c.traps, c.nested = positional(args), false, nil, true
	maps.DeleteFunc(c.vars, func(name string, v variable) bool { return !v.exported })
	return c
}

// joinStates sets st to the state of a shell that may be in state a or in state b. A variable that differs becomes
// unknown.
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

// either returns a flow for an input that may be the flow a or the flow b. If they differ, the text is unknown.
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

// with adds the directory d to the list, unless the list already has its path.
func with(dirs []dir, d dir) []dir {
	for i, have := range dirs {
		if have.path == d.path {
			dirs[i].doubt = have.doubt && d.doubt
			return dirs
		}
	}
	return append(dirs, d)
}

// endStatement ends a statement that no && or || follows. The next statement also runs if a cd in this statement
// failed, unless set -e is on.
func (st *state) endStatement() {
	if !st.errexit {
		for _, d := range st.pending {
			st.dirs = with(st.dirs, dir{d.path, true})
		}
	}
	st.pending = nil
}

// chdir updates the directories of the shell for a cd. The parameter "to" is its operand.
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

// trap judges the builtin trap ACTION SIGNAL…. The action may run at any later time, and at the end of the script.
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

// withTrap adds the action t to the list, unless the list already has it.
func withTrap(traps []field, t field) []field {
	if slices.ContainsFunc(traps, func(have field) bool { return have.text == t.text }) {
		return traps
	}
	return append(slices.Clip(traps), t)
}

// judgeTraps judges the actions of trap at the end of a list of statements, because the shell may end there and run
// them.
func (w *walker) judgeTraps(st *state) {
	for _, t := range st.traps {
		w.walkNested(t.text, t, st.fork(), flow{})
	}
}

// maxFunctions is the maximum number of definitions of one function that the walker follows.
const maxFunctions = 16

// function is one definition of a function or an alias in the script.
type function struct {
	body *syntax.Stmt
	text string // the script around it
}

// declareFunction stores a function and judges its body without arguments. At the declaration it asks nothing about
// unknown values, because each call of the function judges the body again with arguments.
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

// defineName adds a definition of a name. The walker keeps all definitions of a name, because branches, subshells and
// unset decide about the definition that a call reaches.
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

// alias defines a name as an alias for text, the start of a command.
func (w *walker) alias(name, text string) {
	if list, read, err := parse(text + ` "$@"`); err == nil && len(list) == 1 {
		w.defineName(name, function{list[0], read})
	}
}

// callFunctions walks every definition of the function that fs calls. Afterwards st joins their results, see
// joinStates.
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

// enterFunction walks the body of a function. It does nothing if the function calls itself.
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

// multiplies reports whether a function starts itself in a pipe or in the background, as a fork bomb does.
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
