package shell

import "slices"

// addressCommands matches an address of socat that starts a command, such as EXEC:ls.
var addressCommands = lazily(`(?i)^(?:exec|system|shell)(?:-[a-z]+)?:(.*)$`)

// addresses judges the commands in the addresses of socat.
func (w *walker) addresses(fs []field, st *state) {
	for _, f := range fs[1:] {
		if m := addressCommands().FindStringSubmatch(f.text); m != nil {
			w.walkNested(m[1], *part(f, m[1]), st.child(nil), flow{})
			w.askBecause(whyConnectionCommand, shown(fs))
		}
	}
}

// cmake judges cmake -E, which runs a file operation or another program.
func (w *walker) cmake(fs []field, st *state, in flow) {
	at := slices.IndexFunc(fs, func(f field) bool { return f.text == "-E" })
	if at < 0 || at+1 >= len(fs) {
		return
	}
	sub, args := fs[at+1].text, fs[at+2:]
	_, operands := options(args, "", false)
	switch sub {
	case "rm", "remove", "remove_directory":
		for _, f := range operands {
			w.judgeDestroy(f, st, sub != "remove", verbRemoves, fs)
		}
	case "copy", "copy_if_different", "copy_directory", "copy_directory_if_different", "rename", "create_symlink",
		"create_hardlink":
		if len(operands) > 0 {
			w.judgeWrite(operands[len(operands)-1], st, shown(fs))
		}
	case "touch", "touch_nocreate", "make_directory":
		w.judgeWrites(operands, st, deedCreates)
	case "tar":
		w.judgeArchive("tar", fs[at+1:], st)
	case "env", "time":
		w.judgeWords(fs[at+1:], st.clone(), in)
	case "chdir":
		if len(args) > 1 {
			inner := st.clone()
			inner.chdir(args[0])
			inner.pending = nil
			w.judgeWords(args[1:], inner, in)
		}
	}
}
