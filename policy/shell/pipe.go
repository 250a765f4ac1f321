package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// sink is the process that >(…) starts. It reads the text that is written to its name.
type sink struct {
	list []*syntax.Stmt
	text string // the script around it
	st   *state // state of the shell that started it
	read bool   // the text written to it was judged
}

// pipeName begins the name of each <(…) and >(…). The walker recognizes the name in a variable, in a parameter and in
// a text that is read again.
const pipeName = "/dev/fd/_perlica_"

// namePipe returns the name of a process substitution.
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

// connectPipes adds the process substitution to each word that is the name of one.
func (w *walker) connectPipes(fs []field) []field {
	for i, f := range fs {
		if p, ok := w.pipes[f.text]; ok {
			fs[i].out, fs[i].sink, fs[i].origin = p.out, p.sink, f.origin|p.origin
		}
	}
	return fs
}

// judgeSink judges the process of >(…) with the given input.
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

// judgeIdleSinks judges the sinks that a statement started and did not write to. before is the number of older sinks.
func (w *walker) judgeIdleSinks(before int) {
	for _, s := range slices.Clone(w.sinks[before:]) {
		if !s.read {
			w.judgeSink(s, flow{})
		}
	}
	w.sinks = w.sinks[:before]
}

// handed returns the text of a script that the command itself passes to an interpreter: its input, or the output of
// <(…).
func handed(f field, in flow) (script field, ok bool) {
	if f.out != nil {
		in = *f.out
	} else if !isStdin(f.text) {
		return field{}, false
	}
	return field{text: in.text, pat: in.text, src: f.src, vague: !in.known, origin: in.origin}, in.text != ""
}

// descriptor reports whether a path names an open file.
func descriptor(target string) bool {
	return strings.HasPrefix(target, "/dev/fd/") || strings.HasPrefix(target, "/proc/") &&
		strings.Contains(target, "/fd/")
}

// openInput returns the flow that an input redirection opens. ok is false for other redirections.
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

// input reports whether a redirection changes the standard input.
func input(r *syntax.Redirect) bool {
	reads := []syntax.RedirOperator{syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.RdrIn, syntax.DplIn}
	return slices.Contains(reads, r.Op) && (r.N == nil || r.N.Value == "0")
}

// heredoc returns the text of a here-document. A quoted delimiter prevents expansions.
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

// textFlow returns a flow with this text. Unknown parts stay unknown if the text is read again.
func textFlow(f field) flow {
	return flow{piped: true, known: !f.vague, text: f.text, origin: f.origin}
}

// fileFlow returns the content of a file.
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
		// Another program may have changed the file since then, so the content is not certain.
		have := w.written[target]
		out.text += have.text
		out.operands = append(out.operands, have.operands...)
		out.written = out.written || have.known
	}
	return out
}
