package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// sink is a process that >(…) starts. Its standard input is the text that the command writes to the name of the >(…).
type sink struct {
	list []*syntax.Stmt
	text string // the script that contains the >(…)
	st   *state // state of the shell that starts the process
	read bool   // judgeSink has judged the process with its input
}

// pipeName is the prefix of the names that the walker invents for each <(…) and >(…). By this prefix the walker
// recognizes a process substitution even in the value of a variable, in a parameter and in a nested script.
const pipeName = "/dev/fd/_perlica_"

// namePipe returns a field with a new name for a process substitution, and records it. It judges the commands of <(…)
// at once.
func (w *walker) namePipe(p *syntax.ProcSubst, st *state) field {
	f := literal(pipeName + strconv.Itoa(len(w.pipes)))
	f.pat, f.src = f.text, ""
	if p.Op == syntax.CmdOut {
		f.sink = &sink{list: p.Stmts, text: w.text, st: st.fork()}
		w.sinks = append(w.sinks, f.sink)
	} else {
		out := w.walkStmts(p.Stmts, st.fork(), flow{})
		out.piped = true
		f.out, f.origin = &out, out.origin
	}
	w.pipes[f.text] = f
	return f
}

// connectPipes sets the member out or sink of each field with an invented name of a process substitution.
func (w *walker) connectPipes(fs []field) []field {
	for i, f := range fs {
		if p, ok := w.pipes[f.text]; ok {
			fs[i].out, fs[i].sink, fs[i].origin = p.out, p.sink, f.origin|p.origin
		}
	}
	return fs
}

// judgeSink judges the commands of >(…) with the input "in".
func (w *walker) judgeSink(s *sink, in flow) {
	s.read = true
	if w.depth++; w.depth > maxDepth {
		w.askUnknown(whyNested)
	} else {
		outer := w.text
		w.text = s.text
		w.walkStmts(s.list, s.st.clone(), in)
		w.text = outer
	}
	w.depth--
}

// judgeIdleSinks judges each new sink that no command has written to, and forgets the new sinks. The parameter "before"
// is the number of sinks before the statement.
func (w *walker) judgeIdleSinks(before int) {
	for _, s := range slices.Clone(w.sinks[before:]) {
		if !s.read {
			w.judgeSink(s, flow{})
		}
	}
	w.sinks = w.sinks[:before]
}

// handed returns the script that an interpreter reads if its operand f is <(…) or names the standard input. For another
// file it returns false.
func handed(f field, in flow) (script field, ok bool) {
	if f.out != nil {
		in = *f.out
	} else if !isStdin(f.text) {
		return field{}, false
	}
	return field{text: in.text, pat: in.text, src: f.src, vague: !in.known, origin: in.origin}, in.text != ""
}

// descriptor reports whether a path such as /dev/fd/3 names an open file of the process.
func descriptor(target string) bool {
	return strings.HasPrefix(target, "/dev/fd/") || strings.HasPrefix(target, "/proc/") &&
		strings.Contains(target, "/fd/")
}

// openInput returns the text that an input redirection reads. ok is false for output redirections.
func (w *walker) openInput(r *syntax.Redirect, st *state) (in flow, ok bool) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return w.heredoc(r, st), true
	case syntax.WordHdoc:
		return textFlow(w.scalar(r.Word, st)), true
	case syntax.RdrIn, syntax.DplIn:
		for _, f := range w.expandWord(r.Word, st) {
			w.stopRead(f, st)
			if in = w.fileFlow(f, st); f.out == nil && !f.vague && w.outside(f, st) {
				in.origin |= elsewhere
			}
		}
		return in, true
	}
	return flow{}, false
}

// input reports whether a redirection replaces the standard input.
func input(r *syntax.Redirect) bool {
	reads := []syntax.RedirOperator{syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.RdrIn, syntax.DplIn}
	return slices.Contains(reads, r.Op) && (r.N == nil || r.N.Value == "0")
}

// heredoc returns the text of a here-document. It expands the text unless the delimiter is quoted.
func (w *walker) heredoc(r *syntax.Redirect, st *state) flow {
	if r.Hdoc == nil || len(r.Hdoc.Parts) == 0 {
		return flow{piped: true, known: true}
	}
	lit, single := r.Hdoc.Parts[0].(*syntax.Lit)
	if single && len(r.Hdoc.Parts) == 1 && quotedWord(r.Word) {
		return flow{piped: true, known: true, text: lit.Value}
	}
	return textFlow(w.scalar(&syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: r.Hdoc.Parts}}}, st))
}

func quotedWord(word *syntax.Word) bool {
	for _, part := range word.Parts {
		if lit, ok := part.(*syntax.Lit); !ok || strings.Contains(lit.Value, `\`) {
			return true
		}
	}
	return false
}

// textFlow returns a flow with the text of the field f.
func textFlow(f field) flow {
	return flow{piped: true, known: !f.vague, text: f.text, origin: f.origin}
}

// fileFlow returns the content of the file f, with the text that the script has written into it before.
func (w *walker) fileFlow(f field, st *state) flow {
	if f.out != nil {
		out := *f.out
		out.piped = true
		return out
	}
	if f.text == "/dev/null" {
		return flow{piped: true, known: true}
	}
	out := flow{piped: true, origin: w.originOf(f, st)}
	for _, target := range w.targets(f, st) {
		// Another program may have changed the file in the meantime, so the flow is not marked as known.
		have := w.written[target]
		out.text += have.text
		out.operands = append(out.operands, have.operands...)
		out.written = out.written || have.known
	}
	return out
}
