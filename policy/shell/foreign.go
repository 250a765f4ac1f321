package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// judgeSurroundings asks about a known program that runs outside the working directory, gets an input from outside, or
// copies a private file. The parameter "wrote" says that the command writes a file.
func (w *walker) judgeSurroundings(name string, fs []field, st *state, in flow, wrote bool) {
	p, row := w.row(unversioned(name))
	wr, wraps := wrappers(name)
	switch {
	case w.refusedOnly > 0, !isProgram(name), wraps && wr.runsCommand(fs), isShell(name), listed("builtins", name):
		return
	case wrote && (in.origin.is(copied) || w.secrets(fs, st)):
		w.askBecause(whyCopiesPrivate, shown(fs))
	}
	if row && p.reads || listed("textPrograms", name) {
		return
	}
	if _, client := clients(name); in.origin.is(elsewhere) && (client || !listed("local", name)) {
		w.askBecause(whyReadsOutside, shown(fs))
	}
	if _, fetches := fetchers(name); fetches || p.net || st.far || name == "git" {
		return
	}
	for _, d := range st.dirs {
		if d.path != "" && !d.doubt && !w.place.writable(d.path, false) && !slices.Contains(w.place.Temp, d.path) {
			w.askBecause(whyOutside, shown(fs))
		}
	}
}

// secrets reports whether a word of a command, after the first, names a private file outside the working directory.
func (w *walker) secrets(fs []field, st *state) bool {
	return slices.ContainsFunc(fs[1:], func(f field) bool { return w.secret(f, st) })
}

// secret reports whether a word names a private file outside the working directory. The word may be FILE, NAME=FILE or
// label:@FILE. A private file has keys or passwords.
func (w *walker) secret(f field, st *state) bool {
	text := f.text
	for range 4 {
		g := *part(f, w.home(text))
		if path.IsAbs(g.text) && !g.vague && w.outside(g, st) && slices.ContainsFunc(w.targets(g, st), isPrivate) {
			return true
		}
		i := strings.IndexAny(text, "@=:<,")
		if i < 0 {
			return false
		}
		text = text[i+1:]
	}
	return false
}

// contents reports whether a program prints parts of the files that it reads.
func contents(name string) bool {
	if slices.Contains(strings.Fields("wc cksum sum stat du df ls tree file test [ find md5sum sha1sum sha256sum"),
		name) {
		return false
	}
	return listed("textPrograms", name) || slices.Contains(strings.Fields("tee xxd sed gsed awk gawk mawk"), name)
}

// covers reports whether a pattern of pkill or killall -r matches the process name of Perlica.
func covers(pattern string) bool {
	re, err := regexp.Compile(pattern)
	return err == nil && pattern != "" && re.MatchString("perlica")
}

// farHost matches the domain name or the IP address of a machine, without a scheme such as https.
var farHost = lazily(`^([A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[a-z]{2,}|[0-9]+(\.[0-9]+){3})(:[0-9]+)?(/|$)`)

// hostVars matches the names of variables with the machine to which programs connect.
var hostVars = lazily(`(HOST|HOSTADDR|ADDR|ADDRESS|SERVERS?|ENDPOINT|ENDPOINT_URL\w*|` +
	`URL|URI|API_BASE|DSN|REGISTRY|GATEWAY|BROKERS?)$`)
