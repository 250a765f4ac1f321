package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walkStmts walks statements in order and returns their output.
func (w *walker) walkStmts(list []*syntax.Stmt, st *state, in flow) flow {
	out, sinks := flow{known: true}, len(w.sinks)
	for _, s := range list {
		out = out.then(w.walkStmt(s, st, in))
		w.judgeIdleSinks(sinks)
		st.endStatement()
	}
	w.judgeTraps(st)
	return out
}

func (w *walker) walkStmt(s *syntax.Stmt, st *state, in flow) flow {
	if w.steps++; w.steps > 2*maxSteps {
		w.askUnknown(whyLong)
		return flow{}
	}
	if s.Background || s.Coprocess {
		st = st.fork()
	}
	if st.input != nil {
		in = *st.input
	}
	given, outer := in, st.input
	in, target := w.walkRedirects(s.Redirs, st, in)
	if in.origin.is(private) && in.origin.is(elsewhere) {
		in.origin |= copied
	}
	if s.Cmd == nil {
		if in.piped && !given.piped {
			return in // a statement such as < FILE in $(< FILE) prints the file
		}
		return flow{known: true}
	}
	redirected := slices.ContainsFunc(s.Redirs, input)
	if redirected {
		st.input = nil // the redirection of the statement wins over an earlier exec < FILE
	}
	out := w.walkCommand(s.Cmd, st, in)
	if redirected && st.keeps {
		st.input = &in
	} else if redirected {
		st.input = outer
	}
	st.keeps = false
	if target == nil {
		return out
	}
	if target.sink != nil {
		out.piped = true
		w.judgeSink(target.sink, out)
	} else if target.text != "/dev/stdout" {
		if out.origin.is(copied) && device(slashRaw(target.text)) != sinkDevice {
			w.askBecause(whyCopiesPrivate, target.src)
		}
		w.markOrigin(*target, st, out.origin)
		w.keepText(*target, st, out)
	}
	return flow{known: true}
}

// walkCommand walks one command of any form.
func (w *walker) walkCommand(cmd syntax.Command, st *state, in flow) flow {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		return w.walkCall(c, st, in)
	case *syntax.BinaryCmd:
		return w.walkBinary(c, st, in)
	case *syntax.Subshell:
		return w.walkStmts(c.Stmts, st.fork(), in)
	case *syntax.Block:
		return w.walkStmts(c.Stmts, st, in)
	case *syntax.IfClause:
		return w.walkIf(c, st, in)
	case *syntax.WhileClause:
		return w.walkWhile(c, st, in)
	case *syntax.ForClause:
		return w.walkFor(c, st, in)
	case *syntax.CaseClause:
		return w.walkCase(c, st, in)
	case *syntax.FuncDecl:
		w.declareFunction(c, st)
		return flow{known: true}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return w.walkStmt(c.Stmt, st, in)
		}
	case *syntax.CoprocClause:
		return w.walkCoproc(c, st.fork(), in)
	case *syntax.DeclClause:
		w.integers(c, st)
		w.assignVariables(c.Args, st, c.Variant.Value == "export" || slices.ContainsFunc(c.Args, exports))
		w.references(c, st)
		if !slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool { return a.Name != nil }) {
			return flow{piped: true, origin: private} // without names, declare prints all variables, which may contain keys
		}
	case *syntax.TestClause:
		w.judgeTest(c.X, st)
	default:
		w.judgeArithmeticIn(cmd, st)
		forget(cmd, st)
	}
	return flow{known: true}
}

// walkCoproc walks a command after the word coproc. It parses a simple command again, because the parser takes its
// first word for the name of the coprocess. The parser also takes operands of the form NAME=VALUE for assignments.
func (w *walker) walkCoproc(c *syntax.CoprocClause, st *state, in flow) flow {
	call, simple := c.Stmt.Cmd.(*syntax.CallExpr)
	if !simple {
		return w.walkStmt(c.Stmt, st, in)
	}
	end := c.End().Offset()
	for _, a := range call.Assigns { // an assignment may stand after the words
		end = max(end, a.End().Offset())
	}
	return w.walkScript(w.slice(c.Coproc.Offset()+uint(len("coproc")), end), st, in)
}

// walkSubstitutions walks the command substitutions inside a syntax node that the walker does not expand.
func (w *walker) walkSubstitutions(n syntax.Node, st *state) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch s := n.(type) {
		case *syntax.CmdSubst:
			w.walkStmts(s.Stmts, st.fork(), flow{})
			return false
		case *syntax.ProcSubst:
			w.walkStmts(s.Stmts, st.fork(), flow{})
			return false
		}
		return true
	})
}

// count sets the variable of a loop such as for ((i=0; …)) to 0. The true number does not matter, because no important
// directory has a number as its name.
func count(init syntax.ArithmExpr, st *state) {
	if set, ok := init.(*syntax.BinaryArithm); ok && set.Op == syntax.Assgn {
		if name, ok := set.X.(*syntax.Word); ok && syntax.ValidName(name.Lit()) {
			st.vars[name.Lit()] = variable{field: literal("0")}
		}
	}
}

// forget sets the variables in arithmetic to an unknown number, because the arithmetic may have changed them.
func forget(n syntax.Node, st *state) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if lit, ok := n.(*syntax.Lit); ok {
			if _, had := st.vars[lit.Value]; had {
				st.vars[lit.Value] = variable{field: someNumber("")}
			}
		}
		return true
	})
}

// references records the variables that declare -n makes references to other variables.
func (w *walker) references(c *syntax.DeclClause, st *state) {
	named := c.Variant.Value == "nameref"
	for _, a := range c.Args {
		if a.Naked && a.Name == nil && a.Value != nil && strings.HasPrefix(a.Value.Lit(), "-") &&
			strings.Contains(a.Value.Lit(), "n") {
			named = true
		}
		if named && a.Name != nil {
			v := variable{field: unknownField("")}
			if a.Value != nil {
				v.refers = a.Value.Lit()
				w.judgeSubscript(w.scalar(a.Value, st), st)
			}
			st.vars[a.Name.Value] = v
		}
	}
}

func (w *walker) walkBinary(c *syntax.BinaryCmd, st *state, in flow) flow {
	switch c.Op {
	case syntax.AndStmt:
		return w.walkAnd(c, st, in)
	case syntax.OrStmt:
		return w.walkOr(c, st, in)
	}
	out := w.walkStmt(c.X, st.fork(), in)
	out.piped = true
	// Some shells run the last command of a pipe in a subshell, and others in the shell itself. So its changes of the
	// state may stay or not.
	after := st.fork()
	after.input = nil
	out = w.walkStmt(c.Y, after, out)
	after.input = st.input
	st.joinStates(st.clone(), after)
	return out
}

// walkAnd walks X && Y. Y runs only if X has succeeded, so a cd in X has succeeded, too. After the statement, the cd
// may have failed.
func (w *walker) walkAnd(c *syntax.BinaryCmd, st *state, in flow) flow {
	out := w.walkStmt(c.X, st, in)
	failed := st.pending
	st.pending = nil
	out = out.then(w.walkStmt(c.Y, st, in))
	st.pending = append(st.pending, failed...)
	return out
}

// walkOr walks X || Y. Y runs only if X has failed, so a cd in X has failed, too. If Y is exit or return, the next
// statement runs only if X has succeeded.
func (w *walker) walkOr(c *syntax.BinaryCmd, st *state, in flow) flow {
	before := st.clone()
	out := w.walkStmt(c.X, st, in)
	if len(st.pending) > 0 {
		before.dirs = st.pending
		st.pending = nil
	} else {
		before.dirs = st.dirs
	}
	before.vars, before.args = st.vars, st.args
	other := before.clone()
	out = out.then(w.walkStmt(c.Y, other, in))
	if !leaves(c.Y) {
		st.joinStates(st.clone(), other)
	}
	return out
}

// leaves reports whether the statement is exit, return, break or continue, or a block that ends in one of them.
func leaves(s *syntax.Stmt) bool {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) > 0 {
			switch c.Args[0].Lit() {
			case "exit", "return", "break", "continue":
				return true
			}
		}
	case *syntax.Block:
		return len(c.Stmts) > 0 && leaves(c.Stmts[len(c.Stmts)-1])
	}
	return false
}

func (w *walker) walkIf(c *syntax.IfClause, st *state, in flow) flow {
	out := w.walkStmts(c.Cond, st, in)
	yes, no := st.clone(), st.clone()
	out = out.then(w.walkStmts(c.Then, yes, in))
	if c.Else != nil {
		out = out.then(w.walkIf(c.Else, no, in))
	}
	st.joinStates(yes, no)
	out.known = false
	return out
}

// walkWhile walks the body of the loop twice, because the second iteration starts with the changes of the first.
func (w *walker) walkWhile(c *syntax.WhileClause, st *state, in flow) flow {
	var out flow
	for range 2 {
		out = out.then(w.walkStmts(c.Cond, st, in))
		body := st.clone()
		out = out.then(w.walkStmts(c.Do, body, in))
		st.joinStates(st.clone(), body)
		if w.steps > maxSteps {
			break
		}
	}
	out.known = false
	return out
}

func (w *walker) walkFor(c *syntax.ForClause, st *state, in flow) flow {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		w.judgeArithmeticIn(c.Loop, st)
		forget(c.Loop, st)
		if loop, ok := c.Loop.(*syntax.CStyleLoop); ok {
			count(loop.Init, st)
		}
		return w.walkWhile(&syntax.WhileClause{Do: c.Do}, st, in)
	}
	items := w.fields(iter.Items, st)
	if !iter.InPos.IsValid() || len(items) == 0 {
		items = append(items, unknownField(""))
	}
	var out flow
	before := st.clone()
	for i, item := range items {
		if i > 0 && w.steps > maxSteps {
			w.askUnknown(whyLongLoop)
			break
		}
		st.vars[iter.Name.Value] = variable{field: item}
		out = out.then(w.walkStmts(c.Do, st, in))
	}
	st.joinStates(before, st.clone())
	out.known = false
	return out
}

func (w *walker) walkCase(c *syntax.CaseClause, st *state, in flow) flow {
	w.expandWord(c.Word, st)
	out, before := flow{}, st.clone()
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			w.walkSubstitutions(p, st)
		}
		branch := before.clone()
		out = out.then(w.walkStmts(item.Stmts, branch, in))
		st.joinStates(st.clone(), branch)
	}
	return out
}

// walkRedirects judges the files to which redirections write. It returns the standard input of the command, and the
// file of its standard output or nil.
func (w *walker) walkRedirects(list []*syntax.Redirect, st *state, in flow) (flow, *field) {
	var target *field
	for _, r := range list {
		if read, ok := w.openInput(r, st); ok {
			if input(r) {
				in = read
			}
			continue
		}
		for _, f := range w.expandWord(r.Word, st) {
			if r.Op == syntax.DplOut && descriptors().MatchString(f.text) {
				continue
			}
			w.judgeWrite(f, st, deedWrites.With(f.src))
			if r.N == nil || r.N.Value == "1" {
				target = &f
			} else if f.sink != nil {
				w.judgeSink(f.sink, flow{piped: true})
			}
		}
	}
	return in, target
}

// descriptors matches the operands of >& that are descriptors, such as 1 or -, and not file names.
var descriptors = lazily(`^([0-9]+-?|-)$`)

// exports reports whether an argument of declare is an option with the letter x, such as -x or -rx.
func exports(a *syntax.Assign) bool {
	if !a.Naked || a.Name != nil || a.Value == nil {
		return false
	}
	flags := a.Value.Lit()
	return strings.HasPrefix(flags, "-") && strings.Contains(flags, "x")
}
