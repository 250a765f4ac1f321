package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// judgeWrapper judges a wrapper, such as env or sudo, and the command that the wrapper runs.
func (w *walker) judgeWrapper(name string, wr wrapper, fs []field, st *state, in flow) flow {
	opts, operands := options(fs[1:], wr.valued, true)
	if wr.privileged && (len(operands) > 0 || !hasOption(opts, "-V", "--version", "--help", "-l", "--list", "-k",
		"-K")) {
		w.askBecause(whyPrivileges, shown(fs))
	}
	if name == "command" && hasOption(opts, "-v", "-V") {
		if len(operands) == 1 {
			return located(operands[0])
		}
		return flow{}
	}
	if len(wr.subs) > 0 || wr.texts || wr.launcher {
		return w.judgeLauncher(wr, fs, st, in)
	}
	w.suffixesOf(fs, st, in)
	if name == "env" {
		operands = afterSplit(fs, opts, operands)
	}
	inner := st.clone()
	if wr.assigns && (name != "env" || !hasOption(opts, "-S", "--split-string")) {
		operands = w.leadingAssigns(operands, inner)
	}
	wr.skip = min(wr.skip, len(operands))
	w.applyDirectory(name, opts, operands[:wr.skip], inner)
	operands = operands[wr.skip:]
	if out, ok := w.commandText(name, opts, operands, inner, in); ok {
		return out
	}
	if len(operands) == 0 {
		st.keeps = st.keeps || name == "exec"
		if name == "env" {
			in.origin |= private // without a command, env prints all variables, which often contain keys
		}
		return flow{piped: in.piped, origin: in.origin}
	}
	if slices.Contains([]string{"exec", "command", "builtin"}, name) {
		inner = st
	}
	return w.judgeWords(operands, inner, in)
}

// leadingAssigns sets the variables of the words NAME=value at the start of operands. It returns the other operands.
func (w *walker) leadingAssigns(operands []field, st *state) []field {
	for len(operands) > 0 {
		name, value, ok := strings.Cut(operands[0].text, "=")
		if !ok || !syntax.ValidName(name) {
			break
		}
		v := *part(operands[0], value)
		st.vars[name] = variable{field: v, exported: true}
		w.judgeVariable(name, v, st)
		w.judgeExported(name, v, st)
		operands = operands[1:]
	}
	return operands
}

// applyDirectory sets the directory in which a wrapper starts its command. The parameter "skipped" has the operands
// before the command.
func (w *walker) applyDirectory(name string, opts []option, skipped []field, st *state) {
	switch name {
	case "env", "sudo", "run0":
		if o, ok := findOption(opts, "-C", "-D", "--chdir"); ok && o.value != nil {
			st.chdir(*o.value)
			st.pending = nil
		}
	case "systemd-run":
		if slices.ContainsFunc(opts, func(o option) bool { return strings.HasPrefix(o.name, "--on-") }) {
			w.askBecause(whyLater)
		}
	case "chroot":
		st.dirs = []dir{{path: "/"}}
	case "ssh":
		st.dirs, st.far = []dir{{path: w.place.Home}}, true
	}
	for _, f := range skipped {
		if name == "direnv" {
			st.chdir(f)
			st.pending = nil
		}
		if name == "flock" && f.text != "" {
			w.judgeWrite(f, st, deedLocks.With(f.src))
		}
	}
}

// commandText judges the command of a wrapper that passes its command as one text to a shell, such as su -c TEXT. It
// returns false for other wrappers.
func (w *walker) commandText(name string, opts []option, operands []field, st *state, in flow) (flow, bool) {
	switch name {
	case "su", "sg", "runuser", "flock", "script":
		if name == "script" && len(operands) > 0 {
			w.judgeWrite(operands[0], st, deedWrites.With(operands[0].src))
		}
		if o, ok := findOption(opts, "-c", "--command", "--session-command"); ok && o.value != nil {
			return w.walkNested(o.value.text, *o.value, st.child(nil), in), true
		}
		for i, f := range operands {
			if f.text == "-c" && i+1 < len(operands) {
				return w.walkNested(operands[i+1].text, operands[i+1], st.child(nil), in), true
			}
		}
		return flow{}, name == "su" || name == "script"
	case "env":
		if o, ok := findOption(opts, "-S", "--split-string"); ok && o.value != nil {
			return w.splitString(*o.value, operands, st, in), true
		}
	case "watch", "ssh":
		w.sshSettings(opts, st)
		text := joined(operands)
		return w.walkNested(text.text, text, st.child(nil), in), true
	}
	return flow{}, false
}

// sshSettings judges the settings in ssh -o NAME=VALUE. The value may be a command.
func (w *walker) sshSettings(opts []option, st *state) {
	for _, o := range opts {
		if o.name != "-o" || o.value == nil {
			continue
		}
		key, command, ok := strings.Cut(o.value.text, "=")
		if !ok {
			key, command, ok = strings.Cut(o.value.text, " ")
		}
		if key = strings.ToLower(key); !listed("sshOptions", key) {
			w.askBecause(whySSHSetting, o.value.src)
		}
		if ok && strings.HasSuffix(key, "command") && key != "remotecommand" {
			w.walkNested(command, *part(*o.value, command), st.child(nil), flow{})
		}
	}
}

// afterSplit returns the operands of env. With the option -S, these are all words after the value of -S.
func afterSplit(fs []field, opts []option, operands []field) []field {
	o, ok := findOption(opts, "-S", "--split-string")
	if !ok || o.value == nil {
		return operands
	}
	for i, f := range fs {
		if &fs[i] == o.value || strings.HasPrefix(f.text, "-") && o.value.text != "" &&
			strings.HasSuffix(f.text, o.value.text) {
			return fs[i+1:]
		}
	}
	return operands
}

// splitString judges env -S TEXT. The command is the words of the text, followed by the operands.
func (w *walker) splitString(text field, operands []field, st *state, in flow) flow {
	list, read, err := parse("env " + text.text + ` "$@"`)
	if text.vague || err != nil || len(list) != 1 {
		return w.walkNested(text.text+" "+joined(operands).text, text, st.child(nil), in)
	}
	inner := st.clone()
	inner.args = positional(operands)
	return w.enterFunction(function{list[0], read}, inner, in)
}

// joined joins the operands with spaces into one text for a shell, as eval and ssh do.
func joined(operands []field) field {
	var f field
	var words, written []string
	for _, o := range operands {
		words, written = append(words, o.text), append(written, o.src)
		f.vague, f.origin = f.vague || o.vague, f.origin|o.origin
	}
	f.text, f.src = strings.Join(words, " "), strings.Join(written, " ")
	return f
}

var shells = []string{"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "yash", "csh", "tcsh", "at",
	"batch"}

func isShell(name string) bool {
	_, ok := languageOf(name)
	return ok || slices.Contains(shells, name)
}

// judgeShell judges a shell or another interpreter with its script. The script of a shell is the text after -c, a file,
// or the standard input.
func (w *walker) judgeShell(name string, fs []field, st *state, in flow) flow {
	out := flow{piped: true, origin: in.origin}
	if !slices.Contains(shells, name) {
		w.judgeInterpreter(name, fs, st, in)
		return out
	}
	for _, f := range fs[1:] {
		// Some shells read an argument that starts with a dash or a plus as a script, and other shells read it as
		// options.
		if (strings.HasPrefix(f.text, "-") || strings.HasPrefix(f.text, "+")) && strings.ContainsAny(f.text, " \t\n") {
			w.walkNested(f.text, f, st.child(nil), in)
		}
	}
	opts, operands := options(minusOnly(fs[1:]), "oO --rcfile --init-file", true)
	if o, ok := findOption(opts, "--rcfile", "--init-file"); ok && o.value != nil {
		w.scriptFile(fs, []field{*o.value}, st.child(nil), in)
	}
	switch {
	case name == "at" && hasOption(opts, "-l", "-V", "-c"):
		return out
	case name == "at" || name == "batch":
		w.askBecause(whyLaterCommand, shown(fs))
	case hasOption(opts, "-c", "--command"):
		if len(operands) == 0 {
			return out
		}
		args := operands[1:]
		return w.walkNested(operands[0].text, operands[0], st.child(args[min(1, len(args)):]), in)
	case hasOption(opts, "--version", "--help", "-n"):
		return out
	case len(operands) > 0 && !hasOption(opts, "-s") && !isStdin(operands[0].text):
		out = w.scriptFile(fs, operands, st.child(operands[1:]), in)
		w.suffixesOf(operands, st, in)
		return out
	}
	return w.shellInput(fs, st.child(nil), in)
}

// minusOnly returns the arguments of a shell without the options that begin with a plus, such as +e and +o pipefail.
func minusOnly(args []field) []field {
	var out []field
	for i := 0; i < len(args); i++ {
		text := args[i].text
		valued := len(text) > 1 && text[1] != '-' && strings.ContainsAny(text[len(text)-1:], "oO") ||
			text == "--rcfile" || text == "--init-file"
		from := i
		if valued {
			i++
		}
		switch {
		case len(text) < 2 || text[0] != '-' && text[0] != '+' || text == "--":
			return append(out, args[from:]...)
		case text[0] == '-':
			out = append(out, args[from:min(len(args), i+1)]...)
		}
	}
	return out
}

// daemon judges the program that start-stop-daemon starts, with the arguments after --.
func (w *walker) daemon(fs []field, st *state) {
	command := []field(nil)
	for i, f := range fs {
		name, value, has := strings.Cut(f.text, "=")
		switch {
		case f.text == "--" && len(command) > 0:
			w.judgeWords(append(command, fs[i+1:]...), st.child(nil), flow{})
			return
		case name != "-x" && name != "--exec" && name != "-a" && name != "--startas":
		case has:
			command = []field{*part(f, value)}
		case i+1 < len(fs):
			command = []field{fs[i+1]}
		}
	}
}

func isStdin(s string) bool { return s == "-" || s == "/dev/stdin" || s == "/dev/fd/0" }

// shellInput judges the script that a shell reads from its standard input, and returns its output.
func (w *walker) shellInput(fs []field, st *state, in flow) flow {
	out := flow{piped: true, known: in.known, origin: in.origin}
	switch {
	case in.origin.is(foreign):
		w.askUnknown(whyRunsDownload, shown(fs))
	case !in.piped:
		return out
	case !in.known:
		w.askUnknown(whyUnknownInput, shown(fs))
	}
	other := st.clone()
	if in.text != "" {
		out = out.then(w.walkScript(in.text, st, flow{}))
	}
	if in.other != "" {
		out = out.then(w.walkScript(in.other, other, flow{}))
		out.known = false
		st.joinStates(st.clone(), other)
	}
	return out
}

// scriptFile judges a file that a shell runs. The package does not read files on disk, so it judges only a text that
// the script itself wrote into the file. It asks about a file that the script downloaded. For <(…) and the standard
// input, scriptFile returns the output of the commands.
func (w *walker) scriptFile(fs, operands []field, st *state, in flow) flow {
	if len(operands) == 0 {
		return flow{}
	}
	f := operands[0]
	w.runsText(f, st)
	w.judgeStart(f, fs, st, func(text field) { w.walkNested(text.text, text, st.child(nil), flow{}) })
	switch {
	case f.out != nil:
		f.out.piped = true
		return w.shellInput(fs, st, *f.out)
	case isStdin(f.text):
		return w.shellInput(fs, st, in)
	case w.runsForeign(f, st):
		w.askUnknown(whyRunsDownload, shown(fs))
	case w.strange(f, st):
		w.askBecause(whyOuterScript, shown(fs))
	case f.vague, slices.ContainsFunc(w.targets(f, st), descriptor):
		w.askUnknown(whyUnknownFile, shown(fs))
	}
	return flow{piped: true, origin: in.origin}
}

// strange reports whether a script lies outside the working directory. Scripts of the system are not strange.
// Hidden files of the home are not strange either, because they are settings.
func (w *walker) strange(f field, st *state) bool {
	return !f.vague && w.outside(f, st) && slices.ContainsFunc(w.targets(f, st), func(t string) bool {
		settings := w.place.Home != "" && strings.HasPrefix(t, w.place.Home+"/.")
		return !settings && !descriptor(t) && !within("/etc", t) &&
			!slices.ContainsFunc(systemPath, func(dir string) bool { return within(dir, t) })
	})
}
