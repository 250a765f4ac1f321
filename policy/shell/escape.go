package shell

import (
	"path"
	"slices"
	"strings"
)

// judgeEscapes judges tools such as sed, vim and make, which have a small language that can run commands or write
// files. It reports whether it has judged all operands of the program.
func (w *walker) judgeEscapes(name string, fs []field, st *state, in flow) bool {
	switch name {
	case "gdb", "lldb", "strace", "ltrace", "gcore", "reptyr":
		w.debuggers(fs, st)
		return false
	case "awk", "gawk", "mawk", "nawk", "busybox-awk":
		w.awk(fs, st, in)
	case "sed", "gsed", "ssed":
		w.editInPlace(fs, st)
		w.sed(fs, st, in)
	case "vi", "vim", "nvim", "ex", "view", "gvim", "vimdiff", "rvim", "ed", "red", "kak", "hx":
		w.editor(name, fs, st, in)
	case "less", "more", "most":
		w.lineCommands(fs, st)
	case "man":
		for _, pager := range values(optionsOf(fs[1:], "P --pager -H --html"), "-P", "--pager", "-H", "--html") {
			w.walkNested(pager.text, pager, st.child(nil), flow{})
			if !harmlessCommand(pager) {
				w.askBecause(whyNamesProgram, shown(fs))
			}
		}
	case "make", "gmake", "nmake", "just", "ninja":
		w.judgeMake(fs, st, in)
	case "zip", "split", "csplit", "uniq", "xxd", "shuf", "sort", "tcpdump", "nmap", "ssh-add", "ssh-agent":
		w.judgeTool(name, fs, st)
	default:
		return false
	}
	return true
}

// debuggerCommands are the options of debuggers with a debugger command as value.
var debuggerCommands = []string{"-ex", "-iex", "-o", "-O", "--eval-command", "--init-eval-command", "--one-line",
	"-eval-command"}

// debuggerFiles matches a debugger command that writes a file. Its group is the name of the file.
var debuggerFiles = lazily(`^\s*(?:dump|append|save|gcore|generate-core-file|set logging file|process ` +
	`save-core)\b[^/~]*([/~]\S*)`)

// debuggers judges the words of a debugger, and the debugger commands in its options.
func (w *walker) debuggers(fs []field, st *state) {
	if slices.ContainsFunc(fs[1:], func(f field) bool {
		return strings.Contains(f.src, "PPID") ||
			strings.Contains(f.src, "ppid")
	}) {
		w.askBecause(whyTakesProcess, shown(fs))
	}
	for _, f := range valuesOf(fs, debuggerCommands) {
		if m := debuggerFiles().FindStringSubmatch(f.text); m != nil {
			w.judgeWrite(*part(f, m[1]), st, deedWrites.With(m[1]))
		}
		for _, word := range []string{"shell ", "!", "pipe ", "platform shell ", "python ", "script "} {
			if rest, ok := strings.CutPrefix(f.text, word); ok {
				w.askBecause(whyRunsCommand, shown(fs))
				w.walkNested(rest, *part(f, rest), st.child(nil), flow{})
			}
		}
	}
}

// tool is the row of a program in the part tools of programs.txt. A few options of such a program name a program or a
// file.
type tool struct {
	runs    []string // options with a command as value
	valued  string   // options that take a value
	writes  []string // options with a file that the program writes
	outputs bool     // the second operand is a file that the program writes
}

var tools = table("tools", func(said string) tool {
	m := members(said, "runs", "valued", "writes", "outputs")
	return tool{runs: m["runs"], valued: strings.Join(m["valued"], " "), writes: m["writes"],
		outputs: m["outputs"] != nil}
})

// judgeTool judges a program of the part tools by its row.
func (w *walker) judgeTool(name string, fs []field, st *state) {
	t, _ := tools(name)
	for _, f := range valuesOf(fs, t.runs) {
		w.walkNested(f.text, f, st.child(nil), flow{})
	}
	if name == "zip" && among(fs, t.runs...) {
		w.askBecause(whyRunsCommand, shown(fs))
	}
	opts, operands := options(fs[1:], t.valued, false)
	for _, f := range values(opts, t.writes...) {
		w.judgeWrite(f, st, deedWrites.With(f.src))
	}
	if name == "zip" && len(operands) > 1 {
		if !isStdin(operands[0].text) {
			w.judgeWrite(operands[0], st, deedWrites.With(operands[0].src))
		}
		w.markOrigin(operands[0], st, w.privacy(fs, st))
	}
	if t.outputs && len(operands) > 1 {
		w.judgeWrite(operands[1], st, deedWrites.With(operands[1].src))
	}
	if name == "ssh-agent" && len(fs) > 1 && !strings.HasPrefix(fs[1].text, "-") {
		w.judgeWords(fs[1:], st.clone(), flow{})
	}
}

// editor judges the commands that an editor such as vim or ed gets in its options or from its standard input.
func (w *walker) editor(name string, fs []field, st *state, in flow) {
	w.lineCommands(fs, st)
	opts, operands := options(fs[1:], "cSsuUTwW --cmd", false)
	silent := name == "ed" || name == "red" || name == "ex" || hasOption(opts, "-e", "-E")
	if silent && in.piped && in.known {
		for line := range strings.Lines(in.text) {
			w.editorCommand(line, literal(line), fs, st)
		}
	}
	if silent || hasOption(opts, "-c") {
		for _, f := range operands {
			if !strings.HasPrefix(f.text, "+") {
				w.judgeWrite(f, st, deedEdits.With(f.src))
			}
		}
	}
}

// lineCommands judges the editor commands in the options -c CMD, --cmd CMD and +CMD.
func (w *walker) lineCommands(fs []field, st *state) {
	for i, f := range fs[1:] {
		switch {
		case (commandLetters().MatchString(f.text) || f.text == "--cmd") && i+2 < len(fs):
			w.editorCommand(fs[i+2].text, fs[i+2], fs, st)
		case strings.HasPrefix(f.text, "-c") && len(f.text) > 2:
			w.editorCommand(f.text[2:], f, fs, st)
		case strings.HasPrefix(f.text, "+") && len(f.text) > 1:
			w.editorCommand(f.text[1:], f, fs, st)
		}
	}
}

// commandLetters matches a group of short options that ends in c, the option with a command.
var commandLetters = lazily(`^-[A-Za-z]*c$`)

var editorEscapes = lazily(`(?:^|[|:\s%.,0-9$])!\s*(.*)|\b(?:system|systemlist|job_start|term_start|jobstart|` +
	`termopen|delete|writefile|libcall|rename|execute|feedkeys)\s*\(|^\s*:?\s*(?:term(?:inal)?|lua\w*|py3?\w*|` +
	`python3?|ruby|perl\w*|tcl|mz\w*|source|so|exe\w*|set?\s+(?:shell|grepprg|makeprg|equalprg)\S*|make|grep|` +
	`sil\w*\s+!.*|autocmd|au)\b`)

// editorWrites matches the editor commands that write to a named file.
var editorWrites = lazily(`^\s*:?[%0-9,$]*(?:w|wri|write|sav|saveas|wq|x|xit|up|update)!?\s+([^!\s]\S*)\s*$`)

func (w *walker) editorCommand(text string, f field, fs []field, st *state) {
	if m := editorWrites().FindStringSubmatch(text); m != nil {
		w.judgeWrite(*part(f, m[1]), st, deedWrites.With(m[1]))
	}
	m := editorEscapes().FindStringSubmatch(text)
	if m == nil {
		return
	}
	w.askBecause(whyEditorCommand, shown(fs))
	if m[1] != "" {
		w.walkNested(m[1], *part(f, m[1]), st.child(nil), flow{})
	}
}

// judgeMake judges the words of make and similar programs that name a shell, contain make rules, or name a downloaded
// makefile.
func (w *walker) judgeMake(fs []field, st *state, in flow) {
	if i := slices.IndexFunc(fs, func(f field) bool { return f.text == "--command" || f.text == "-c" }); i > 0 &&
		commandName(fs[0]) == "just" {
		w.judgeWords(fs[i+1:], st.child(nil), in)
	}
	for _, name := range []string{"Makefile", "makefile", "GNUmakefile"} {
		if w.originOf(literal(name), st).is(foreign) {
			w.askUnknown(whyRunsDownload, shown(fs))
		}
	}
	for i, f := range fs[1:] {
		name, value, _ := strings.Cut(f.text, "=")
		if value != "" && w.guards(*part(f, value), st) {
			w.askBecause(whyNamesRoot, shown(fs))
		}
		switch {
		case name == "SHELL" || name == ".SHELLFLAGS" || name == "MAKEFLAGS" && strings.Contains(value, "eval"):
			if !slices.Contains([]string{"/bin/bash", "/bin/sh", "/usr/bin/bash", "bash", "sh", "/bin/zsh",
				"/usr/bin/env bash"}, value) {
				w.askBecause(whyNamesProgram, shown(fs))
				w.walkNested(value, *part(f, value), st.child(nil), flow{})
			}
		case name == "--eval" && value == "" && i+2 < len(fs):
			w.makeRules(fs[i+2], fs, st)
		case name == "--eval":
			w.makeRules(*part(f, value), fs, st)
		case f.text == "-f" && i+2 < len(fs):
			if script, ok := handed(fs[i+2], in); ok {
				w.makeRules(script, fs, st)
			} else if w.runsForeign(fs[i+2], st) {
				w.askUnknown(whyRunsDownload, shown(fs))
			}
		}
	}
}

func (w *walker) makeRules(f field, fs []field, st *state) {
	w.askBecause(whyRulesInLine, shown(fs))
	for line := range strings.Lines(f.text) {
		if _, recipe, ok := strings.Cut(line, ";"); ok {
			w.walkNested(recipe, f, st.child(nil), flow{})
		}
		if recipe, ok := strings.CutPrefix(line, "\t"); ok {
			w.walkNested(strings.TrimLeft(recipe, "@-"), f, st.child(nil), flow{})
		}
		if _, call, ok := strings.Cut(line, "$(shell "); ok {
			w.walkNested(strings.TrimRight(call, ")\n"), f, st.child(nil), flow{})
		}
	}
}

// pathText is the placeholder for the unknown value that PATH has at the start of the script.
const pathText = "${_perlica_path}"

// xdgDirs are the default directories of programs, relative to the home directory.
var xdgDirs = map[string]string{
	"XDG_CONFIG_HOME": "/.config", "XDG_STATE_HOME": "/.local/state", "XDG_DATA_HOME": "/.local/share",
	"XDG_CACHE_HOME": "/.cache",
}

// judgeVariable asks about an assignment to a variable such as PATH or EDITOR, with which programs run or load
// something.
func (w *walker) judgeVariable(name string, value field, st *state) {
	shown := name + "=" + value.text
	switch {
	case name == "PATH":
		if !strings.Contains(value.text, pathText) {
			w.askBecause(whyShortPath, value.text)
		}
		w.searchPath(name, value, st)
	case name == "LD_LIBRARY_PATH":
		w.searchPath(name, value, st)
	case name == "PERLICA_TRUST_PROJECT":
		w.addFinding(Refused, whyGrants.With(shown), "perlica")
	case name == "PERLICA_HOME" && !value.vague && strings.HasPrefix(value.text, "/"):
		w.place.Own = append(slices.Clip(w.place.Own), slashPath(value.text))
	case name == "SHELL":
		if !isUsualShell(value) {
			w.askBecause(whyNamesProgram, shown)
		}
	case listed("programVars", name):
		w.programVariable(value, shown, st)
	case listed("codeVars", name), strings.HasPrefix(name, "GIT_CONFIG_KEY_"), strings.HasPrefix(name, "BASH_FUNC_"):
		if !slices.Contains([]string{"", "/dev/null", "ignore"}, value.text) {
			w.askBecause(whyNamesLoadedCode, shown)
		}
		if value.out != nil && name == "BASH_ENV" {
			w.walkScript(value.out.text, st.child(nil), flow{})
		}
	case namesProgram().MatchString(name):
		w.programVariable(value, shown, st)
	case name == "PYTHONPATH", name == "NODE_PATH", name == "RUBYLIB":
		w.searchPath(name, value, st)
	case flagVars().MatchString(name) && flagPrograms().MatchString(value.text):
		w.askBecause(whyNamesProgram, shown)
	case name == "ENV" && strings.ContainsAny(value.text, "/`$"), name == "PS4" &&
		strings.ContainsAny(value.text, "`$"):
		w.askBecause(whyNamesShellCode, shown)
	case erlangFlags().MatchString(name) && erlangCode().MatchString(value.text):
		w.askBecause(whyNamesLoadedCode, shown)
	case name == "NODE_OPTIONS" && requires().MatchString(value.text),
		slices.Contains(javaOptions, name) && strings.Contains(value.text, "agent"):
		w.askBecause(whyNamesLoadedCode, shown)
	}
}

// javaOptions are the variables with options that every Java program reads.
var javaOptions = []string{"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"}

// isUsualShell reports whether the value of SHELL is empty or names a known shell.
func isUsualShell(value field) bool {
	known := value.text == "" || slices.Contains(shells, path.Base(value.text))
	return known && !value.vague && !strings.Contains(value.text, ".")
}

// programVariable asks about the value of a variable that names a program, unless the program is harmless.
func (w *walker) programVariable(value field, shown string, st *state) {
	if !harmlessCommand(value) {
		w.ifRefused(value, st)
		w.askBecause(whyNamesProgram, shown)
	}
}

// namesProgram matches names of variables such as CC and GIT_PAGER. Their value is a program that other programs run.
var namesProgram = lazily(`^(CC|CXX|CPP|LD|AR|AS|FC|HOSTCC|HOSTCXX|NM|RANLIB|CARGO|\w+_(RUNNER|WRAPPER|LINKER|` +
	`PAGER|EDITOR|ASKPASS|COMMAND|CMD|LAUNCHER|CC|CXX))$`)

// flagVars matches the names of variables such as CFLAGS, which contain options for programs. flagPrograms matches the
// options that name a program or code.
var (
	flagVars     = lazily(`FLAGS$|_OPTS$|_ARGS$|OPTIONS$`)
	flagPrograms = lazily(`(^|[\s'"])(--eval|-toolexec|-exec|-overlay|-modfile|-vettool|-fplugin|-wrapper|-B/|` +
		`-fuse-ld=/|-Clinker=|SHELL=|-C\s*linker=|-extld|-javaagent|-agentlib|-agentpath|--require|-r\s|--import|` +
		`--loader)`)
)

// erlangFlags matches the names of variables with options for Erlang. erlangCode matches the options that name code.
var (
	erlangFlags = lazily(`^(ERL_\w*FLAGS|ELIXIR_ERL_OPTIONS)$`)
	erlangCode  = lazily(`(^|\s)-(eval|s|run|pa|pz|boot|config|args_file)\s`)
)

// requires matches options of node that load code from a path.
var requires = lazily(`(^|\s)(-r|--require|--import|--loader|--experimental-loader|--inspect|--inspect-brk)(=|\s|$)`)

// harmlessCommand reports whether a command that other programs will run is a harmless pager, editor or ssh client
// with its usual options.
func harmlessCommand(f field) bool {
	words := strings.Fields(f.text)
	switch {
	case len(words) == 0:
		return true
	case f.vague && strings.HasPrefix(f.text, unknownText), strings.ContainsAny(f.text, ";|&`<>\n"),
		strings.Contains(f.text, "$("):
		return false
	}
	// The paths of system directories name the installed pager. The same name in the project may be any program.
	words[0] = unversioned(words[0])
	if !listed("harmlessPrograms", words[0]) && !(strings.HasPrefix(words[0], "/usr/bin/") &&
		listed("harmlessPrograms", path.Base(words[0]))) {
		return false
	}
	return !slices.ContainsFunc(words[1:], func(word string) bool {
		return strings.HasPrefix(word, "+") || strings.HasPrefix(word, "-c") && words[0] != "ssh" ||
			strings.Contains(word, "!") || sshCommands().MatchString(word)
	})
}

// sshCommands matches the names of the settings of ssh with a command.
var sshCommands = lazily(`(?i)(proxy|local|knownhosts)command`)

// systemPath are the directories in which only the administrator can install programs.
var systemPath = []string{"/bin", "/sbin", "/usr", "/snap", "/nix", "/opt/homebrew", "/System", "/Library",
	"/Applications"}

// searchPath judges a variable with a list of directories, such as PATH. It asks if the list has a directory outside
// the project, the home and the system directories.
func (w *walker) searchPath(name string, value field, st *state) {
	for dir := range strings.SplitSeq(value.text, ":") {
		if dir == pathText || strings.Contains(dir, unknownText) || value.origin.is(network) {
			continue
		}
		for _, d := range st.dirs {
			target := resolve(d.path, w.home(dir))
			if !slices.ContainsFunc(append(systemPath, w.place.Dir, w.place.Home),
				func(s string) bool { return within(s, target) }) {
				w.askBecause(whyOuterPath, name, dir)
			}
		}
	}
}
