package shell

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A state is what is known of a shell at one point of its script.
type state struct {
	dirs    []dir // where it may be
	pending []dir // where it is instead, should the cd just met have failed
	vars    map[string]variable
	args    []field // positional parameters; nil if unknown
	input   *flow   // what exec made the standard input
	traps   []field // what the shell runs when it ends, or when it is told to
	keeps   bool    // exec was called without a command, so that its redirections last
	far     bool    // it is a shell of another machine
	errexit bool    // set -e: after a cd that failed nothing follows
}

// A dir is a directory the shell may be in. An empty path is an unknown one. Doubt
// marks a directory it is in only if a cd fails.
type dir struct {
	path  string
	doubt bool
}

// A flow is what one command of a pipe hands to the next.
type flow struct {
	piped    bool    // there is one, not the terminal
	known    bool    // text is all of it
	text     string  // its text
	other    string  // the same as a shell writes it whose echo reads escapes, if that differs
	origin   origin  // where part of it comes from
	operands []field // the file names it lists, where they are known
	number   bool    // it is a number, whichever
	written  bool    // it comes out of a file that the command itself wrote
}

// then is the flow of two commands after each other.
func (f flow) then(g flow) flow {
	out := flow{
		piped: f.piped || g.piped, known: f.known && g.known, text: f.text,
		origin: f.origin | g.origin, number: f.number && g.text == "" || g.number && f.text == "" && !f.piped, written: f.written || g.written, operands: append(slices.Clip(f.operands), g.operands...),
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

// fork is the state of a subshell, which runs no traps but its own.
func (st *state) fork() *state {
	c := st.clone()
	c.traps = nil
	return c
}

// referred is the name of the variable that an assignment to this name sets.
func (st *state) referred(name string) string {
	if to := st.vars[name].refers; to != "" {
		return to
	}
	return name
}

// set gives a variable a value that a builtin was told by name; of one element it is unknown
// which that is.
func (st *state) set(name string, v variable) {
	name, _, element := strings.Cut(name, "[")
	if element {
		v = variable{field: unknownField("")}
	}
	if syntax.ValidName(name) {
		st.vars[st.referred(name)] = v
	}
}

// restore gives a variable that was set for one command, as in NAME=value COMMAND, the value back
// that it had before; given are the values for the command. What the command itself set may last,
// and so does in some shells all that is set for a special builtin; lasts says that it may.
func (st *state) restore(name string, before *state, given map[string]variable, lasts bool) {
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

// child is the state of a new process: only exported variables are known there.
func (st *state) child(args []field) *state {
	c := st.clone()
	c.args, c.errexit, c.traps = positional(args), false, nil
	maps.DeleteFunc(c.vars, func(name string, v variable) bool { return !v.exported })
	return c
}

// join makes st what holds in both a and b.
func (st *state) join(a, b *state) {
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
		dirs: dirs, pending: pending, vars: vars, args: args, input: either(a.input, b.input), traps: traps, errexit: a.errexit && b.errexit,
	}
}

// either is what can be read where it is open which of two that is.
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

// with adds a directory unless it is there already.
func with(dirs []dir, d dir) []dir {
	for i, have := range dirs {
		if have.path == d.path {
			dirs[i].doubt = have.doubt && d.doubt
			return dirs
		}
	}
	return append(dirs, d)
}

// endStatement ends a statement that nothing is chained to: the next one runs
// whether or not its cd worked.
func (st *state) endStatement() {
	if !st.errexit {
		for _, d := range st.pending {
			st.dirs = with(st.dirs, dir{d.path, true})
		}
	}
	st.pending = nil
}

// chdir moves to where a cd with this operand leads.
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

// resolve is the clean absolute path of target seen from dir.
func resolve(dir, target string) string {
	if path.IsAbs(target) {
		return slashPath(target)
	}
	return path.Join(dir, target)
}

// trap judges trap ACTION SIGNAL…: the action may run at any time from now on, and at the end.
func (w *walker) trap(args []field, st *state) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	later := st.fork()
	w.nested(args[0].text, args[0], later, flow{})
	st.join(st.clone(), later)
	st.traps = withTrap(st.traps, args[0])
}

// withTrap adds an action unless it is there already.
func withTrap(traps []field, t field) []field {
	if slices.ContainsFunc(traps, func(have field) bool { return have.text == t.text }) {
		return traps
	}
	return append(slices.Clip(traps), t)
}

// finish judges the traps of a shell where a list of statements ends: the shell may end there, too.
func (w *walker) finish(st *state) {
	for _, t := range st.traps {
		w.nested(t.text, t, st.fork(), flow{})
	}
}

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

// enterAll walks all that a call of this name may run, and leaves in st what
// holds after each of them.
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
	st.endStatement()
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
