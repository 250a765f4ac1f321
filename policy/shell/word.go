package shell

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// unknownText is the placeholder in a field for each part with an unknown value. It looks like a variable, and no
// script sets this variable. So the part stays unknown even if a nested shell reads the word, as in sh -c "rm $X".
const unknownText = "${_perlica_unknown}"

// field is one word of a simple command after expansion, with all that is known about the word.
type field struct {
	text   string // the value of the word, with unknownText for each unknown part
	pat    string // the value as a pattern, if glob is set
	src    string // the word as it stands in the script
	glob   bool   // the word is a pattern that the shell replaces by file names
	vague  bool   // at least a part of the value is unknown
	origin origin // origins of the parts of the value
	listed bool   // the word is an unknown file name from the input of xargs
	loose  bool   // the word may become several words, or none
	unsure bool   // the value is empty if a certain variable of the environment is unset
	swept  bool   // the word is a directory in the output of a command, and means everything below it
	folder bool   // the command creates an empty directory of this name
	made   bool   // a known program makes this file from other files
	spread int    // the number of the word in a brace expansion, from 1 on; 0 for another word
	out    *flow  // output of the process substitution <(…) that the word names
	sink   *sink  // process of the process substitution >(…) that the word names
}

// literal returns the field of a word with a known text and without expansions.
func literal(s string) field { return field{text: s, src: s} }

// unknownField returns the field of a word with an unknown value.
func unknownField(src string) field { return field{text: unknownText, src: src, vague: true} }

// someNumber returns the field of a word that is an unknown number.
func someNumber(src string) field { return field{text: "0", pat: "0", src: src, vague: true} }

// run is a part of a word. All its characters have the same quoting and origin.
type run struct {
	field
	quoted  bool // the run makes a field even if its text is empty
	split   bool // the shell cuts the text into fields at the characters of IFS
	between bool // the run separates two words of "$@" or of an array
}

// fields expands words as a shell would. It expands braces, ~, known variables and substitutions with a known output,
// and removes quotes.
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
	spread := spreadBraces(word.Parts, &left)
	for _, parts := range spread {
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
	if len(spread) > 1 {
		for i := range out {
			out[i].spread = i + 1
		}
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
	// An assignment does not expand patterns of file names. The value is a pattern only if the variable of a loop is
	// one.
	fs[0].glob = pattern
	return w.connectPipes(fs)[0]
}

// separators returns the characters at which a shell cuts unquoted expansions into words.
func (w *walker) separators(st *state) string {
	ifs, _ := w.lookup("IFS", st)
	return ifs.text
}

// cuttable is for unknown separators in IFS. Each run that a shell would cut into words becomes unknown.
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
				// White space next to another separator belongs to this separator, and does not make an empty word.
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

// piece is a part of a text, and the separator after it or "".
type piece struct{ text, end string }

// cutAt splits s after each of the separators. It keeps empty pieces.
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

// appendField appends the field g to the field f. A text longer than maxText becomes unknown.
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

// runs expands the parts of a word into runs.
func (w *walker) runs(parts []syntax.WordPart, quoted bool, st *state) []run {
	var out []run
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			// Bash expands the ~ in of=~/x, too.
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
			if len(inner) > 0 || len(p.Parts) == 0 { // otherwise it is "$@" without parameters: no field
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

// expandSpecial expands a part of a word that is neither text nor a variable, such as $(ls).
func (w *walker) expandSpecial(part syntax.WordPart, quoted bool, st *state) run {
	switch p := part.(type) {
	case *syntax.CmdSubst:
		out := w.walkStmts(p.Stmts, st.fork(), flow{})
		if out.known {
			text := strings.ReplaceAll(out.text, "\x00", "") // bash drops zero bytes
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
		// The true number does not matter, because no important directory has a number as its name.
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

// litRun returns the run of a literal text, without the backslashes that escape characters.
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
