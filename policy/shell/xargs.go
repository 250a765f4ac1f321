package shell

import "strings"

const xargsValued = "aEILnPsdJRSj --arg-file --delimiter --max-lines --max-args --max-procs --max-chars --replace --process-slot-var --jobs"

// xargs judges the command that gets what is read as further words.
func (w *walker) xargs(name string, fs []field, st *state, in flow) flow {
	opts, inner := options(fs[1:], xargsValued, true)
	if o, ok := find(opts, "-a", "--arg-file"); ok && o.value != nil {
		in = w.fileFlow(*o.value, st)
	}
	read := in.operands
	switch {
	case in.known && in.piped:
		read = append(read, words(in.text, opts)...)
	case len(read) == 0:
		f := unknownField("what it reads")
		f.origin, f.listed = in.origin, in.text == "" || in.written
		read = []field{f}
		if in.written {
			read = append(words(in.text, opts), f)
		}
	}
	if name == "parallel" {
		inner, read = splitParallel(inner, read)
	}
	mark := "{}"
	if o, ok := find(opts, "-I", "-J", "--replace"); ok && o.value != nil {
		mark = o.value.text
	} else if name == "xargs" && !has(opts, "-i") {
		mark = ""
	}
	if len(inner) == 0 {
		if name == "parallel" {
			f := joined(read)
			w.nested(f.text, f, st.child(nil), flow{})
		}
		return flow{}
	}
	if mark != "" && len(read) > 1 && len(read) <= maxSuffixes {
		for _, f := range read { // one command for each
			w.argv(substitute(inner, mark, []field{f}), st.clone(), flow{})
		}
	}
	command := substitute(inner, mark, read)
	if name == "parallel" && strings.ContainsAny(inner[0].text, " \t") {
		text := joined(command)
		w.nested(text.text, text, st.child(nil), flow{})
		return flow{}
	}
	out := w.argv(command, st.clone(), flow{})
	out.known, out.origin = false, out.origin|in.origin
	return out
}

// words are what xargs makes of a text that is known.
func words(text string, opts []option) []field {
	var out []field
	delimiter := ""
	if o, ok := find(opts, "-d", "--delimiter"); ok && o.value != nil {
		delimiter = unquoteANSI(o.value.text)
	}
	if has(opts, "-I", "-i", "-J", "--replace") {
		text, delimiter = strings.TrimRight(text, "\n"), "\n"
	}
	if has(opts, "-0", "--null") {
		delimiter = "\x00"
	}
	if delimiter != "" {
		for word := range strings.SplitSeq(strings.TrimSuffix(text, delimiter), delimiter) {
			out = append(out, literal(word))
		}
		return out
	}
	for word := range strings.FieldsSeq(strings.Trim(text, `'"`)) {
		out = append(out, literal(strings.Trim(word, `'"\`)))
	}
	return out
}

// splitParallel takes apart "command ::: words".
func splitParallel(words, read []field) (inner, operands []field) {
	for i, f := range words {
		if strings.HasPrefix(f.text, ":::") {
			return words[:i], words[i+1:]
		}
	}
	return words, read
}

// substitute puts the operands where the mark stands, else at the end. A word that
// holds more than the mark is repeated for each of them.
func substitute(words []field, mark string, operands []field) []field {
	var out []field
	placed, total := false, 0
	for _, f := range words {
		if mark == "" || !strings.Contains(f.text, mark) {
			out = append(out, f)
			continue
		}
		placed = true
		for _, o := range operands {
			total += len(o.text)
			if len(out) > maxFields || total > 8*maxText || strings.Count(f.text, mark)*len(o.text) > maxText {
				return append(out, unknownField(f.src))
			}
			g := f
			g.text = strings.ReplaceAll(f.text, mark, o.text)
			g.pat = substituted(f, mark, o)
			g.vague, g.glob, g.listed = f.vague || o.vague, f.glob || o.glob, o.listed
			g.swept, g.origin = o.swept, f.origin|o.origin
			out = append(out, g)
		}
	}
	if !placed {
		out = append(out, operands...)
	}
	return out
}

// substituted is the pattern of a word in which the mark is replaced. A mark that was
// written as plain text stands in the pattern with its braces quoted.
func substituted(f field, mark string, o field) string {
	replacement := o.pat
	if !o.glob {
		replacement = escape(o.text)
	}
	if pat := strings.ReplaceAll(f.pat, escape(mark), replacement); pat != f.pat {
		return pat
	}
	return strings.ReplaceAll(f.pat, mark, replacement)
}
