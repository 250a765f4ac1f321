package shell

import (
	"slices"
	"strings"
)

// escape judges the tools that run commands or write files by what their own small
// languages say. It says whether the program is one of them.
func (w *walker) escape(name string, fs []field, st *state, in flow) bool {
	switch name {
	case "gdb", "lldb":
		w.debuggers(fs, st)
		return false
	case "awk", "gawk", "mawk", "nawk", "busybox-awk":
		w.awk(fs, st, in)
	case "sed", "gsed", "ssed":
		w.editInPlace(fs, st)
		w.sed(fs, st)
	case "vi", "vim", "nvim", "ex", "view", "gvim", "vimdiff", "rvim", "ed", "red", "kak", "hx":
		w.editor(name, fs, st, in)
	case "less", "more", "most":
		w.lineCommands(fs, st)
	case "man":
		for _, o := range optionsWith(fs, "P --pager -H --html") {
			if o.name == "-P" || o.name == "--pager" || o.name == "-H" || o.name == "--html" {
				w.nested(o.value.text, *o.value, st.child(nil), flow{})
				if !w.harmlessCommand(*o.value, st) {
					w.ask("names a program that others will run: %s", shown(fs))
				}
			}
		}
	case "make", "gmake", "nmake", "just", "ninja":
		w.make(fs, st, in)
	case "zip", "split", "csplit", "uniq", "xxd", "shuf", "sort", "tcpdump", "nmap", "ssh-add", "ssh-agent":
		w.toolCommands(name, fs, st)
	default:
		return false
	}
	return true
}

func optionsWith(fs []field, valued string) []option {
	opts, _ := options(fs[1:], valued, false)
	return slices.DeleteFunc(opts, func(o option) bool { return o.value == nil })
}

// debuggers judges the commands that a debugger is given on its command line.
func (w *walker) debuggers(fs []field, st *state) {
	for i, f := range fs {
		name, value, has := strings.Cut(f.text, "=")
		switch {
		case !slices.Contains([]string{"-ex", "-iex", "-o", "-O", "--eval-command", "--init-eval-command", "--one-line", "-eval-command"}, name):
		case has:
			w.debugger(part(f, value), fs, st)
		case i+1 < len(fs):
			w.debugger(&fs[i+1], fs, st)
		}
	}
}

func (w *walker) debugger(f *field, fs []field, st *state) {
	if f == nil {
		return
	}
	for _, word := range []string{"shell ", "!", "pipe ", "platform shell ", "python ", "script "} {
		if rest, ok := strings.CutPrefix(f.text, word); ok {
			w.ask("runs a command: %s", shown(fs))
			w.nested(rest, *part(*f, rest), st.child(nil), flow{})
		}
	}
}

// toolCommands judges the few options of everyday tools that name a program.
func (w *walker) toolCommands(name string, fs []field, st *state) {
	names := map[string][]string{
		"zip": {"-TT", "--unzip-command"}, "split": {"--filter"}, "sort": {"--compress-program"}, "tcpdump": {"-z"}, "nmap": {"--script"}, "ssh-agent": {},
	}[name]
	for i, f := range fs {
		option, value, has := strings.Cut(f.text, "=")
		switch {
		case !slices.Contains(names, option):
		case has:
			w.nested(value, *part(f, value), st.child(nil), flow{})
		case i+1 < len(fs):
			w.nested(fs[i+1].text, fs[i+1], st.child(nil), flow{})
			if name == "zip" {
				w.ask("runs a command: %s", shown(fs))
			}
		}
	}
	if name == "sort" || name == "shuf" {
		for _, o := range optionsWith(fs, "oktTSlbna --output --key") {
			if o.name == "-o" || o.name == "--output" {
				w.write(*o.value, st, "writes to "+o.value.src)
			}
		}
	}
	if name == "csplit" {
		for _, o := range optionsWith(fs, "fbn --prefix --suffix-format --digits") {
			if o.name == "-f" || o.name == "--prefix" {
				w.write(*o.value, st, "writes to "+o.value.src)
			}
		}
	}
	if _, operands := options(fs[1:], "fswcglLo --skip-fields --skip-chars --check-chars", false); (name == "uniq" || name == "xxd") && len(operands) > 1 {
		w.write(operands[1], st, "writes to "+operands[1].src)
	}
	if _, operands := options(fs[1:], "abCln --filter --lines --bytes --suffix-length --additional-suffix", false); name == "split" && len(operands) > 1 {
		w.write(operands[1], st, "writes to "+operands[1].src)
	}
	if name == "ssh-agent" && len(fs) > 1 && !strings.HasPrefix(fs[1].text, "-") {
		w.argv(fs[1:], st.clone(), flow{})
	}
}

// editor judges the commands that an editor is given on its command line or reads.
func (w *walker) editor(name string, fs []field, st *state, in flow) {
	w.lineCommands(fs, st)
	opts, operands := options(fs[1:], "cSsuUTwW --cmd", false)
	silent := name == "ed" || name == "red" || name == "ex" || slices.ContainsFunc(opts, func(o option) bool { return o.name == "-e" || o.name == "-E" })
	if silent && in.piped && in.known {
		for line := range strings.Lines(in.text) {
			w.editorCommand(line, literal(line), fs, st)
		}
	}
	if silent || slices.ContainsFunc(opts, func(o option) bool { return o.name == "-c" }) {
		for _, f := range operands {
			if !strings.HasPrefix(f.text, "+") {
				w.write(f, st, "edits "+f.src)
			}
		}
	}
}

// lineCommands judges -c CMD, --cmd CMD and +CMD.
func (w *walker) lineCommands(fs []field, st *state) {
	for i, f := range fs[1:] {
		switch {
		case (f.text == "-c" || f.text == "--cmd") && i+2 < len(fs):
			w.editorCommand(fs[i+2].text, fs[i+2], fs, st)
		case strings.HasPrefix(f.text, "-c") && len(f.text) > 2:
			w.editorCommand(f.text[2:], f, fs, st)
		case strings.HasPrefix(f.text, "+") && len(f.text) > 1:
			w.editorCommand(f.text[1:], f, fs, st)
		}
	}
}

var editorEscapes = lazily(`(?:^|[|:\s%.,0-9$])!\s*(.*)|\b(?:system|systemlist|job_start|term_start|jobstart|termopen|delete|writefile|libcall|rename|execute|feedkeys)\s*\(|^\s*:?\s*(?:term(?:inal)?|lua\w*|py3?\w*|python3?|ruby|perl\w*|tcl|mz\w*|source|so|exe\w*|set?\s+(?:shell|grepprg|makeprg|equalprg)\S*|make|grep|sil\w*\s+!.*|autocmd|au)\b`)

// editorWrites are the commands of editors that write to the file they name.
var editorWrites = lazily(`^\s*:?[%0-9,$]*(?:w|wri|write|sav|saveas|wq|x|xit|up|update)!?\s+([^!\s]\S*)\s*$`)

func (w *walker) editorCommand(text string, f field, fs []field, st *state) {
	if m := editorWrites().FindStringSubmatch(text); m != nil {
		w.write(*part(f, m[1]), st, "writes to "+m[1])
	}
	m := editorEscapes().FindStringSubmatch(text)
	if m == nil {
		return
	}
	w.ask("runs a command from an editor: %s", shown(fs))
	if m[1] != "" {
		w.nested(m[1], *part(f, m[1]), st.child(nil), flow{})
	}
}

// make judges variables that name the shell, and rules that stand on the command line.
func (w *walker) make(fs []field, st *state, in flow) {
	if i := slices.IndexFunc(fs, func(f field) bool { return f.text == "--command" || f.text == "-c" }); i > 0 && commandName(fs[0]) == "just" {
		w.argv(fs[i+1:], st.child(nil), in)
	}
	for _, name := range []string{"Makefile", "makefile", "GNUmakefile"} {
		if w.originOf(literal(name), st).is(foreign) {
			w.unknown("runs what it downloads or decodes: %s", shown(fs))
		}
	}
	for i, f := range fs[1:] {
		name, value, _ := strings.Cut(f.text, "=")
		switch {
		case name == "SHELL" || name == ".SHELLFLAGS" || name == "MAKEFLAGS" && strings.Contains(value, "eval"):
			if !slices.Contains([]string{"/bin/bash", "/bin/sh", "/usr/bin/bash", "bash", "sh", "/bin/zsh", "/usr/bin/env bash"}, value) {
				w.ask("names a program that others will run: %s", shown(fs))
				w.nested(value, *part(f, value), st.child(nil), flow{})
			}
		case name == "--eval" && value == "" && i+2 < len(fs):
			w.makeRules(fs[i+2], fs, st)
		case name == "--eval":
			w.makeRules(*part(f, value), fs, st)
		case f.text == "-f" && i+2 < len(fs) && isStdin(fs[i+2].text) && in.known:
			w.makeRules(literal(in.text), fs, st)
		case f.text == "-f" && i+2 < len(fs) && w.runsForeign(fs[i+2], st):
			w.unknown("runs what it downloads or decodes: %s", shown(fs))
		}
	}
}

func (w *walker) makeRules(f field, fs []field, st *state) {
	w.ask("rules that stand on the command line: %s", shown(fs))
	for line := range strings.Lines(f.text) {
		if _, recipe, ok := strings.Cut(line, ";"); ok {
			w.nested(recipe, f, st.child(nil), flow{})
		}
		if recipe, ok := strings.CutPrefix(line, "\t"); ok {
			w.nested(strings.TrimLeft(recipe, "@-"), f, st.child(nil), flow{})
		}
		if _, call, ok := strings.Cut(line, "$(shell "); ok {
			w.nested(strings.TrimRight(call, ")\n"), f, st.child(nil), flow{})
		}
	}
}
