package shell

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Changed lists the files and folders that a session changed. A folder stands for everything in it. Comparisons
// ignore case, because some file systems do.
type Changed map[string]string

// Add adds an absolute path.
func (c Changed) Add(p string) {
	if p = slashPath(p); p != "" {
		c[strings.ToLower(p)] = p
	}
}

// With returns the files of both lists.
func (c Changed) With(more Changed) Changed {
	if len(more) == 0 {
		return c
	}
	both := maps.Clone(more)
	maps.Copy(both, c)
	return both
}

// holding returns the entry that is the target or a folder around it, or "".
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

// recordChanged records the files that a command writes at f. For a pattern it records the folder.
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

// changed returns the file named by f if this session changed it, before this command or in it. Otherwise it returns
// "".
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

// judgeStart asks about a file with code that a command runs, if this session changed the file. A text that this very
// command wrote is judged instead.
func (w *walker) judgeStart(f field, fs []field, st *state, judge func(text field)) {
	file := w.changed(f, st)
	if file == "" {
		if f.origin.is(altered) { // f is one of the files that find finds
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

// hides reports whether this command wrote unknown text into a file.
func (w *walker) hides(file string) bool { return w.unseen[file] > 0 }

// startsProgram asks about a program that this session changed: a path, or a name that is found in the tree.
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

// asksOfChanged asks about a command that runs a changed file.
func (w *walker) asksOfChanged(file string, fs []field) {
	if below, inside := strings.CutPrefix(file, strings.TrimSuffix(w.place.Dir, "/")+"/"); inside && w.place.Dir != "" {
		file = below
	}
	w.askUnknown(whyRunsChanged, file, shown(fs))
}

// runner is the table row of a program that runs code of the project.
type runner struct {
	files  []string // names of its recipe files
	when   []string // words with which it runs recipes; empty means always
	unless []string // words with which it runs no recipe
	after  []string // words before a file with code
	first  bool     // its first operand is a file with code
}

// runners looks up the rows of the part runners.
var runners = table("runners", func(said string) runner {
	m := members(said, "files", "when", "unless", "after", "first")
	return runner{files: m["files"], when: m["when"], unless: m["unless"], after: m["after"], first: m["first"] != nil}
})

// judgeRecipes asks about a program that runs a recipe of the project, or a file with code, that this session changed.
// Source files that the program only compiles or tests are not recipes. This is the only question that a sandbox
// makes superfluous if it protects everything outside the project.
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
			module, _, _ := strings.Cut(f.text, ":") // such as x.y:app
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

// modules are the suffixes that turn an interpreter's operand into a file: the operand may be a file, a module name
// or a folder.
var modules = []string{"", ".py", ".js", ".cjs", ".mjs", ".ts", "/__main__.py", "/__init__.py", "/index.js",
	"/package.json"}

// startsModule is starts for the operand of an interpreter.
func (w *walker) startsModule(f field, fs []field, st *state, judge func(text field)) {
	for _, suffix := range modules {
		w.judgeStart(*part(f, f.text+suffix), fs, st, judge)
	}
}
