package shell

import (
	"path"
	"slices"
	"strings"
)

// role is the meaning of an option's value for the judgement.
type role string

const (
	roleUnlisted role = ""       // the value is judged by its shape
	rolePlain    role = "plain"  // a text, a number, an address or a file that is only read
	roleWrites   role = "writes" // a file or a directory that the program writes
	roleLoads    role = "loads"  // a file with code that the program runs, or settings that name such code
	roleRuns     role = "runs"   // a command that the program runs
	roleAsks     role = "asks"   // no value: the option itself is asked about
)

// program is the row of an everyday program.
type program struct {
	net   bool // it fetches from any address
	reads bool // it only reads: options without a role are harmless
	stop  int  // number of operands before the words of another program; 0 means never
	roles []optionRole
	rest  []string // options after whose value the words of another program begin
	edits []string // options with which it writes its operands
	last  int      // it writes its last operand, if it has at least this many operands; 0 means never
	edit  bool     // it writes all its operands
	first bool     // its first operand is a file with code
}

// optionRole is the role of the options that match a pattern. The pattern NAME= matches an operand that sets NAME.
type optionRole struct {
	pattern string
	role    role
}

// everyday looks up the rows of the part programs.
var everyday = table("programs", func(said string) program {
	m := members(said, "reads", "stop", "plain", "writes", "loads", "runs", "asks", "edits", "last", "first", "net",
		"rest")
	p := program{
		reads: m["reads"] != nil, stop: figure(m["stop"]), edits: m["edits"], last: figure(m["last"]),
		net: m["net"] != nil, rest: m["rest"], first: m["first"] != nil,
		edit: m["edits"] != nil && len(m["edits"]) == 0,
	}
	for _, r := range []role{roleRuns, roleLoads, roleAsks, roleWrites, rolePlain} {
		for _, name := range m[string(r)] {
			p.roles = append(p.roles, optionRole{name, r})
		}
	}
	return p
})

// row returns the row of a program. A walker reads each row once.
func (w *walker) row(name string) (program, bool) {
	p, read := w.rows[name]
	if !read {
		if row, found := everyday(name); found {
			p = &row
		}
		w.rows[name] = p
	}
	if p == nil {
		return program{}, false
	}
	return *p, true
}

// role returns the role of an option. The program's row takes precedence over the options that are plain in every
// program.
func (p program) role(name string) role {
	r, _ := p.matchOption(name)
	return r
}

// matchOption returns the role of an option, and the value that a pattern such as -o* finds in the same word.
func (p program) matchOption(name string) (r role, glued string) {
	for _, r := range p.roles {
		head, tail, any := strings.Cut(r.pattern, "*")
		switch {
		case r.pattern == name:
			return r.role, ""
		case any && len(name) >= len(head)+len(tail) && strings.HasPrefix(name, head) && strings.HasSuffix(name, tail):
			return r.role, name[len(head):]
		}
	}
	switch {
	case listed("plainOptions", name):
		return rolePlain, ""
	case slices.Contains(outputOptions, name) && name != "-o":
		return roleWrites, ""
	}
	return roleUnlisted, ""
}

// programParts are the parts of the table whose names are known programs.
var programParts = []string{
	"programs", "wrappers", "textPrograms", "tools", "diskTools", "settings", "changing", "privileges", "fetchers",
	"senders", "losses", "clients", "terminals", "builtins",
}

// version matches the version at the end of a program's name.
var version = lazily(`[-.]?[0-9]+(\.[0-9]+)*$`)

// unversioned returns the name of a program in the table: gcc for gcc-13.
func unversioned(name string) string {
	if short := version().ReplaceAllString(name, ""); !listed("programs", name) && listed("programs", short) {
		return short
	}
	return name
}

// isProgram reports whether the table knows a program.
func isProgram(name string) bool {
	name = unversioned(name)
	return isShell(name) || isDiskTool(name) || slices.ContainsFunc(programParts,
		func(part string) bool { return listed(part, name) })
}

// judgeProgram asks about an unknown program, and judges the options of a known one.
func (w *walker) judgeProgram(name string, fs []field, st *state) {
	if len(fs[0].text) == 0 || fs[0].vague || fs[0].glob {
		return
	}
	if !w.runnable(name, fs, st) {
		return
	}
	p, found := w.row(unversioned(name))
	if !found && listed("textPrograms", name) {
		return
	}
	if found {
		w.optionRoles(p, fs, st)
	}
}

// runnable asks about an unknown program, unless it lies in the tree. It reports whether the table knows the program.
func (w *walker) runnable(name string, fs []field, st *state) bool {
	word := slashRaw(fs[0].text)
	known := isProgram(name)
	if !strings.Contains(fs[0].text, "/") {
		if !known && w.packages == 0 && w.declaring == 0 && !w.ownPath(st) {
			w.askBecause(whyUnknownProgram, name, shown(fs))
		}
		return known
	}
	for _, target := range w.targets(literal(word), st) {
		dir := path.Base(path.Dir(target))
		switch {
		case w.place.writable(target, false):
			return known // a program of the project
		case known && slices.Contains(binDirs, dir):
		default:
			w.askBecause(whyOuterProgram, shown(fs))
		}
	}
	return known
}

// ownPath reports whether the PATH finds programs in the tree.
func (w *walker) ownPath(st *state) bool {
	return slices.ContainsFunc(strings.Split(st.vars["PATH"].text, ":"), func(dir string) bool {
		return dir != "" && slices.ContainsFunc(w.targets(literal(dir), st),
			func(t string) bool { return within(w.place.Dir, t) })
	})
}

// binDirs are the names of directories with installed programs.
var binDirs = []string{"bin", "sbin", "shims", "libexec", "Scripts", "MacOS", "scripts", "cmd"}

// optionRoles judges the words of a known program by its row.
func (w *walker) optionRoles(p program, fs []field, st *state) {
	var operands []field
	edited := p.edit
	if wr, ok := wrappers(commandName(fs[0])); ok && wr.runsCommand(fs) {
		p.reads = true // the inner command was judged already
	}
	for i := 1; i < len(fs) && i <= 4*maxSuffixes; i++ {
		f := fs[i]
		if f.text == "--" {
			operands = append(operands, fs[i+1:]...)
			break
		}
		if len(f.text) < 2 || f.text[0] != '-' || f.vague && strings.HasPrefix(f.text, "$") {
			w.operandRole(p, f, fs, st)
			if operands = append(operands, f); p.stop > 0 && len(operands) >= p.stop {
				break
			}
			continue
		}
		o, used := p.readOption(fs, i)
		i += used
		edited = edited || p.startsEdit(o.name, f.text)
		w.judgeOption(p, o, fs, st)
		if slices.Contains(p.rest, o.name) {
			break
		}
	}
	if edited {
		for _, f := range operands {
			if looksLikeFile(f) {
				f.made = true
				w.judgeWrite(f, st, deedEdits.With(f.src))
			}
		}
		return
	}
	w.judgeOperands(p, operands, fs, st)
}

// judgeOption judges one option by its role and its value.
func (w *walker) judgeOption(p program, o option, fs []field, st *state) {
	w.judgeUpload(p, o, fs, st)
	if r := p.role(o.name); r == roleAsks {
		w.askBecause(whyOption, shown(fs))
	} else if o.value != nil && !(r == roleUnlisted && (p.reads || p.net && isURL(o.value.text))) {
		w.optionValue(r, o.name, *o.value, fs, st)
	}
}

// operandRole judges an operand that the row gives a role: NAME=VALUE, or a word that is asked about.
func (w *walker) operandRole(p program, f field, fs []field, st *state) {
	if name, value, has := strings.Cut(f.text, "="); has {
		if r := p.role(name + "="); r != roleUnlisted {
			w.optionValue(r, name+"=", *part(f, value), fs, st)
		}
	}
	if p.role(f.text) == roleAsks {
		w.askBecause(whyWord, shown(fs))
	}
}

// startsEdit reports whether the option name, in the word text, makes the program write its operands. The letter of a
// short option may stand in a cluster.
func (p program) startsEdit(name, text string) bool {
	return slices.Contains(p.edits, name) || text[1] != '-' && slices.ContainsFunc(p.edits, func(e string) bool {
		return len(e) == 2 && strings.Contains(text[1:], e[1:])
	})
}

// judgeOperands judges the operands of a program that does not write them all.
func (w *walker) judgeOperands(p program, operands, fs []field, st *state) {
	switch {
	case p.last > 0 && len(operands) >= p.last:
		last := operands[len(operands)-1]
		last.made = true
		w.judgeWrite(last, st, deedWrites.With(last.src))
	case p.first && len(operands) > 0:
		w.optionValue(roleLoads, "", operands[0], fs, st)
	// Other rules judge the operands of perlica, and of a program whose operands are another command.
	case p.stop == 0 && commandName(fs[0]) != "perlica" && !looksInside(commandName(fs[0]), fs):
		w.foreignOperands(p, operands, fs, st)
	}
}

// foreignOperands asks about operands that are files outside. An operand of a program that fetches may be a route of
// a server.
func (w *walker) foreignOperands(p program, operands, fs []field, st *state) {
	if p.reads {
		return
	}
	for _, f := range operands {
		text := w.home(f.text)
		if _, file, found := strings.Cut(text, "@"); p.net && found {
			text, f = w.home(file), *part(f, w.home(file)) // NAME@FILE
		}
		route := p.net && path.IsAbs(text) && !w.rooted(text)
		if !route && looksLikeFile(f) && w.outside(f, st) {
			w.askBecause(whyOuterFile, shown(fs))
		}
	}
}

// uploadOptions are options of programs that fetch. Their value is a file to send.
var uploadOptions = strings.Fields("-T --upload-file --post-file --body-file --file --notes-file --attach --attachment")

// judgeUpload asks about a file outside that an option sends: --upload-file FILE, --data @FILE, --form NAME=@FILE.
func (w *walker) judgeUpload(p program, o option, fs []field, st *state) {
	if !p.net || o.value == nil {
		return
	}
	file := o.value.text
	if !slices.Contains(uploadOptions, o.name) {
		at := strings.IndexAny(file, "@<")
		if at < 0 {
			return
		}
		file, _, _ = strings.Cut(file[at+1:], ";")
	}
	text := w.home(file)
	route := path.IsAbs(text) && !w.rooted(text)
	if !route && !strings.ContainsAny(text, " \n") && w.outside(*part(*o.value, text), st) {
		w.askBecause(whySendsOuter, shown(fs))
	}
}

// looksLikeFile reports whether an operand may be a file and not a text or an address.
func looksLikeFile(f field) bool {
	return !strings.Contains(f.text, "://") && !strings.ContainsAny(f.text, " \n")
}

// readOption reads the option at i. used is the number of further words that it takes. After an option without a role,
// only the shape of the next word decides whether it is a value.
func (p program) readOption(fs []field, i int) (o option, used int) {
	text := fs[i].text
	name, value, has := strings.Cut(text, "=")
	next := func(r role) (*field, int) {
		switch {
		case i+1 >= len(fs) || r == roleAsks:
			return nil, 0
		case r != roleUnlisted:
			return &fs[i+1], 1
		case strings.HasPrefix(fs[i+1].text, "-"):
			return nil, 0
		}
		return &fs[i+1], 0
	}
	switch r, glued := p.matchOption(name); {
	case slices.Contains(p.edits, name):
		return option{name: name}, 0
	case glued != "" && !has && text[1] != '-':
		return option{name, part(fs[i], glued)}, 0
	case has:
		return option{name, part(fs[i], value)}, 0
	case r == roleUnlisted && text[1] != '-' && len(text) > 2:
		if first := text[:2]; p.role(first) != roleUnlisted && p.role(first) != roleAsks {
			return option{first, part(fs[i], text[2:])}, 0
		}
		if strings.ContainsAny(text[2:3], "/~.") {
			return option{text[:2], part(fs[i], text[2:])}, 0
		}
		last := "-" + text[len(text)-1:]
		if r = p.role(last); r != roleUnlisted {
			name = last
		}
		o.name = name
		o.value, used = next(r)
		return o, used
	default:
		o.name = name
		o.value, used = next(r)
		return o, used
	}
}

// guards reports whether a word leads to the root, the home or a folder around the working directory.
func (w *walker) guards(f field, st *state) bool {
	text := f.text
	if text == "~" {
		text = w.place.Home
	}
	if !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "~") {
		return false
	}
	return slices.ContainsFunc(w.targets(*part(f, w.home(text)), st), func(t string) bool {
		what, _ := w.place.loss(t, f.glob)
		return what != nil && t != w.place.Dir
	})
}

// optionValue judges the value of an option by its role, or by its shape.
func (w *walker) optionValue(r role, name string, v field, fs []field, st *state) {
	switch r {
	case rolePlain, roleAsks:
		if (strings.HasPrefix(name, "-P") || strings.HasPrefix(name, "-D")) && len(name) > 2 && w.guards(v, st) {
			w.askBecause(whyNamesRoot, shown(fs))
		}
		if strings.Contains(v.text, "-") && flagPrograms().MatchString(v.text) {
			w.askBecause(whyNamesProgram, shown(fs))
		}
	case roleWrites:
		w.optionWrites(v, fs, st)
	case roleRuns:
		w.walkNested(v.text, v, st.child(nil), flow{})
		if !harmlessCommand(v) {
			w.askBecause(whyNamesProgram, shown(fs))
		}
	case roleLoads:
		w.optionLoads(name, v, fs, st)
	default:
		w.judgeShape(name, v, fs, st)
	}
}

// optionWrites judges the value of an option that names a file to write.
func (w *walker) optionWrites(v field, fs []field, st *state) {
	if isStdin(v.text) || v.text == "" {
		return
	}
	if _, file, ok := strings.Cut(v.text, ":"); ok && !strings.Contains(v.text[:1], "/") {
		v = *part(v, file) // html:FILE
	}
	v.made = !listed("textPrograms", commandName(fs[0]))
	w.judgeWrite(v, st, deedWrites.With(v.src))
	w.markOrigin(v, st, w.privacy(fs, st))
}

// optionLoads judges a file with code: the value of the option name, or an operand if name is "".
func (w *walker) optionLoads(name string, v field, fs []field, st *state) {
	if key, file, ok := strings.Cut(v.text, "="); ok && !strings.Contains(key, "/") {
		v = *part(v, file)
	}
	switch {
	case v.out != nil && strings.HasPrefix(name, "--"), isURL(v.text), strings.HasPrefix(v.text, "data:"):
		w.askUnknown(whyLoadsForeignCode, shown(fs))
	case w.loadsOutside(name, v, st):
		w.askBecause(whyLoadsOuterCode, shown(fs))
	case w.runsForeign(v, st):
		w.askUnknown(whyRunsDownload, shown(fs))
	case name != "" || !isShell(commandName(fs[0])):
		w.judgeStart(v, fs, st, nil)
	}
}

// loadsOutside reports whether a file with code lies where others may have put it. For an option this is everywhere
// outside the working directory. For an operand, the temporary directories are safe, too.
func (w *walker) loadsOutside(name string, v field, st *state) bool {
	if !w.outside(v, st) && (name == "" || !slices.ContainsFunc(w.targets(v, st),
		func(t string) bool { return path.IsAbs(v.text) && !within(w.place.Dir, t) })) {
		return false
	}
	return !slices.ContainsFunc(w.targets(v, st), func(t string) bool {
		return slices.ContainsFunc(systemPath, func(dir string) bool { return within(dir, t) }) ||
			device(t) != notDevice
	})
}

// judgeShape judges the value of an option whose role the table does not know.
func (w *walker) judgeShape(name string, v field, fs []field, st *state) {
	long := strings.HasPrefix(name, "--")
	switch {
	case strings.HasPrefix(v.text, "0.0.0.0"), strings.HasPrefix(v.text, "[::]"):
		w.askBecause(whyOpensToOthers, name, shown(fs))
	case v.vague && !strings.Contains(v.text, "/"):
	case isURL(v.text):
		if !local(v) {
			w.askBecause(whyAddress, name, shown(fs))
		}
	case strings.ContainsAny(v.text, " \t\n;|&`<>"), strings.Contains(v.text, "$("), long && takesCommand(name) &&
		strings.Contains(v.text, "/"):
		w.ifRefused(v, st)
		w.askBecause(whyValueCommand, name, shown(fs))
	case w.outside(v, st):
		w.askBecause(whyLeadsOut, name, shown(fs))
	}
}

// isURL reports whether a word is an address.
func isURL(text string) bool { return address().MatchString(text) }

var address = lazily(`^[a-zA-Z][a-zA-Z0-9+.-]*://`)

// outside reports whether a word is a path that leads out of the working directory and the temporary directories.
// Devices that keep nothing are not outside.
func (w *walker) outside(f field, st *state) bool {
	text := w.home(f.text)
	if text == "" || !path.IsAbs(text) && !strings.Contains(text, "..") && !strings.HasPrefix(text, "~") {
		for _, d := range st.dirs {
			if d.path != "" && !d.doubt && strings.Contains(text, "/") &&
				!w.place.writable(resolve(d.path, text), false) {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(w.targets(*part(f, text), st), func(target string) bool {
		return !w.place.writable(target, f.glob) && !slices.Contains(w.place.Temp, target) &&
			device(target) != sinkDevice
	})
}
