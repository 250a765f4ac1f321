package shell

import (
	"path"
	"slices"
	"strings"
)

// listing judges find and ls. Its result has the listed names as operands, for a following xargs.
func (w *walker) listing(name string, fs []field, st *state) flow {
	if name == "ls" || name == "dir" {
		_, operands := options(fs[1:], "IwT", false)
		if len(operands) == 0 {
			return flow{piped: true, operands: []field{{text: ".", pat: ".", src: shown(fs), swept: true}}}
		}
		for i := range operands {
			operands[i].swept = true
		}
		return flow{piped: true, operands: operands}
	}
	roots, tokens := findRoots(fs[1:])
	for i, t := range tokens {
		found := foundBelow(roots, narrows(tokens[:i]))
		switch t.text {
		case "-delete":
			for _, f := range found {
				w.judgeDestroy(f, st, f.swept, verbRemoves, fs)
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			w.findExec(tokens[i+1:], found, st)
		case "-fprint", "-fprintf", "-fls", "-fprint0":
			if i+1 < len(tokens) {
				w.judgeWrite(tokens[i+1], st, deedWrites.With(tokens[i+1].src))
			}
		}
	}
	return flow{piped: true, operands: foundBelow(roots, narrows(tokens))}
}

// foundBelow returns fields for the files that a search below the roots finds. If narrow is true, the search finds only
// some files, and each field has an invented name below its root. Otherwise each field is a root with everything below
// it.
func foundBelow(roots []field, narrow bool) []field {
	found := slices.Clone(roots)
	for i, f := range found {
		found[i].swept = f.swept || !narrow
		if narrow {
			found[i].text, found[i].pat = path.Join(f.text, "a-file-it-found"), path.Join(f.pat, "a-file-it-found")
		}
	}
	return found
}

// findRoots separates the starting directories of find from its expression, the tests and actions.
func findRoots(args []field) (roots, tokens []field) {
	i := 0
	for i < len(args) && slices.Contains([]string{"-H", "-L", "-P", "-E", "-X", "-d", "-s", "-x"}, args[i].text) {
		i++
	}
	for ; i < len(args); i++ {
		t := args[i].text
		if t == "-D" || t == "-f" {
			continue
		}
		if strings.HasPrefix(t, "-") || t == "(" || t == "!" || t == ")" || t == "," {
			break
		}
		roots = append(roots, args[i])
	}
	if len(roots) == 0 {
		roots = []field{literal(".")}
	}
	return roots, args[i:]
}

// narrows reports whether the tests before an action of find exclude most files. Of several alternatives joined by
// -o, only the last counts, because the action belongs to it. The last alternative needs a test that selects few
// files and is not negated.
func narrows(tokens []field) bool {
	depth, ok := 0, false
	var group []field
	negated := false
	for i, t := range tokens {
		switch t.text {
		case "(", `\(`:
			if depth++; depth == 1 {
				group = nil
				continue
			}
		case ")", `\)`:
			if depth--; depth == 0 {
				ok = ok || (!negated && everyAlternative(group))
				negated = false
				continue
			}
		}
		if depth > 0 {
			group = append(group, t)
			continue
		}
		switch {
		case t.text == "-o" || t.text == "-or" || t.text == ",":
			ok, negated = false, false
		case t.text == "!" || t.text == "-not":
			negated = !negated
		case listed("narrowing", t.text):
			ok = ok || (!negated && picks(tokens, i))
			negated = false
		case strings.HasPrefix(t.text, "-"):
			negated = false
		}
	}
	// The action stands inside an open parenthesis, so the tests in this parenthesis also narrow the search.
	return ok || (depth > 0 && everyAlternative(group))
}

func everyAlternative(group []field) bool {
	start := 0
	depth := 0
	for i, t := range group {
		switch t.text {
		case "(":
			depth++
		case ")":
			depth--
		case "-o", "-or":
			if depth == 0 {
				if !narrows(group[start:i]) {
					return false
				}
				start = i + 1
			}
		}
	}
	return narrows(group[start:])
}

// picks reports whether the test of find at index i excludes most files.
func picks(tokens []field, i int) bool {
	name := tokens[i].text
	if name == "-empty" || name == "-nouser" || name == "-nogroup" || name == "-false" {
		return true
	}
	if i+1 >= len(tokens) || tokens[i+1].vague {
		return false
	}
	pattern := tokens[i+1].text
	switch strings.TrimPrefix(name, "-i") {
	case "-name", "name":
		return !sweeping(pattern)
	case "-path", "path", "-wholename", "wholename", "-regex", "regex":
		return strings.Trim(pattern, "*./?") != ""
	}
	return true
}

// findExec judges the command of find -exec for the found files.
func (w *walker) findExec(tokens, found []field, st *state) {
	end := slices.IndexFunc(tokens, func(f field) bool { return f.text == ";" || f.text == "+" })
	if end < 0 {
		end = len(tokens)
	}
	if end == 0 {
		return
	}
	command := tokens[:end:end]
	found = slices.Clone(found)
	for i, f := range found {
		for _, target := range w.targets(f, st) {
			for file, o := range w.files {
				if within(target, file) || within(path.Dir(target), file) {
					found[i].origin |= o
				}
			}
			if !f.swept {
				target = path.Dir(target) // foundBelow invented the last name
			}
			if len(w.place.Changed.below(target))+len(w.touched.below(target)) > 0 {
				found[i].origin |= altered
			}
		}
	}
	if slices.ContainsFunc(command, func(f field) bool { return strings.Contains(f.text, "{}") }) {
		command = substitute(command, "{}", found)
	}
	w.judgeWords(command, st.clone(), flow{})
}

// fd judges the command that the program fd runs for the found files. Without a command, it returns the found files as
// operands.
func (w *walker) fd(fs []field, st *state) flow {
	end := slices.IndexFunc(fs, func(f field) bool {
		return slices.Contains([]string{"-x", "-X", "--exec", "--exec-batch"}, f.text)
	})
	command := []field(nil)
	if end > 0 {
		fs, command = fs[:end], fs[end+1:]
	}
	opts, operands := options(fs[1:], "dteESojcC --max-depth --min-depth --exact-depth --type --extension "+
		"--exclude --size --owner --threads --color --base-directory --search-path --changed-within "+
		"--changed-before --newer --older --format --max-results", false)
	narrow := hasOption(opts, "-e", "--extension", "-S", "--size", "--changed-within", "--changed-before", "--newer",
		"--older", "-o", "--owner", "-1", "--max-results")
	if len(operands) > 0 {
		narrow = narrow || strings.Trim(operands[0].text, ".*^$") != ""
		operands = operands[1:]
	}
	operands = append(operands, values(opts, "--search-path")...)
	if o, ok := findOption(opts, "-C", "--base-directory"); ok && o.value != nil {
		st = st.clone()
		st.chdir(*o.value)
		st.pending = nil
	}
	if len(operands) == 0 {
		operands = []field{literal(".")}
	}
	found := foundBelow(operands, narrow)
	if len(command) == 0 {
		return flow{piped: true, operands: found}
	}
	given := false
	for _, mark := range []string{"{}", "{/}", "{//}", "{.}", "{/.}"} {
		if slices.ContainsFunc(command, func(f field) bool { return strings.Contains(f.text, mark) }) {
			command, given = substitute(command, mark, found), true
		}
	}
	if !given {
		command = append(slices.Clip(command), found...)
	}
	w.judgeWords(command, st.clone(), flow{})
	return flow{piped: true}
}

const xargsValued = "aEILnPsdJRSj --arg-file --delimiter --max-lines --max-args --max-procs --max-chars --replace " +
	"--process-slot-var --jobs"

// xargs judges xargs and parallel. They run a command with the words of their input as further arguments.
func (w *walker) xargs(name string, fs []field, st *state, in flow) flow {
	opts, inner := options(fs[1:], xargsValued, true)
	var left flow // the standard input of the command
	if o, ok := findOption(opts, "-a", "--arg-file"); ok && o.value != nil {
		left, in = in, w.fileFlow(*o.value, st)
	}
	read := wordsRead(in, opts)
	if name == "parallel" {
		inner, read = splitParallel(inner, read)
	}
	mark := "{}"
	if o, ok := findOption(opts, "-I", "-J", "--replace"); ok && o.value != nil {
		mark = o.value.text
	} else if name == "xargs" && !hasOption(opts, "-i") {
		mark = ""
	}
	if len(inner) == 0 {
		if name == "parallel" {
			f := joined(read)
			w.walkNested(f.text, f, st.child(nil), flow{})
		}
		return flow{}
	}
	if mark != "" && len(read) > 1 && len(read) <= maxSuffixes {
		for _, f := range read { // xargs runs the command once for each word
			w.judgeWords(substitute(inner, mark, []field{f}), st.clone(), left)
		}
	}
	command := substitute(inner, mark, read)
	if name == "parallel" && strings.ContainsAny(inner[0].text, " \t") {
		text := joined(command)
		w.walkNested(text.text, text, st.child(nil), flow{})
		return flow{}
	}
	out := w.judgeWords(command, st.clone(), left)
	out.known, out.origin = false, out.origin|in.origin
	return out
}

// wordsRead returns the words that xargs reads from its input. For an unknown input it returns one unknown word.
func wordsRead(in flow, opts []option) []field {
	switch {
	case in.known && in.piped:
		return append(in.operands, words(in.text, opts)...)
	case len(in.operands) > 0:
		return in.operands
	}
	f := unknownField("what it reads")
	f.origin, f.listed = in.origin, in.text == "" || in.written
	if in.written {
		return append(words(in.text, opts), f)
	}
	return []field{f}
}

// words splits a known text into words as xargs does.
func words(text string, opts []option) []field {
	var out []field
	delimiter := ""
	if o, ok := findOption(opts, "-d", "--delimiter"); ok && o.value != nil {
		delimiter, _ = unescape(o.value.text, inFormat)
	}
	if hasOption(opts, "-I", "-i", "-J", "--replace") {
		text, delimiter = strings.TrimRight(text, "\n"), "\n"
	}
	if hasOption(opts, "-0", "--null") {
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

// splitParallel splits the words "COMMAND ::: OPERANDS" of parallel. Without ::: the operands are the words that
// parallel reads.
func splitParallel(words, read []field) (inner, operands []field) {
	for i, f := range words {
		if strings.HasPrefix(f.text, ":::") {
			return words[:i], words[i+1:]
		}
	}
	return words, read
}

// substitute returns the words of a command with the operands in place of the mark, such as {}. A word with the mark is
// repeated for each operand. Without a mark in the words, the operands follow at the end.
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

// substituted returns the pattern of the field f with the mark replaced by the operand o. The pattern may have the mark
// with escaped braces, because braces are special in a pattern.
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
