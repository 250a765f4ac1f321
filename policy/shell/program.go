package shell

import (
	"path"
	"slices"
	"strings"
)

// role says how this package judges the value of an option.
type role string

const (
	roleUnlisted role = ""       // the form of the value decides
	rolePlain    role = "plain"  // a text, a number, an address or a file that is only read
	roleWrites   role = "writes" // a file or a directory that the program writes
	roleLoads    role = "loads"  // a file with code that the program runs, or settings that name such code
	roleRuns     role = "runs"   // a command that the program runs
	roleAsks     role = "asks"   // an option without a value, about which this package asks
)

// program is a row in the part "programs" of programs.txt.
type program struct {
	net   bool // the program may connect to any address
	reads bool // the program only reads; an option that matches no row of roles is harmless
	stop  int  // number of operands before another command; 0 means that none follows
	roles []optionRole
	rest  []string // options after which another command follows
	edits []string // options with which the program writes its operands
	last  int      // the program writes its last operand if it has at least this many; 0 means never
	edit  bool     // the program always writes all its operands
	first bool     // the first operand is a file with code
}

// optionRole is the role of the options that match a pattern. The pattern NAME= means operands of the form NAME=value.
type optionRole struct {
	pattern string
	role    role
}

// everyday returns the row of a program in the part programs.
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

// row returns the row of a program in the part programs. It stores the parsed row for the next call, because
// parsing takes time.
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

// role returns the role of an option. The program's row wins over plainOptions, the options that are plain in every
// program.
func (p program) role(name string) role {
	r, _ := p.matchOption(name)
	return r
}

// matchOption returns the role of an option. If the role comes from a pattern with a wildcard, such as -o*, glued is
// the value in the same word.
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

// programParts are the parts of the table with names of known programs.
var programParts = []string{
	"programs", "wrappers", "textPrograms", "tools", "diskTools", "settings", "changing", "privileges", "fetchers",
	"senders", "losses", "clients", "terminals", "builtins",
}

// version matches a version at the end of a program's name, such as -13.
var version = lazily(`[-.]?[0-9]+(\.[0-9]+)*$`)

// unversioned returns the name under which the table has a program: gcc for gcc-13.
func unversioned(name string) string {
	if short := version().ReplaceAllString(name, ""); !listed("programs", name) && listed("programs", short) {
		return short
	}
	return name
}

// isProgram reports whether a program is known: it is in the table, or it is a shell, an interpreter or a disk tool.
func isProgram(name string) bool {
	name = unversioned(name)
	return isShell(name) || isDiskTool(name) || slices.ContainsFunc(programParts,
		func(part string) bool { return listed(part, name) })
}

// judgeProgram asks about an unknown program, and judges the options of a known program by its row.
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

// runnable asks about an unknown program, unless the program is a file of the project. It reports whether the
// program is known.
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
			return known // the program is a file of the project
		case known && slices.Contains(binDirs, dir):
		default:
			w.askBecause(whyOuterProgram, shown(fs))
		}
	}
	return known
}

// ownPath reports whether PATH contains the working directory or a directory below it.
func (w *walker) ownPath(st *state) bool {
	return slices.ContainsFunc(strings.Split(st.vars["PATH"].text, ":"), func(dir string) bool {
		return dir != "" && slices.ContainsFunc(w.targets(literal(dir), st),
			func(t string) bool { return within(w.place.Dir, t) })
	})
}

// binDirs are the names of directories with installed programs.
var binDirs = []string{"bin", "sbin", "shims", "libexec", "Scripts", "MacOS", "scripts", "cmd"}

// optionRoles judges the options and operands of a known program by its row.
func (w *walker) optionRoles(p program, fs []field, st *state) {
	var operands []field
	edited := p.edit
	if wr, ok := wrappers(commandName(fs[0])); ok && wr.runsCommand(fs) {
		p.reads = true // judgeWrapper has judged the inner command
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

// judgeOption judges one option and its value by the role of the option.
func (w *walker) judgeOption(p program, o option, fs []field, st *state) {
	w.judgeUpload(p, o, fs, st)
	if r := p.role(o.name); r == roleAsks {
		w.askBecause(whyOption, shown(fs))
	} else if o.value != nil && !(r == roleUnlisted && (p.reads || p.net && isURL(o.value.text))) {
		w.optionValue(r, o.name, *o.value, fs, st)
	}
}

// operandRole judges an operand with a role in the row of its program. The operand may be NAME=VALUE, or a word about
// which this package asks.
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

// startsEdit reports whether an option makes the program write its operands, as gofmt -w does. The parameter "name" is
// the option. The parameter "text" is the word with this option, which may have several short options.
func (p program) startsEdit(name, text string) bool {
	return slices.Contains(p.edits, name) || text[1] != '-' && slices.ContainsFunc(p.edits, func(e string) bool {
		return len(e) == 2 && strings.Contains(text[1:], e[1:])
	})
}

// judgeOperands judges the operands of a program that does not write all of them.
func (w *walker) judgeOperands(p program, operands, fs []field, st *state) {
	switch {
	case p.last > 0 && len(operands) >= p.last:
		last := operands[len(operands)-1]
		last.made = true
		w.judgeWrite(last, st, deedWrites.With(last.src))
	case p.first && len(operands) > 0:
		w.optionValue(roleLoads, "", operands[0], fs, st)
	// Other functions judge the operands of perlica, and operands that are another command. So operands stay out
	// here.
	case p.stop == 0 && commandName(fs[0]) != "perlica" && !looksInside(commandName(fs[0]), fs):
		w.foreignOperands(p, operands, fs, st)
	}
}

// foreignOperands asks about operands that are files outside the working directory. It ignores operands of a
// downloading program that look like a route of a server.
func (w *walker) foreignOperands(p program, operands, fs []field, st *state) {
	if p.reads {
		return
	}
	for _, f := range operands {
		text := w.home(f.text)
		if _, file, found := strings.Cut(text, "@"); p.net && found {
			text, f = w.home(file), *part(f, w.home(file)) // the operand is NAME@FILE
		}
		route := p.net && path.IsAbs(text) && !w.rooted(text)
		if !route && looksLikeFile(f) && w.outside(f, st) {
			w.askBecause(whyOuterFile, shown(fs))
		}
	}
}

// uploadOptions are options of programs such as curl with a file that the program sends.
var uploadOptions = strings.Fields("-T --upload-file --post-file --body-file --file --notes-file --attach --attachment")

// judgeUpload asks about an option that sends a file outside the working directory: --upload-file FILE, --data @FILE,
// --form NAME=@FILE.
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

// looksLikeFile reports whether an operand may be the name of a file. A text with spaces or an address cannot be
// one.
func looksLikeFile(f field) bool {
	return !strings.Contains(f.text, "://") && !strings.ContainsAny(f.text, " \n")
}

// readOption reads the option at index i. The result "used" is the number of further words that belong to the option.
// For an option without a role, the next word is judged as its value, but also as an option or operand.
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

// guards reports whether a word names a protected directory: the root, the home, a system directory or a parent of the
// working directory.
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

// optionValue judges the value v of an option by the role r. Without a role it judges the form of the value.
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

// optionWrites judges the value of an option that names an output file.
func (w *walker) optionWrites(v field, fs []field, st *state) {
	if isStdin(v.text) || v.text == "" {
		return
	}
	if _, file, ok := strings.Cut(v.text, ":"); ok && !strings.Contains(v.text[:1], "/") {
		v = *part(v, file) // the value is FORMAT:FILE
	}
	v.made = !listed("textPrograms", commandName(fs[0]))
	w.judgeWrite(v, st, deedWrites.With(v.src))
	w.markOrigin(v, st, w.privacy(fs, st))
}

// optionLoads judges a file with code that a program loads. The parameter "name" is the option with this value, or ""
// for an operand.
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

// loadsOutside reports whether a file with code lies at a place that other programs can change. For an option, only the
// working directory and the system directories are safe. For an operand, the temporary directories are safe, too.
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

// judgeShape judges the value of an option without a role by its form: an address, a command or a path.
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

// isURL reports whether a word is an address with a scheme, such as https://example.com.
func isURL(text string) bool { return address().MatchString(text) }

var address = lazily(`^[a-zA-Z][a-zA-Z0-9+.-]*://`)

// outside reports whether a word is a path outside the working directory and the temporary directories. Devices such as
// /dev/null do not count as outside.
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
