package policy

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call walks a simple command.
func (w *walker) call(c *syntax.CallExpr, st *state, in flow) flow {
	if len(c.Args) == 0 {
		w.assign(c.Assigns, st, false)
		return flow{known: true}
	}
	fs := w.fields(c.Args, st)
	if len(c.Assigns) == 0 {
		return w.argv(fs, st, in)
	}
	env := st.clone()
	w.assign(c.Assigns, env, true)
	out := w.argv(fs, env, in)
	st.dirs, st.pending = env.dirs, env.pending
	return out
}

// argv judges the words of one simple command, given what it reads, and returns
// what it writes.
func (w *walker) argv(fs []field, st *state, in flow) flow {
	out := flow{piped: in.piped, download: in.download}
	if len(fs) == 0 {
		return out
	}
	w.steps++
	if w.depth++; w.depth > maxDepth {
		w.unknown("nested too deeply to be judged")
		w.depth--
		return out
	}
	defer func() { w.depth-- }()
	w.calls = append(w.calls, fs)
	for _, f := range fs {
		out.download = out.download || f.download
	}
	name := commandName(fs[0])
	switch {
	case fs[0].download:
		w.ask("runs what it downloads: %s", shown(fs))
		w.verdict.Unknown = true
		return out
	case fs[0].vague || fs[0].glob:
		w.unknown("the text does not tell which command this is: %s", shown(fs))
	}
	if _, ok := w.funcs[name]; ok {
		inner := st.clone()
		inner.args = positional(fs[1:])
		out = w.enter(name, inner, in)
		inner.args = st.args
		*st = *inner
		return out
	}
	if r, ok := w.judge(name, fs, st, in); ok {
		return r
	}
	return out
}

// commandName is what a command word calls, without its directory. File systems
// that do not tell capitals apart find RM as well.
func commandName(f field) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(f.text, `\`, "/")))
	return strings.TrimSuffix(name, ".exe")
}

// judge looks at a command it knows. It returns false if what the command writes
// follows from what it reads.
func (w *walker) judge(name string, fs []field, st *state, in flow) (flow, bool) {
	if wr, ok := wrappers[name]; ok {
		return w.unwrap(name, wr, fs, st, in), true
	}
	if isShell(name) {
		return w.shell(name, fs, st, in), true
	}
	if w.builtin(name, fs, st, in) {
		return flow{}, true
	}
	switch name {
	case "echo", "printf":
		return printed(name, fs[1:]), true
	case "pwd":
		if len(st.dirs) == 1 && st.dirs[0].path != "" {
			return flow{known: true, text: st.dirs[0].path}, true
		}
	case "cat", "tee", "nl", "sponge":
		return w.cat(name, fs, st, in), true
	case "ls", "dir", "find", "gfind":
		return w.listing(name, fs, st, in), true
	case "curl", "wget", "fetch", "aria2c", "http", "https", "lynx", "lwp-request", "axel":
		w.fetch(name, fs, st)
		return flow{piped: true, download: true}, true
	case "xargs", "gxargs", "parallel":
		w.xargs(name, fs, st, in)
		return flow{}, true
	}
	w.harm(name, fs, st)
	return flow{}, false
}

// builtin handles what a shell does to itself. It says whether it did.
func (w *walker) builtin(name string, fs []field, st *state, in flow) bool {
	args := fs[1:]
	switch name {
	case "cd", "pushd", "chdir":
		w.cd(name, args, st)
	case "popd":
		st.chdir(unknownField(""))
	case "eval":
		w.eval(fs, st, in)
	case "trap", "alias":
		for _, a := range args {
			_, body, ok := strings.Cut(a.text, "=")
			if name == "trap" || !ok {
				body = a.text
			}
			w.nested(body, a, st.clone(), flow{})
			if name == "trap" {
				break
			}
		}
	case ".", "source":
		w.scriptFile(fs, args, st, in)
	case "set":
		w.set(args, st)
	case "read", "mapfile", "readarray", "getopts", "unset", "let", "export", "declare", "local", "readonly", "typeset":
		for _, a := range args {
			name, _, _ := strings.Cut(a.text, "=")
			if syntax.ValidName(name) {
				st.vars[name] = variable{field: unknownField("")}
			}
		}
	case "shift":
		st.args = nil
	default:
		return false
	}
	return true
}

func (w *walker) cd(name string, args []field, st *state) {
	_, operands := options(args, "", false)
	switch {
	case len(operands) == 0 && name == "pushd":
		st.chdir(unknownField(""))
	case len(operands) == 0 && w.place.Home != "":
		st.chdir(literal(w.place.Home))
	case len(operands) == 0 || operands[0].text == "-" || strings.HasPrefix(operands[0].text, "+"):
		st.chdir(unknownField(""))
	default:
		st.chdir(operands[0])
	}
}

func (w *walker) set(args []field, st *state) {
	for i, a := range args {
		switch {
		case a.text == "--":
			st.args = positional(args[i+1:])
			return
		case a.text == "errexit" || (strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "e")):
			st.errexit = true
		case !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+") && i == 0:
			st.args = positional(args)
			return
		}
	}
}

func (w *walker) eval(fs []field, st *state, in flow) {
	var b strings.Builder
	var whole field
	for _, f := range fs[1:] {
		b.WriteString(f.text + " ")
		whole.vague = whole.vague || f.vague
		whole.download = whole.download || f.download
	}
	whole.src = shown(fs)
	w.nested(b.String(), whole, st, in)
}

// nested judges text that a shell will read, found in the field from.
func (w *walker) nested(text string, from field, st *state, in flow) flow {
	switch {
	case from.download:
		w.unknown("runs what it downloads: %s", from.src)
	case from.vague:
		w.unknown("the text does not tell what the shell is given to run: %s", from.src)
	}
	out := w.script(text, st, in)
	st.settle()
	return out
}

// printed is the output of echo and of the plainest uses of printf.
func printed(name string, args []field) flow {
	var words []string
	out := flow{piped: true, known: true}
	for _, a := range args {
		out.known = out.known && !a.vague && !a.glob
		out.download = out.download || a.download
		words = append(words, a.text)
	}
	if name == "printf" {
		out.text = format(words)
		return out
	}
	escapes := false
	for len(words) > 0 && strings.Trim(words[0], "neE") == "-" && len(words[0]) > 1 {
		escapes = escapes || strings.Contains(words[0], "e")
		words = words[1:]
	}
	out.text = strings.Join(words, " ") + "\n"
	if escapes || strings.Contains(out.text, `\`) {
		out.text = unquoteANSI(out.text)
	}
	return out
}

// format is printf for %s, %b and %q; a number reads as it was given.
func format(words []string) string {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	pattern, args := unquoteANSI(words[0]), words[1:]
	var b strings.Builder
	for round := 0; round == 0 || len(args) > 0; round++ {
		used := false
		for i := 0; i < len(pattern); i++ {
			if pattern[i] != '%' || i+1 == len(pattern) {
				b.WriteByte(pattern[i])
				continue
			}
			for i++; i < len(pattern)-1 && strings.IndexByte("-+ #0123456789.l", pattern[i]) >= 0; i++ {
			}
			if pattern[i] == '%' {
				b.WriteByte('%')
			} else if used = true; len(args) > 0 {
				b.WriteString(args[0])
				args = args[1:]
			}
		}
		if !used || b.Len() > maxText {
			break
		}
	}
	return b.String()
}

// cat passes on what it reads.
func (w *walker) cat(name string, fs []field, st *state, in flow) flow {
	_, operands := options(fs[1:], "", false)
	if name != "cat" && name != "nl" {
		for _, f := range operands {
			w.write(f, st, "writes to "+f.src)
		}
		return in
	}
	if len(operands) == 0 {
		return in
	}
	out := flow{piped: true, known: true}
	for _, f := range operands {
		if f.text == "-" || f.text == "/dev/stdin" {
			out = out.then(in)
		} else {
			out = out.then(fileFlow(f))
		}
	}
	return out
}
