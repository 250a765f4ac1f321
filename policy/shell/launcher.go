package shell

import (
	"slices"
	"strings"
)

// wrapper is the row of a program in the part wrappers of programs.txt. Such a program, like env or sudo, runs another
// command, which its operands name.
type wrapper struct {
	valued     string   // options that take a value, in the notation of the function options
	skip       int      // number of operands before the command
	privileged bool     // the program changes the user or the rights of the command
	assigns    bool     // NAME=value may stand before the command
	launcher   bool     // the package knows only that the program runs a command
	subs       []string // subcommands that run a command; empty means that none is needed
	texts      bool     // each operand is a text for a shell
	packages   bool     // the program runs programs of the project's packages, which the table need not know
}

// runsCommand reports whether the words fs of a wrapper make it run another command. A wrapper with subcommands needs
// one of them.
func (wr wrapper) runsCommand(fs []field) bool {
	_, operands := options(fs[1:], wr.valued, true)
	return len(wr.subs) == 0 || len(operands) > 0 && slices.Contains(wr.subs, operands[0].text)
}

var wrappers = table("wrappers", func(said string) wrapper {
	m := members(said, "valued", "skip", "privileged", "assigns", "launcher", "subs", "texts", "packages")
	return wrapper{
		valued: strings.Join(m["valued"],
			" "), skip: figure(m["skip"]), privileged: m["privileged"] != nil, assigns: m["assigns"] != nil,
		launcher: m["launcher"] != nil, subs: m["subs"], texts: m["texts"] != nil,
		packages: m["packages"] != nil,
	}
})

// outputOptions are the options that name an output file in most programs.
var outputOptions = []string{"-o", "--output", "--out", "--outfile", "--out-file", "--output-file", "--output-dir",
	"--outdir", "--out-dir", "--dest", "--destination", "--install-dir", "--prefix", "--target-dir", "--log-file",
	"--logfile"}

// judgeOutputs judges the values of outputOptions of an unknown program, if they are paths.
func (w *walker) judgeOutputs(fs []field, st *state) {
	for _, f := range valuesOf(fs[1:min(len(fs), 4*maxSuffixes)], outputOptions) {
		if strings.Contains(f.text, "/") && !strings.Contains(f.text, "://") && !f.vague {
			f.made = true
			w.judgeWrite(f, st, deedWrites.With(f.text))
		}
	}
}

// maxSuffixes is the maximum number of suffixes that suffixesOf judges.
const maxSuffixes = 64

// suffixesOf judges the words of an unknown program as if the program ran another command. Such a command may begin at
// any word, or be the value of an option. Only a refused command changes the verdict, because most words are not
// commands.
func (w *walker) suffixesOf(fs []field, st *state, in flow) {
	if w.suffixes || len(fs) == 1 {
		return
	}
	w.refusedOnly++
	w.suffixes = true
	for i := 1; i < len(fs) && i <= maxSuffixes && w.steps <= maxSteps; i++ {
		if w.verdict.Tier == Refused {
			break
		}
		if startsCommand(fs[i]) {
			w.judgeWords(fs[i:], st.clone(), in)
			w.clientWithin(fs[i:], st, in)
		}
	}
	w.suffixes = false
	w.optionScripts(fs, st)
	w.suffixes = false
	w.refusedOnly--
	if w.steps > maxSteps {
		w.askUnknown(whyLong)
	}
}

// clientWithin judges a database client that another program runs, for example in a container. At this point the
// walker looks only for refused commands. clientWithin lifts that limit, so that the walker also asks about
// statements that remove data.
func (w *walker) clientWithin(fs []field, st *state, in flow) {
	name := commandName(fs[0])
	if _, ok := clients(name); !ok && name != "dropdb" {
		return
	}
	only := w.refusedOnly
	w.refusedOnly = only - 1
	w.judgeDatabase(name, fs, st, in)
	w.judgeRemoteLoss(name, fs)
	w.refusedOnly = only
}

// ifRefused judges a text that another program may pass to a shell. It changes the verdict only if the command is
// refused.
func (w *walker) ifRefused(f field, st *state) {
	if f.vague {
		return
	}
	w.refusedOnly++
	w.walkNested(f.text, f, st.child(nil), flow{})
	w.refusedOnly--
}

// scriptName matches names of scripts of the project, such as npm:build, as some launchers take them.
var scriptName = lazily(`^(npm|pnpm|yarn|bun|node):[\w*:-]+$`)

// startsCommand reports whether a word may be the name of a program, and so the first word of a command.
func startsCommand(f field) bool {
	return f.text != "" && f.text[0] != '-' && !f.vague && !strings.ContainsAny(f.text, " \t\n;|&<>()") &&
		!scriptName().MatchString(f.text)
}

// takesCommand reports whether the name of an option says that its value is a command.
func takesCommand(option string) bool {
	if listed("commandOptions", option) {
		return true
	}
	words := strings.Split(strings.TrimLeft(option, "-"), "-")
	return strings.HasPrefix(option, "--") && slices.ContainsFunc(words,
		func(word string) bool { return listed("commandWords", word) })
}

// optionScripts judges the values of options with a name that says that the value is a command, such as --exec.
func (w *walker) optionScripts(fs []field, st *state) {
	for i, f := range fs {
		if i == 0 || i > 4*maxSuffixes || w.steps > maxSteps {
			continue
		}
		name, value, has := strings.Cut(f.text, "=")
		switch {
		case !takesCommand(name):
		case has:
			w.walkNested(strings.TrimPrefix(value, "exec="), *part(f, value), st.child(nil), flow{})
		case i+1 < len(fs) && !strings.HasPrefix(name, "--") && !strings.ContainsAny(fs[i+1].text, " \t\n/"):
			w.ifRefused(fs[i+1], st) // the value is one word, and may not be a command, as in perf record -e EVENT
		case i+1 < len(fs):
			w.walkNested(fs[i+1].text, fs[i+1], st.child(nil), flow{})
		}
	}
}

// judgeLauncher judges the command that a launcher runs. The command follows the subcommands of the launcher, or is in
// texts that the launcher passes to a shell.
func (w *walker) judgeLauncher(wr wrapper, fs []field, st *state, in flow) flow {
	w.suffixesOf(fs, st, in)
	if wr.packages {
		w.packages++
		defer func() { w.packages-- }()
	}
	inner := st.clone()
	_, operands := options(fs[1:], wr.valued, true)
	for len(operands) > 0 && slices.Contains(wr.subs, operands[0].text) {
		_, operands = options(operands[1:], wr.valued, true)
	}
	if wr.assigns {
		operands = w.leadingAssigns(operands, inner)
	}
	skipped := operands[:min(wr.skip, len(operands))]
	w.applyDirectory(commandName(fs[0]), nil, skipped, inner)
	operands = operands[len(skipped):]
	w.optionScripts(fs[:len(fs)-len(operands)], inner)
	if wr.texts {
		for i, f := range fs[1:] {
			if i < maxSuffixes && strings.ContainsAny(f.text, " \t\n") {
				w.walkNested(unquote(f.text), f, inner.child(nil), flow{})
			}
		}
	} else if len(operands) > 0 && strings.ContainsAny(operands[0].text, " \t\n") {
		return w.walkNested(operands[0].text, operands[0], inner.child(nil), in)
	}
	if len(operands) > 0 && (!wr.texts || startsCommand(operands[0])) {
		return w.judgeWords(operands, inner, in)
	}
	return flow{piped: in.piped, origin: in.origin}
}
