package shell

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// unknownText stands in a field for the parts that the text of the command does not determine. If a shell reads it
// again, as in sh -c "rm $X", it is unknown again.
const unknownText = "${_perlica_unknown}"

// field is one word of a simple command after expansion.
type field struct {
	text   string // its value; unknown parts as unknownText
	pat    string // the value as a pattern, if glob is set
	src    string // as written
	glob   bool   // the shell replaces it by file names
	vague  bool   // part of its value is unknown
	origin origin // origin of parts of its value
	listed bool   // an unknown name that xargs reads
	loose  bool   // may become several words, or none
	unsure bool   // empty if a variable of the environment is unset
	swept  bool   // stands for everything below it, in the output of another command
	folder bool   // an empty directory of this name is made
	made   bool   // a known program makes this file from others
	out    *flow  // output of the <(…) that it names
	sink   *sink  // process of the >(…) that it names
}

// literal returns the field of a word that stands for itself.
func literal(s string) field { return field{text: s, src: s} }

// unknownField returns the field of a word with an unknown value.
func unknownField(src string) field { return field{text: unknownText, src: src, vague: true} }

// someNumber returns the field of a word that is an unknown number.
func someNumber(src string) field { return field{text: "0", pat: "0", src: src, vague: true} }

// run is a part of a word whose characters are all treated in the same way.
type run struct {
	field
	quoted  bool // stays one field, even if empty
	split   bool // cut into fields at the characters of IFS
	between bool // separates two words
}

// fields expands words as a shell would: braces, tilde, known variables, substitutions with a known output, quotes.
func (w *walker) fields(words []*syntax.Word, st *state) []field {
	var out []field
	for _, word := range words {
		if len(out) > maxFields {
			return append(out, unknownField("…"))
		}
		out = append(out, w.expandWord(word, st)...)
	}
	return out
}

func (w *walker) expandWord(word *syntax.Word, st *state) []field {
	left := maxVariants
	var variants [][]syntax.WordPart
	for _, parts := range spreadBraces(word.Parts, &left) {
		variants = append(variants, w.variants(parts, st, &left)...)
	}
	if left < 0 {
		w.walkSubstitutions(word, st)
		return []field{unknownField(w.source(word))}
	}
	w.steps += len(variants) / 4
	var out []field
	for _, parts := range variants {
		out = append(out, assemble(w.cuttable(w.runs(parts, false, st), st), w.separators(st), w.source(word))...)
	}
	return w.connectPipes(out)
}

// scalar expands a word that becomes neither several fields nor file names, such as the right side of an assignment.
func (w *walker) scalar(word *syntax.Word, st *state) field {
	if word == nil {
		return field{}
	}
	runs := w.runs(word.Parts, false, st)
	pattern := false
	for i := range runs {
		runs[i].split, runs[i].quoted, runs[i].between, runs[i].loose = false, true, false, false
		pattern = pattern || runs[i].glob
	}
	fs := assemble(runs, "", w.source(word))
	if len(fs) != 1 {
		return field{}
	}
	// An assignment expands no file names. Only the variable of a loop may hold a pattern.
	fs[0].glob = pattern
	return w.connectPipes(fs)[0]
}

// separators returns the characters at which unquoted expansions are cut.
func (w *walker) separators(st *state) string {
	ifs, _ := w.lookup("IFS", st)
	return ifs.text
}

// cuttable marks the runs as unknown that would be cut at unknown separators.
func (w *walker) cuttable(runs []run, st *state) []run {
	if _, ok := w.lookup("IFS", st); ok {
		return runs
	}
	for i, r := range runs {
		if r.split && r.text != "" {
			runs[i] = vague(false)
			runs[i].origin = r.origin
		}
	}
	return runs
}

// assemble joins runs into fields.
func assemble(runs []run, separators, src string) []field {
	var out []field
	cur, open, spaced := field{src: src}, false, false
	flush := func() {
		if open {
			cur.pat = plainClasses(cur.pat)
			cur.glob = cur.glob || HasMeta(cur.pat)
			out = append(out, cur)
		}
		cur, open = field{src: src}, false
	}
	for _, r := range runs {
		if r.between {
			flush()
			spaced = false
			continue
		}
		if !r.split || r.vague || r.glob {
			open = open || r.quoted || r.text != ""
			r.loose = r.loose || r.split
			cur.appendField(r.field)
			continue
		}
		for _, p := range cutAt(r.text, separators) {
			if p.text != "" {
				open = true
				cur.appendField(field{text: p.text, pat: p.text, origin: r.origin, swept: r.swept, unsure: r.unsure})
			}
			if p.end != "" {
				// White space around another separator does not separate once more.
				space := strings.Contains(" \t\n", p.end)
				open = open || !space && !spaced
				spaced = space && (open || spaced)
				flush()
			}
		}
	}
	flush()
	return out
}

// piece is a part of a text, up to the separator that ends it.
type piece struct{ text, end string }

// cutAt splits at any separator and keeps the empty pieces.
func cutAt(s, separators string) (out []piece) {
	for {
		i := strings.IndexAny(s, separators)
		if i < 0 {
			return append(out, piece{text: s})
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		out = append(out, piece{s[:i], s[i : i+n]})
		s = s[i+n:]
	}
}

// appendField appends to a value. A value that is longer than every command line becomes unknown.
func (f *field) appendField(g field) {
	if len(f.text)+len(g.text) > maxText {
		f.text, f.pat, f.vague = unknownText, escape(unknownText), true
	} else {
		f.text += g.text
		f.pat += g.pat
	}
	f.glob = f.glob || g.glob
	f.vague = f.vague || g.vague
	f.origin |= g.origin
	f.swept = f.swept || g.swept
	f.unsure = f.unsure || g.unsure
	f.loose = f.loose || g.loose
	if g.out != nil {
		f.out = g.out
	}
	if g.sink != nil {
		f.sink = g.sink
	}
}

// runs expands the parts of a word.
func (w *walker) runs(parts []syntax.WordPart, quoted bool, st *state) []run {
	var out []run
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			// Bash expands of=~/x, too.
			if head, tail, ok := strings.Cut(p.Value, "=~"); ok && i == 0 && !quoted && syntax.ValidName(head) {
				if home, rest, ok := w.expandTilde("~"+tail, true, i+1 < len(parts), st); ok {
					out = append(out, litRun(head+"=", quoted), home, litRun(rest, quoted))
					continue
				}
			}
			if home, rest, ok := w.expandTilde(p.Value, i == 0 && !quoted, i+1 < len(parts), st); ok {
				out = append(out, home)
				out = append(out, litRun(rest, quoted))
				continue
			}
			out = append(out, litRun(p.Value, quoted))
		case *syntax.SglQuoted:
			text := p.Value
			if p.Dollar {
				text = unquote(text)
			}
			out = append(out, run{field: field{text: text, pat: escape(text)}, quoted: true})
		case *syntax.DblQuoted:
			inner := w.runs(p.Parts, true, st)
			if len(inner) > 0 || len(p.Parts) == 0 { // otherwise it is "$@" without parameters
				out = append(out, run{quoted: true})
			}
			out = append(out, inner...)
		case *syntax.ParamExp:
			out = append(out, w.expandParam(p, quoted, st)...)
		default:
			out = append(out, w.expandSpecial(part, quoted, st))
		}
	}
	return out
}

// expandSpecial expands the parts that are neither text nor a variable.
func (w *walker) expandSpecial(part syntax.WordPart, quoted bool, st *state) run {
	switch p := part.(type) {
	case *syntax.CmdSubst:
		out := w.walkStmts(p.Stmts, st.fork(), flow{})
		if out.known {
			text := strings.ReplaceAll(out.text, "\x00", "") // bash drops them
			r := known(strings.TrimRight(text, "\n"), quoted)
			r.origin, r.vague = out.origin, out.other != ""
			return r
		}
		r := vague(quoted)
		if out.number {
			r.field = someNumber("")
		}
		r.origin = out.origin
		return r
	case *syntax.ProcSubst:
		return run{field: w.namePipe(p, st)}
	case *syntax.ArithmExp:
		// No number names a directory that matters.
		w.judgeArithmeticIn(p.X, st)
		return known("0", true)
	case *syntax.ExtGlob:
		return run{field: field{text: "*", pat: "*", glob: true}}
	}
	w.walkSubstitutions(part, st)
	return vague(quoted)
}

// known returns the run of an expansion with a known value.
func known(text string, quoted bool) run {
	r := run{field: field{text: text, pat: text}, quoted: quoted, split: !quoted}
	if quoted {
		r.pat = escape(text)
	}
	return r
}

// vague returns the run of an expansion with an unknown value.
func vague(quoted bool) run {
	return run{field: field{text: unknownText, pat: escape(unknownText), vague: true}, quoted: quoted, split: !quoted}
}

// litRun removes the backslashes from literal text.
func litRun(s string, quoted bool) run {
	var text, pat strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		escaped := c == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0)
		if escaped {
			i++
			c = s[i]
			if c == '\n' {
				continue
			}
		}
		text.WriteByte(c)
		if escaped || quoted || c == '{' || c == '}' {
			pat.WriteString(escape(string([]byte{c})))
		} else {
			pat.WriteByte(c)
		}
	}
	return run{field: field{text: text.String(), pat: pat.String()}, quoted: quoted}
}

// expandTilde expands ~, ~+, ~- and ~name at the start of a word.
func (w *walker) expandTilde(lit string, first, more bool, st *state) (home run, rest string, ok bool) {
	if !first || !strings.HasPrefix(lit, "~") {
		return run{}, "", false
	}
	name, rest := lit[1:], ""
	if i := strings.IndexByte(name, '/'); i >= 0 {
		name, rest = name[:i], name[i:]
	} else if more {
		return run{}, "", false
	}
	if strings.ContainsAny(name, `\*?[`) {
		return run{}, "", false
	}
	home = vague(true)
	switch {
	case name == "" || name == "+":
		key := "HOME"
		if name == "+" {
			key = "PWD"
		}
		if v, ok := w.lookup(key, st); ok {
			home = run{field: v, quoted: true}
			home.pat = escape(v.text)
		}
	case name == "root":
		home = known("/root", true)
	case name != "-" && (name[0] < '0' || name[0] > '9'):
		home = known("/home/"+name, true)
	}
	return home, rest, true
}
