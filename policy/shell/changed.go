package shell

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Changed lists the files and folders that a session of an agent has changed. An entry for a folder covers
// everything in it. The keys are paths in lower case, because some file systems ignore case. The values are the
// paths as written.
type Changed map[string]string

// Add adds an absolute path.
func (c Changed) Add(p string) {
	if p = slashPath(p); p != "" {
		c[strings.ToLower(p)] = p
	}
}

// With returns the entries of both lists.
func (c Changed) With(more Changed) Changed {
	if len(more) == 0 {
		return c
	}
	both := maps.Clone(more)
	maps.Copy(both, c)
	return both
}

// holding returns the entry for the target or for a folder that contains the target, or "".
func (c Changed) holding(target string) string {
	for p := strings.ToLower(target); len(c) > 0 && p != "/" && p != "."; p = path.Dir(p) {
		if name, ok := c[p]; ok {
			return name
		}
	}
	return ""
}

// below returns the entries in a folder.
func (c Changed) below(dir string) []string {
	return c.matching(escape(strings.TrimSuffix(dir, "/")) + "/**")
}

// matching returns the entries that match a pattern.
func (c Changed) matching(pattern string) []string {
	var fits []string
	for p, name := range c {
		if ok, err := doublestar.Match(strings.ToLower(pattern), p); ok && err == nil {
			fits = append(fits, name)
		}
	}
	slices.Sort(fits)
	return fits
}

// recordChanged records the files that a command writes. The parameter "f" is the word with their names. For a
// pattern, recordChanged records the folder that contains all matches.
func (w *walker) recordChanged(f field, st *state) {
	if f.vague || f.folder || f.made || w.refusedOnly > 0 {
		return
	}
	for _, target := range w.targets(f, st) {
		if f.glob {
			target = fixedPrefix(target)
		}
		if target != w.place.Dir && device(target) == notDevice {
			w.touched.Add(target)
			w.unseen[target]++
		}
	}
}

// changed returns the file that f names if the session has changed it, in an earlier request or earlier in this script.
// Otherwise it returns "".
func (w *walker) changed(f field, st *state) string {
	if f.vague || f.text == "" {
		return ""
	}
	for _, target := range w.targets(f, st) {
		for _, c := range []Changed{w.place.Changed, w.touched} {
			names := []string{c.holding(target)}
			if f.glob {
				names = c.matching(target)
			}
			if len(names) > 0 && names[0] != "" {
				return names[0]
			}
		}
	}
	return ""
}

// judgeStart asks about the command fs, which runs the file f, if the session has changed this file. If this script
// itself wrote a known text into the file, judgeStart does not ask. It calls the function "judge" with the text
// instead. If judge is nil, judgeStart always asks.
func (w *walker) judgeStart(f field, fs []field, st *state, judge func(text field)) {
	file := w.changed(f, st)
	if file == "" {
		if f.origin.is(altered) { // find or ls listed the file f, so its exact name is unknown
			w.askUnknown(whyRunsChangedCode, shown(fs))
		}
		return
	}
	texts := map[string]bool{}
	for _, target := range w.targets(f, st) {
		if w.place.Changed.holding(target) != "" || w.hides(w.touched.holding(target)) || f.glob {
			w.asksOfChanged(file, fs)
			return
		}
		texts[w.written[target].text], texts[w.written[target].other] = true, true
	}
	for text := range texts {
		switch {
		case text == "":
		case judge == nil:
			w.asksOfChanged(file, fs)
		default:
			judge(field{text: text, src: f.src})
		}
	}
}

// hides reports whether this script wrote unknown text into a file.
func (w *walker) hides(file string) bool { return w.unseen[file] > 0 }

// startsProgram asks about a command if its program is a file that the session has changed. The first word names the
// program by its path, or by its name if PATH has a directory of the project.
func (w *walker) startsProgram(fs []field, st *state) {
	f := fs[0]
	if strings.Contains(f.text, "/") {
		w.judgeStart(f, fs, st, func(text field) {
			if first, _, _ := strings.Cut(text.text, "\n"); strings.HasPrefix(first, "#!") &&
				!shebang().MatchString(first) {
				w.asksOfChanged(f.text, fs)
				return
			}
			w.walkNested(text.text, text, st.child(nil), flow{})
		})
	}
	if !strings.Contains(f.text, "/") && w.ownPath(st) {
		for dir := range strings.SplitSeq(st.vars["PATH"].text, ":") {
			w.judgeStart(*part(f, path.Join(dir, f.text)), fs, st, nil)
		}
	}
}

// shebang matches the first line of a shell script.
var shebang = lazily(`^#!\s*(/usr/bin/env\s+(-S\s*)?)?(/\S*/)?(ba|da|z|k|a)?sh(\s|$)`)

// asksOfChanged asks about the command fs because it runs the changed file.
func (w *walker) asksOfChanged(file string, fs []field) {
	if below, inside := strings.CutPrefix(file, strings.TrimSuffix(w.place.Dir, "/")+"/"); inside && w.place.Dir != "" {
		file = below
	}
	w.askUnknown(whyRunsChanged, file, shown(fs))
}

// runner is a row in the part runners of programs.txt. It describes a program that runs code of the project. A
// recipe file, such as Makefile, contains commands that the program runs.
type runner struct {
	files  []string // names of its recipe files
	when   []string // first words with which it runs a recipe file; empty means always
	unless []string // first words with which it runs no recipe file
	after  []string // the word after one of these options and subcommands is a file with code
	first  bool     // its first operand is a file with code
}

// runners returns the row of a program in the part runners of programs.txt.
var runners = table("runners", func(said string) runner {
	m := members(said, "files", "when", "unless", "after", "first")
	return runner{files: m["files"], when: m["when"], unless: m["unless"], after: m["after"], first: m["first"] != nil}
})

// judgeRecipes asks about a program that runs a recipe file or another file with code, if the session has changed
// this file. It ignores source files that the program compiles or tests. Inside a sandbox it asks only about files
// that this script changed, because the caller then leaves Place.Changed empty.
func (w *walker) judgeRecipes(name string, fs []field, st *state) {
	r, found := runners(name)
	if !found || len(w.place.Changed)+len(w.touched) == 0 || asksForHelp(fs[1:]) {
		return
	}
	operands := slices.DeleteFunc(slices.Clone(fs[1:]),
		func(f field) bool { return strings.HasPrefix(f.text, "-") && !slices.Contains(r.after, f.text) })
	for i, f := range operands {
		if r.first && i == 0 || i > 0 && (slices.Contains(r.after, operands[i-1].text) ||
			path.Ext(f.text) == ".go" && path.Ext(operands[i-1].text) == ".go") {
			module, _, _ := strings.Cut(f.text, ":") // x.y:app means app in the module x/y
			w.startsModule(f, fs, st, nil)
			w.startsModule(*part(f, strings.ReplaceAll(module, ".", "/")), fs, st, nil)
		}
	}
	start := append(slices.Clone(operands[:min(2, len(operands))]), fs[1:min(2, len(fs))]...)
	if among(start, r.unless...) || len(r.when) > 0 && !among(start, r.when...) {
		return
	}
	for _, pattern := range r.files {
		pattern = "/**/" + pattern
		written := slices.DeleteFunc(w.touched.matching(pattern),
			func(file string) bool { return !w.hides(file) && w.written[file].text == "" })
		if files := append(w.place.Changed.matching(pattern), written...); len(files) > 0 {
			w.asksOfChanged(files[0], fs)
			return
		}
	}
}

// modules are suffixes of files with code. The operand of an interpreter may be a file, a module without its
// suffix, or a folder. With one of these suffixes, the operand names the file that runs.
var modules = []string{"", ".py", ".js", ".cjs", ".mjs", ".ts", "/__main__.py", "/__init__.py", "/index.js",
	"/package.json"}

// startsModule calls judgeStart for each file that the operand f of an interpreter may mean.
func (w *walker) startsModule(f field, fs []field, st *state, judge func(text field)) {
	for _, suffix := range modules {
		w.judgeStart(*part(f, f.text+suffix), fs, st, judge)
	}
}
