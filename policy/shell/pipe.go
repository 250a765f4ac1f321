package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A sink is what >(…) starts: it reads what is written to its name.
type sink struct {
	list []*syntax.Stmt
	text string // the script in which it stands
	st   *state // of the shell that started it
	read bool   // what is written to it was judged
}

// pipeName starts the name of each <(…) and >(…), by which it is known wherever the name goes: into a
// variable, a parameter, or a text that is read again.
const pipeName = "/dev/fd/_perlica_"

// pipe is the name of a process substitution.
func (w *walker) pipe(p *syntax.ProcSubst, st *state) field {
	f := literal(pipeName + strconv.Itoa(len(w.pipes)))
	f.pat, f.src = f.text, ""
	if p.Op == syntax.CmdOut {
		f.sink = &sink{list: p.Stmts, text: w.text, st: st.fork()}
		w.sinks = append(w.sinks, f.sink)
	} else {
		out := w.stmts(p.Stmts, st.fork(), flow{})
		out.piped = true
		f.out, f.origin = &out, out.origin
	}
	w.pipes[f.text] = f
	return f
}

// connected gives words that are names of process substitutions what stands behind these.
func (w *walker) connected(fs []field) []field {
	for i, f := range fs {
		if p, ok := w.pipes[f.text]; ok {
			fs[i].out, fs[i].sink, fs[i].origin = p.out, p.sink, f.origin|p.origin
		}
	}
	return fs
}

// drain judges what reads from a name of >(…), given what is written there.
func (w *walker) drain(s *sink, in flow) {
	s.read = true
	if w.depth++; w.depth > maxDepth {
		w.unknown("nested too deeply to be judged")
	} else {
		outer := w.text
		w.text = s.text
		w.stmts(s.list, s.st.clone(), in)
		w.text = outer
	}
	w.depth--
}

// idle judges the sinks of a statement to which nothing is written, all behind the first so many:
// they are started in any case.
func (w *walker) idle(before int) {
	for _, s := range slices.Clone(w.sinks[before:]) {
		if !s.read {
			w.drain(s, flow{})
		}
	}
	w.sinks = w.sinks[:before]
}

// handed is the text of a script that the command itself hands to an interpreter: what it reads, if
// the name of the script says so, or what stands behind <(…).
func handed(f field, in flow) (script field, ok bool) {
	if f.out != nil {
		in = *f.out
	} else if !isStdin(f.text) {
		return field{}, false
	}
	return field{text: in.text, pat: in.text, src: f.src, vague: !in.known, origin: in.origin}, in.text != ""
}

// descriptor says whether a path is that of an open file, whatever it was opened for.
func descriptor(target string) bool {
	return strings.HasPrefix(target, "/dev/fd/") || strings.HasPrefix(target, "/proc/") && strings.Contains(target, "/fd/")
}

// opened is what can be read by way of a redirection, if it is one to read.
func (w *walker) opened(r *syntax.Redirect, st *state) (in flow, ok bool) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return w.heredoc(r, st), true
	case syntax.WordHdoc:
		return textFlow(w.scalar(r.Word, st)), true
	case syntax.RdrIn, syntax.DplIn:
		for _, f := range w.expand(r.Word, st) {
			if in = w.fileFlow(f, st); f.out == nil && !f.vague && w.outside(f, st) {
				in.origin |= elsewhere
			}
		}
		return in, true
	}
	return flow{}, false
}

// input says whether a redirection is one of the standard input.
func input(r *syntax.Redirect) bool {
	reads := []syntax.RedirOperator{syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.RdrIn, syntax.DplIn}
	return slices.Contains(reads, r.Op) && (r.N == nil || r.N.Value == "0")
}

// heredoc is the text of a here-document. A quoted delimiter keeps it as it stands.
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

// textFlow is a flow of this text. What is unknown in it stays so when read again.
func textFlow(f field) flow {
	return flow{piped: true, known: !f.vague, text: f.text, origin: f.origin}
}

// fileFlow is what comes out of a file.
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
		// Another program may have changed the file since, so that this is not known.
		have := w.written[target]
		out.text += have.text
		out.operands = append(out.operands, have.operands...)
		out.written = out.written || have.known
	}
	return out
}
