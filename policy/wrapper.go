package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A wrapper is a command that runs another one, named by its operands.
type wrapper struct {
	valued     string // its options that take a value, as options reads them
	skip       int    // operands before the command
	privileged bool   // it changes who the command runs as, or what it may do
	assigns    bool   // NAME=value may stand before the command
}

const sudoValued = "ugphCcrtTUDR --user --group --prompt --host --close-from --role --type --other-user --chdir --chroot --command-timeout"

var wrappers = map[string]wrapper{
	"sudo": {valued: sudoValued, privileged: true, assigns: true},
	"doas": {valued: "uC", privileged: true}, "dzdo": {valued: sudoValued, privileged: true, assigns: true},
	"pkexec": {valued: "--user", privileged: true}, "gosu": {skip: 1, privileged: true},
	"su-exec": {skip: 1, privileged: true}, "run0": {valued: "ugD --user --group --chdir", privileged: true},
	"runuser": {valued: "ugGcs --user --group --command --shell", privileged: true},
	"su":      {valued: "gGcsCw --group --command --shell --session-command", privileged: true},
	"chroot":  {valued: "--groups --userspec", skip: 1, privileged: true},
	"nsenter": {valued: "tSG --target --setuid --setgid", privileged: true},
	"unshare": {valued: "RwSG --root --wd --setuid --setgid --map-user --map-group", privileged: true},
	"setpriv": {valued: "--reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits", privileged: true},

	"env":   {valued: "uCS --unset --chdir --split-string", assigns: true},
	"nice":  {valued: "n --adjustment"},
	"nohup": {}, "setsid": {}, "command": {}, "builtin": {}, "noglob": {}, "nocorrect": {}, "-": {},
	"exec":    {valued: "a"},
	"busybox": {}, "toybox": {}, "chronic": {}, "unbuffer": {}, "fakeroot": {}, "catchsegv": {}, "ltrace": {valued: "eopsSuanlFA"},
	"timeout": {valued: "ks --kill-after --signal", skip: 1}, "gtimeout": {valued: "ks --kill-after --signal", skip: 1},
	"time": {valued: "fo --format --output"}, "gtime": {valued: "fo --format --output"},
	"stdbuf": {valued: "ioe --input --output --error"},
	"ionice": {valued: "cn --class --classdata"}, "chrt": {valued: "TPD", skip: 1}, "taskset": {skip: 1},
	"setarch": {skip: 1}, "strace": {valued: "abeIoOPsSuUX --output --trace --user"},
	"caffeinate": {valued: "tw"}, "xvfb-run": {valued: "enswfp"}, "dbus-run-session": {}, "systemd-run": {valued: "uptMHG --unit --property"},
	"watch": {valued: "nq --interval"}, "flock": {valued: "wEc --timeout --command", skip: 1},
	"script": {valued: "cEIOBTm --command", skip: 0}, "ssh": {valued: "BbcDEeFIiJLlmOopQRSWw", skip: 1},
}

// unwrap judges the command that a wrapper runs.
func (w *walker) unwrap(name string, wr wrapper, fs []field, st *state, in flow) flow {
	opts, operands := options(fs[1:], wr.valued, true)
	if wr.privileged {
		w.ask("changes privileges: %s", shown(fs))
	}
	if name == "command" && has(opts, "-v", "-V") {
		return flow{}
	}
	inner := st.clone()
	if wr.assigns {
		operands = w.leadingAssigns(operands, inner)
	}
	if wr.skip > len(operands) {
		wr.skip = len(operands)
	}
	w.move(name, opts, operands[:wr.skip], inner)
	operands = operands[wr.skip:]
	if out, ok := w.commandText(name, opts, operands, inner, in); ok {
		return out
	}
	if len(operands) == 0 {
		return flow{piped: in.piped, download: in.download}
	}
	if name == "exec" || name == "command" || name == "builtin" {
		inner = st
	}
	return w.argv(operands, inner, in)
}

// leadingAssigns takes the NAME=value words that come before a command.
func (w *walker) leadingAssigns(operands []field, st *state) []field {
	for len(operands) > 0 {
		name, value, ok := strings.Cut(operands[0].text, "=")
		if !ok || !syntax.ValidName(name) {
			break
		}
		v := *part(operands[0], value)
		st.vars[name] = variable{field: v, exported: true}
		operands = operands[1:]
	}
	return operands
}

// move applies what a wrapper says about the directory its command starts in.
func (w *walker) move(name string, opts []option, skipped []field, st *state) {
	switch name {
	case "env", "sudo", "run0":
		if o, ok := find(opts, "-C", "-D", "--chdir"); ok && o.value != nil {
			st.chdir(*o.value)
			st.pending = nil
		}
	case "chroot":
		st.dirs = []dir{{path: "/"}}
	case "ssh":
		st.dirs = []dir{{path: w.place.Home}}
	}
	for _, f := range skipped {
		if name == "flock" && f.text != "" {
			w.write(f, st, "locks "+f.src)
		}
	}
}

// commandText handles wrappers that take their command as one text for a shell.
func (w *walker) commandText(name string, opts []option, operands []field, st *state, in flow) (flow, bool) {
	switch name {
	case "su", "runuser", "flock", "script":
		if o, ok := find(opts, "-c", "--command", "--session-command"); ok && o.value != nil {
			return w.nested(o.value.text, *o.value, st.child(nil), in), true
		}
		for i, f := range operands {
			if f.text == "-c" && i+1 < len(operands) {
				return w.nested(operands[i+1].text, operands[i+1], st.child(nil), in), true
			}
		}
		return flow{}, name == "su" || name == "script"
	case "env":
		if o, ok := find(opts, "-S", "--split-string"); ok && o.value != nil {
			return w.nested(o.value.text+" "+joined(operands).text, *o.value, st.child(nil), in), true
		}
	case "watch", "ssh":
		text := joined(operands)
		return w.nested(text.text, text, st.child(nil), in), true
	}
	return flow{}, false
}

// joined is the text some programs make of their operands for a shell.
func joined(operands []field) field {
	var f field
	var words, written []string
	for _, o := range operands {
		words, written = append(words, o.text), append(written, o.src)
		f.vague, f.download = f.vague || o.vague, f.download || o.download
	}
	f.text, f.src = strings.Join(words, " "), strings.Join(written, " ")
	return f
}

var (
	shells       = []string{"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "yash", "csh", "tcsh", "at", "batch"}
	interpreters = []string{"python", "python2", "python3", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "pwsh", "powershell", "cmd", "osascript", "tclsh"}
)

func isShell(name string) bool {
	return slices.Contains(shells, name) || slices.Contains(interpreters, name) || strings.HasPrefix(name, "python3.")
}

// shell judges what a shell or another interpreter is given to run: the text after
// -c, a file, or what it reads.
func (w *walker) shell(name string, fs []field, st *state, in flow) flow {
	out := flow{piped: true, download: in.download}
	if !slices.Contains(shells, name) {
		w.interpreter(name, fs, in)
		return out
	}
	for _, f := range fs[1:] {
		// Shells differ in whether a text that starts with a dash is one.
		if strings.HasPrefix(f.text, "-") && strings.ContainsAny(f.text, " \t\n") {
			w.nested(f.text, f, st.child(nil), in)
		}
	}
	opts, operands := options(fs[1:], "oO --rcfile --init-file", true)
	switch {
	case name == "at" || name == "batch":
	case has(opts, "-c", "--command"):
		if len(operands) == 0 {
			return out
		}
		args := operands[1:]
		return w.nested(operands[0].text, operands[0], st.child(args[min(1, len(args)):]), in)
	case has(opts, "--version", "--help"):
		return out
	case len(operands) > 0 && !has(opts, "-s") && !isStdin(operands[0].text):
		w.scriptFile(fs, operands, st.child(operands[1:]), in)
		return out
	}
	w.shellInput(fs, st, in)
	return out
}

func isStdin(s string) bool { return s == "-" || s == "/dev/stdin" || s == "/dev/fd/0" }

// shellInput judges what a shell reads from its standard input.
func (w *walker) shellInput(fs []field, st *state, in flow) {
	switch {
	case in.download:
		w.unknown("runs what it downloads: %s", shown(fs))
	case !in.piped:
		return
	case !in.known:
		w.unknown("the text does not tell what the shell reads and runs: %s", shown(fs))
	}
	if in.text != "" {
		inner := st.child(nil)
		w.script(in.text, inner, flow{})
	}
}

// scriptFile judges a file that a shell runs. A file of the disk is beyond this
// package; one that this very command downloads is not.
func (w *walker) scriptFile(fs, operands []field, st *state, in flow) {
	if len(operands) == 0 {
		return
	}
	f := operands[0]
	switch {
	case f.out != nil:
		f.out.piped = true
		w.shellInput(fs, st, *f.out)
	case isStdin(f.text):
		w.shellInput(fs, st, in)
	case f.download || w.downloaded[f.text]:
		w.unknown("runs what it downloads: %s", shown(fs))
	case f.vague:
		w.unknown("the text does not tell which script this runs: %s", shown(fs))
	}
}

// interpreter judges a program that runs a language this package does not read.
func (w *walker) interpreter(name string, fs []field, in flow) {
	for _, f := range fs[1:] {
		if f.download || w.downloaded[f.text] || (f.out != nil && f.out.download) {
			w.unknown("runs what it downloads: %s", shown(fs))
		}
	}
	_, operands := options(fs[1:], "cemWXI", true)
	if in.download && (len(fs) == 1 || len(operands) == 0 || isStdin(operands[0].text)) && !namesProgram(fs) {
		w.unknown("runs what it downloads: %s", shown(fs))
	}
	if name == "cmd" || name == "pwsh" || name == "powershell" {
		w.unknown("a language that cannot be judged: %s", shown(fs))
	}
}

// namesProgram says whether an interpreter got its program on the command line, so
// that what it reads is only data.
func namesProgram(fs []field) bool {
	for _, f := range fs[1:] {
		switch f.text {
		case "-c", "-e", "-m", "-E", "-ne", "-pe", "-p", "-r", "--eval", "--print", "-n":
			return true
		}
	}
	return false
}

const xargsValued = "aEILnPsdJRSj --arg-file --delimiter --max-lines --max-args --max-procs --max-chars --replace --process-slot-var --jobs"

// xargs judges the command that gets what is read as further words.
func (w *walker) xargs(name string, fs []field, st *state, in flow) {
	opts, inner := options(fs[1:], xargsValued, true)
	read := in.operands
	switch {
	case in.known && in.piped:
		for word := range strings.FieldsSeq(strings.Trim(in.text, `'"`)) {
			read = append(read, literal(strings.Trim(word, `'"\`)))
		}
	case len(read) == 0:
		f := unknownField("what it reads")
		f.download = in.download
		read = []field{f}
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
		return
	}
	w.argv(substitute(inner, mark, read), st.clone(), flow{})
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
	placed := false
	for _, f := range words {
		if mark == "" || !strings.Contains(f.text, mark) {
			out = append(out, f)
			continue
		}
		placed = true
		for _, o := range operands {
			if len(out) > maxFields || strings.Count(f.text, mark)*len(o.text) > maxText {
				out = append(out, unknownField(f.src))
				break
			}
			g := f
			g.text = strings.ReplaceAll(f.text, mark, o.text)
			g.pat = strings.ReplaceAll(f.pat, mark, o.pat)
			g.vague, g.glob = f.vague || o.vague, f.glob || o.glob
			g.swept, g.download = o.swept, f.download || o.download
			out = append(out, g)
		}
	}
	if !placed {
		out = append(out, operands...)
	}
	return out
}

// fetch judges where a download is stored.
func (w *walker) fetch(name string, fs []field, st *state) {
	valued := "oXHdFuAebcxKTmrUCEhtwyYzDQP --output --output-dir"
	if name == "wget" {
		valued = "oOPaBitTQUeRAIXDlw --output-document --directory-prefix --output-file"
	}
	opts, _ := options(fs[1:], valued, false)
	for _, o := range opts {
		switch {
		case o.value == nil || isStdin(o.value.text) || o.name == "-o" && name == "wget":
		case o.name == "-o" && name == "curl", o.name == "--output", o.name == "-O" && name == "wget", o.name == "--output-document":
			w.write(*o.value, st, "downloads to "+o.value.text)
			w.downloaded[o.value.text] = true
			w.downloaded["./"+o.value.text] = true
		case o.name == "--output-dir", o.name == "-P" && name == "wget", o.name == "--directory-prefix":
			w.write(*o.value, st, "downloads to "+o.value.text)
		}
	}
}
