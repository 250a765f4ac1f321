package shell

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walkCall walks a simple command. If the command has only assignments, or its words expand to nothing, the assignments
// set variables of the shell itself.
func (w *walker) walkCall(c *syntax.CallExpr, st *state, in flow) flow {
	fs := w.fields(c.Args, st)
	if len(fs) == 0 {
		w.assignVariables(c.Assigns, st, false)
		return flow{known: true}
	}
	if len(c.Assigns) == 0 {
		return w.judgeWords(fs, st, in)
	}
	before := st.clone()
	w.assignVariables(c.Assigns, st, true)
	given := maps.Clone(st.vars)
	out := w.judgeWords(fs, st, in)
	lasts := fs[0].loose || listed("specialBuiltins", commandName(fs[0]))
	for _, a := range c.Assigns {
		st.restoreVariable(before.referred(a.Name.Value), before, given, lasts)
	}
	return out
}

// judgeWords judges a simple command. The parameter fs has its words, and "in" is its standard input. It returns the
// command's output.
func (w *walker) judgeWords(fs []field, st *state, in flow) flow {
	out := flow{piped: in.piped, origin: in.origin}
	if len(fs) == 0 {
		return out
	}
	w.steps += 1 + len(fs)/8
	if w.depth++; w.depth > maxDepth || w.steps > 2*maxSteps {
		w.askUnknown(whyNested)
		w.depth--
		return out
	}
	defer func() { w.depth-- }()
	if w.refusedOnly == 0 {
		w.calls = append(w.calls, fs)
	}
	for _, f := range fs {
		out.origin |= w.originOf(f, st)
	}
	switch {
	case fs[0].origin.is(foreign), strings.Contains(fs[0].text, "/") && w.runsForeign(fs[0], st):
		w.askUnknown(whyRunsDownload, shown(fs))
		return out
	case fs[0].vague || fs[0].glob:
		w.askUnknown(whyUnknownCommand, shown(fs))
	}
	if strings.Contains(fs[0].text, "/") {
		w.runsText(fs[0], st)
	}
	w.startsProgram(fs, st)
	w.judgeRecipes(commandName(fs[0]), fs, st)
	out = w.judgeNamed(fs, st, in, out)
	for _, f := range fs[1:] {
		if f.sink != nil {
			read := flow{piped: true, origin: in.origin | out.origin}
			if in.piped && in.known {
				read = in
			}
			w.judgeSink(f.sink, read)
		}
	}
	return out
}

// judgeNamed judges the program that the first word of fs names, and every function of this name. The shell may
// call any of them, because branches and subshells decide which functions exist.
func (w *walker) judgeNamed(fs []field, st *state, in, out flow) flow {
	name := commandName(fs[0])
	if len(w.funcs[fs[0].text]) == 0 {
		wrote := w.writes
		w.writes = false
		r, how := w.judgeKnown(name, fs, st, in)
		w.judgeProgram(name, fs, st)
		w.judgeHidden(name, fs, st, in)
		w.judgeSurroundings(name, fs, st, in, w.writes)
		w.judgeSandbox(name, fs, st)
		w.writes = w.writes || wrote
		if contents(name) && (in.origin.is(copied) || w.secrets(fs, st)) {
			r.origin, out.origin = r.origin|copied, out.origin|copied
		}
		if matchesPhrase("secrets", name, fs) || listed("variablePrinters", name) &&
			(len(fs) == 1 || fs[1].text == "-p") {
			out.origin |= private
			r.origin, r.piped, r.known = r.origin|private, true, false
		}
		out.number = listed("numbers", name) || listed("numberFilters", name) && in.number
		if how == answers {
			r.number = r.number || out.number
			return r
		} else if how == unread {
			w.suffixesOf(fs, st, in)
			w.judgeOutputs(fs, st)
		}
		return out
	}
	program := st.clone()
	called := w.callFunctions(fs, st, in)
	r, how := w.judgeKnown(name, fs, program, in)
	if how == unread {
		return called
	}
	st.joinStates(st.clone(), program)
	r = called.then(r)
	r.known = false
	return r
}

// commandName returns the name of the program in the first word of a command, without its directory. The name is in
// lower case, because some file systems find rm under the name RM.
func commandName(f field) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(f.text, `\`, "/")))
	return strings.TrimPrefix(strings.TrimSuffix(name, ".exe"), "=") // zsh finds =rm
}

// handling says how much judgeKnown has found out about the output of a command.
type handling int

const (
	unread  handling = iota // judgeKnown has no rule for the command
	passes                  // the output is unknown and has the origins of the input and of the words
	answers                 // judgeKnown has returned the output
)

// judgeKnown judges a command by the rules that this package has for its name.
func (w *walker) judgeKnown(name string, fs []field, st *state, in flow) (flow, handling) {
	w.judgeSending(name, fs, st, in)
	w.recordUnpacked(name, fs, st, in)
	w.judgePatchInput(name, fs, st, in)
	w.codeWords(name, fs)
	if matchesPhrase("installs", name, fs) {
		w.askBecause(whyInstalls, shown(fs))
	}
	if matchesPhrase("reaches", name, fs) && !rehearsed(fs) && !looksInside(name, fs) {
		w.askBecause(whyForeign, shown(fs))
	}
	if matchesPhrase("terminals", name, fs) {
		w.askBecause(whyDrivesDesktop, shown(fs))
	}
	if wr, ok := wrappers(name); ok && wr.runsCommand(fs) {
		return w.judgeWrapper(name, wr, fs, st, in), answers
	}
	switch {
	case isShell(name):
		return w.judgeShell(name, fs, st, in), answers
	case name == "eval":
		return w.eval(fs, st, in), answers
	case name == "." || name == "source":
		return w.dot(fs, fs[1:], st, in), answers
	case w.builtin(name, fs, st):
		st.readVariables(name, fs[1:], in.origin)
		return flow{known: listed("silent", name)}, answers
	}
	if out, ok := w.prints(name, fs, st); ok {
		return out, answers
	}
	if out, ok := w.converts(name, fs, st, in); ok {
		return out, answers
	}
	if _, ok := fetchers(name); ok && name != "gh" {
		w.judgeDownload(name, fs, st)
		return flow{piped: true, origin: network}, answers
	}
	if w.judgeHarm(name, fs, st, in) || listed("textPrograms", name) {
		return flow{}, passes
	}
	return flow{}, unread
}

// prints returns the output of a command that reads no input, if the words of the command determine the output.
func (w *walker) prints(name string, fs []field, st *state) (flow, bool) {
	switch name {
	case "echo", "printf":
		out := printed(name, fs[1:])
		// Without brace expansion, printf gets fewer words. It repeats its format for further words, so its output
		// may then differ.
		if plain := printed(name, unspread(fs[1:])); name == "printf" && st.nested && plain.text != out.text {
			out.other = plain.text
		}
		return out, true
	case "pwd":
		if len(st.dirs) == 1 && st.dirs[0].path != "" {
			return flow{known: true, text: st.dirs[0].path}, true
		}
	case "date", "whoami", "hostname", "uname", "nproc":
		if !slices.ContainsFunc(fs[1:], func(f field) bool { return f.vague || !brief().MatchString(f.text) }) {
			return flow{known: true, text: "0"}, true
		}
	case "which", "type":
		if _, operands := options(fs[1:], "", false); len(operands) == 1 {
			return located(operands[0]), true
		}
	case "mktemp":
		return w.mktemp(fs, st), true
	case "ssh-agent", "direnv", "conda", "pyenv", "rbenv", "nodenv", "jenv", "brew", "fnm", "mise", "zoxide",
		"starship", "opam", "dircolors", "keychain", "luarocks", "minikube":
		if len(fs) > 1 && !strings.Contains(fs[0].text, "/") && listed("hooks", fs[1].text) {
			return flow{known: true}, true
		}
	case "printenv":
		return flow{piped: true, origin: private}, true
	}
	return flow{}, false
}

// converts judges a command that transforms its input or lists files, and returns its output.
func (w *walker) converts(name string, fs []field, st *state, in flow) (flow, bool) {
	switch name {
	case "cat", "tee", "nl", "sponge":
		return w.cat(name, fs, st, in), true
	case "base64", "base32", "basenc", "gbase64", "xxd", "openssl", "uudecode":
		if out, ok := w.decode(name, fs, st, in); ok {
			w.judgeHarm(name, fs, st, in)
			return out, true
		}
	case "apply_patch", "applypatch":
		w.applyPatch(fs, st, in)
		return flow{piped: true}, true
	case "fd", "fdfind":
		return w.fd(fs, st), true
	case "ls", "dir", "find", "gfind":
		return w.listing(name, fs, st), true
	case "xargs", "gxargs", "parallel":
		return w.xargs(name, fs, st, in), true
	case "start-stop-daemon":
		w.daemon(fs, st)
	}
	return flow{}, false
}

// brief matches an argument of date or a similar command. With such an argument, the output is one word without a
// slash, so it cannot be a path.
var brief = lazily(`^(\+[^/]*|-[uImnrsf]|--utc|--iso-8601)$`)

// located returns the output of the command "which" for the program f: a path in an unknown directory.
func located(f field) flow {
	return flow{piped: true, known: !f.vague, text: f.text, other: unknownText}
}

// mktemp judges the program mktemp and returns its output: the name of a new file in the temporary directory, or in the
// directory that an option names.
func (w *walker) mktemp(fs []field, st *state) flow {
	opts, operands := options(fs[1:], "p --suffix", false)
	template := literal("made-by-mktemp")
	if len(operands) > 0 {
		template = operands[0]
	}
	o, elsewhere := findOption(opts, "-p", "--tmpdir")
	switch {
	case elsewhere && o.value != nil:
		template.text = path.Join(o.value.text, template.text)
		template.vague = template.vague || o.value.vague
	case len(w.place.Temp) > 0 && (elsewhere || hasOption(opts, "-t") || len(operands) == 0):
		template.text = path.Join(w.place.Temp[0], template.text)
	case len(operands) == 0:
		return flow{piped: true}
	}
	template.pat, template.glob = template.text, false
	w.judgeWrite(template, st, deedCreates.With(shown(fs)))
	return flow{piped: true, known: !template.vague, text: template.text}
}

// builtin updates the state of the shell for a command that changes the shell itself, such as cd. It reports whether
// the command is such a builtin.
func (w *walker) builtin(name string, fs []field, st *state) bool {
	args := fs[1:]
	switch name {
	case "printf":
		return w.printfTo(args, st)
	case "cd", "pushd", "chdir":
		w.cd(name, args, st)
	case "popd":
		st.chdir(unknownField(""))
	case "trap":
		w.trap(args, st)
	case "alias", "hash":
		w.aliases(name, args, st)
	case "enable":
		if slices.ContainsFunc(args, func(f field) bool { return strings.HasPrefix(f.text, "-f") }) {
			w.askBecause(whyLoadsCode, shown(fs))
		}
	case "history":
		opts, operands := options(args, "", false)
		if hasOption(opts, "-a", "-w") {
			w.judgeWrites(operands, st, deedWrites)
		}
		return false
	case "set":
		w.set(args, st)
	case "test", "[":
		for i, a := range args {
			if (a.text == "-v" || a.text == "-R") && i+1 < len(args) {
				w.judgeSubscript(args[i+1], st)
			}
		}
		return false
	case "read", "mapfile", "readarray", "getopts", "unset", "wait", "let", "export", "declare", "local", "readonly",
		"typeset":
		w.forgetDeclared(name, args, st)
	case "shift":
		st.args = nil
	default:
		return false
	}
	return true
}

// aliases judges alias NAME=TEXT and hash -p FILE NAME, which give a command another name.
func (w *walker) aliases(name string, args []field, st *state) {
	if name == "hash" {
		opts, operands := options(args, "p", false)
		if o, ok := findOption(opts, "-p"); ok && o.value != nil && len(operands) > 0 {
			w.alias(operands[0].text, o.value.text)
		}
		return
	}
	for _, a := range args {
		if head, body, ok := strings.Cut(a.text, "="); ok {
			w.alias(head, body)
			w.walkNested(body, a, st.clone(), flow{})
		}
	}
}

// results are the variables that builtins set even if no operand names them.
var results = map[string][]string{"read": {"REPLY"}, "mapfile": {"MAPFILE"}, "readarray": {"MAPFILE"},
	"getopts": {"OPTARG", "OPTIND"}}

// namedBy maps a builtin to its option letter with the name of a variable, as in read -a NAME or read -aNAME.
var namedBy = map[string]string{"read": "a", "wait": "p"}

// readVariables adds the origin o of the input to the variables that a builtin such as read sets.
func (st *state) readVariables(name string, args []field, o origin) {
	if o == 0 || results[name] == nil || name == "getopts" {
		return
	}
	names := slices.Clone(results[name])
	for _, a := range args {
		names = append(names, a.text)
	}
	for _, key := range names {
		if v, ok := st.vars[st.referred(key)]; ok {
			v.origin |= o
			st.vars[st.referred(key)] = v
		}
	}
}

// forgetDeclared updates the variables that a builtin such as read, unset or export names. A variable gets the value in
// NAME=VALUE. Without a value in the operand, the value is unknown.
func (w *walker) forgetDeclared(name string, args []field, st *state) {
	for _, key := range results[name] {
		st.setVariable(key, variable{field: unknownField("")})
	}
	for _, a := range args {
		switch {
		case name == "let":
			w.judgeArithmetic(a, st, maxReferences)
		case strings.Contains(a.text, "[") || name == "unset":
			w.judgeSubscript(a, st)
		}
		key, value, set := strings.Cut(a.text, "=")
		if letter := namedBy[name]; letter != "" && strings.HasPrefix(key, "-") {
			_, key, _ = strings.Cut(key, letter)
			set = false
		}
		switch {
		case name == "unset" && key == "IFS":
			delete(st.vars, key)
		case set:
			v := *part(a, value)
			w.judgeVariable(key, v, st)
			st.setVariable(key, variable{field: v, exported: name == "export"})
		default:
			st.setVariable(key, variable{field: unknownField("")})
		}
	}
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

// set reads the arguments of the builtin set. Its operands become the positional parameters.
func (w *walker) set(args []field, st *state) {
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch {
		case args[i].loose:
			st.args = nil
			return
		case text == "--", text == "-" && i+1 < len(args):
			st.args = positional(args[i+1:])
			return
		case !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "+"):
			st.args = positional(args[i:])
			return
		}
		takesName := strings.HasSuffix(text, "o") && i+1 < len(args)
		if takesName {
			i++
		}
		if strings.Contains(text, "e") || takesName && args[i].text == "errexit" {
			st.errexit = text[0] == '-'
		}
	}
}

func (w *walker) eval(fs []field, st *state, in flow) flow {
	whole := joined(fs[1:])
	whole.src = shown(fs)
	return w.walkNested(whole.text+" ", whole, st, in)
}

// walkNested judges a text that a shell will run as a script. The parameter "from" is the word that contains the
// text.
func (w *walker) walkNested(text string, from field, st *state, in flow) flow {
	switch {
	case from.origin.is(foreign):
		w.askUnknown(whyRunsDownload, from.src)
	case from.vague:
		w.askUnknown(whyUnknownScript, from.src)
	}
	out := w.walkScript(text, st, in)
	st.endStatement()
	return out
}
