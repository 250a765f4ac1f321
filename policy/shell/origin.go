package shell

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// origin is a set of flags for the sources of a text or a file.
type origin uint8

const (
	network   origin = 1 << iota // from a download in this script
	private                      // with keys, passwords or similar data
	decoded                      // unpacked or decoded from data that this package cannot read
	elsewhere                    // a file outside the working directory, or made from such a file
	altered                      // a file that the session has changed, or made from such a file
	copied                       // with the content of a private file from outside the working directory

	foreign = network | decoded // text that must not run before a person has seen it
)

func (o origin) is(other origin) bool { return o&other != 0 }

// markOrigin adds the origin o to the file f.
func (w *walker) markOrigin(f field, st *state, o origin) {
	if o == 0 {
		return
	}
	if f.vague {
		w.unnamed |= o & foreign
		return
	}
	if o.is(foreign) {
		w.recordChanged(f, st)
	}
	for _, target := range w.targets(f, st) {
		w.files[target] |= o
	}
}

// keepText stores the text that a command writes to the file f, for later commands that run or read the file.
func (w *walker) keepText(f field, st *state, out flow) {
	if f.vague || f.glob || !out.known && out.text == "" && len(out.operands) == 0 {
		return
	}
	out.other = ""
	for _, target := range w.targets(f, st) {
		if out.known {
			w.unseen[target] = max(0, w.unseen[target]-1)
		}
		if have, written := w.written[target]; written {
			w.written[target] = have.then(out)
		} else {
			w.written[target] = out
		}
	}
}

// runsText judges a file that a command runs, if the script wrote a text into the file before. It changes the
// verdict only if the text has a refused command, because this package does not judge scripts on disk.
func (w *walker) runsText(f field, st *state) {
	for _, target := range w.targets(f, st) {
		if w.written[target].text != "" {
			w.ifRefused(field{text: w.written[target].text, src: f.src}, st)
		}
	}
}

// dot judges ". FILE". The shell itself runs the file, so the variables that the file sets stay set.
func (w *walker) dot(fs, args []field, st *state, in flow) flow {
	if len(args) == 0 {
		return flow{}
	}
	outer := st.args
	if len(args) > 1 {
		st.args = positional(args[1:])
	}
	out := w.scriptFile(fs, args, st, in)
	if strings.HasPrefix(path.Base(args[0].text), "activate") && !w.outside(args[0], st) {
		w.packages++ // PATH now has the programs of an environment in the project
	}
	for _, target := range w.targets(args[0], st) {
		if text := w.written[target].text; text != "" {
			after := st.clone()
			w.refusedOnly++
			w.walkScript(text, after, flow{})
			w.refusedOnly--
			st.joinStates(st.clone(), after)
		}
	}
	if len(args) > 1 {
		st.args = outer
	}
	return out
}

// originOf returns the origins of a word and of the file that the word names.
func (w *walker) originOf(f field, st *state) origin {
	o := f.origin
	if f.out != nil {
		o |= f.out.origin
	}
	if environs().MatchString(f.text) {
		o |= private
	}
	if f.vague || f.text == "" || strings.HasPrefix(f.text, "-") {
		return o
	}
	if w.outside(f, st) {
		o |= elsewhere
	}
	for _, target := range w.targets(f, st) {
		o |= w.files[target]
		if w.place.Changed.holding(target) != "" {
			o |= altered
		}
		if isPrivate(target) {
			o |= private
		}
	}
	return o
}

// runsForeign reports whether the script may have downloaded or decoded the file f. After a download with an unknown
// name, this is true for every file.
func (w *walker) runsForeign(f field, st *state) bool {
	return (w.originOf(f, st) | w.unnamed).is(foreign)
}

// privacy returns the origin private if a word contains private data or names a private file, and 0 otherwise.
func (w *walker) privacy(fs []field, st *state) (o origin) {
	for _, f := range fs[1:] {
		o |= w.originOf(f, st)
	}
	return o & private
}

// copyOrigins records that the copies of the sources have the origins and the known texts of the sources.
func (w *walker) copyOrigins(sources []field, target field, st *state) {
	for _, f := range sources {
		o := w.originOf(f, st)
		if o.is(private) && w.outside(f, st) && !w.outside(target, st) {
			w.askBecause(whyCopiesPrivate, f.src)
		}
		into := target
		into.text = path.Join(target.text, path.Base(f.text))
		w.recordChanged(into, st)
		same := w.changed(f, st) == "" && !f.vague
		for _, to := range []field{target, into} {
			for _, copied := range w.targets(to, st) {
				if same { // a copy of an unchanged file has known content
					w.unseen[copied] = max(0, w.unseen[copied]-1)
				}
			}
			w.markOrigin(to, st, o)
			w.keepText(to, st, w.fileFlow(f, st))
		}
	}
}

// fetchers returns the options of a downloading program that take a value.
var fetchers = table("fetchers", func(said string) string { return said })

// judgeDownload judges the file or directory to which a program downloads, and marks the file as downloaded.
func (w *walker) judgeDownload(name string, fs []field, st *state) {
	valued, _ := fetchers(name)
	opts, operands := options(fs[1:], valued, false)
	at := st.clone()
	for _, o := range opts {
		if o.value != nil && storesIn(name, o.name) {
			w.judgeWrite(*o.value, st, deedDownloads.With(o.value.text))
			at.chdir(*o.value)
			at.pending = nil
		}
	}
	stored := false
	for _, o := range opts {
		if o.value == nil || !storing(name, o.name) {
			continue
		}
		stored = true
		if isStdin(o.value.text) {
			continue
		}
		w.judgeWrite(*o.value, at, deedDownloads.With(o.value.text))
		w.markOrigin(*o.value, at, network)
	}
	for _, f := range values(opts, "-w", "--write-out") {
		for _, m := range writtenOut().FindAllStringSubmatch(f.text, 16) {
			w.judgeWrite(*part(f, m[1]), st, deedWrites.With(m[1]))
		}
	}
	for _, f := range values(opts, "-e", "--execute") {
		if name == "wget" && !strings.HasPrefix(f.text, "robots") {
			w.askBecause(whySettingInLine, shown(fs))
		}
	}
	if requestsDelete(opts) && !slices.ContainsFunc(operands, local) {
		w.askBecause(whyDeletesElsewhere, shown(fs))
	}
	if !usesDefaultName(name, opts, stored) {
		return
	}
	for _, f := range operands {
		w.markOrigin(defaultName(f), at, network)
	}
	if hasOption(opts, "-J", "--remote-header-name", "--content-disposition", "-i", "--input-file") {
		w.unnamed |= network
	}
}

// requestsDelete reports whether the options choose the HTTP method DELETE.
func requestsDelete(opts []option) bool {
	o, ok := findOption(opts, "-X", "--request")
	return ok && o.value != nil && o.value.text == "DELETE"
}

// storesIn reports whether an option names the directory in which a program stores its downloads.
func storesIn(program, option string) bool {
	return slices.Contains([]string{"--output-dir", "--directory-prefix", "--dir"}, option) ||
		option == "-P" && program == "wget" || option == "-d" && program == "aria2c"
}

// usesDefaultName reports whether a program stores its download under a name that it takes from the address. The
// parameter "stored" says that an option names the file.
func usesDefaultName(name string, opts []option, stored bool) bool {
	switch name {
	case "curl":
		return hasOption(opts, "-O", "-J", "--remote-name", "--remote-name-all", "--remote-header-name",
			"--content-disposition",
			"-d", "--download")
	case "http", "https", "xh":
		return hasOption(opts, "-d", "--download")
	case "wget", "aria2c", "axel":
		return !stored
	}
	return false
}

// writtenOut matches the name of a file in the value of curl -w, to which curl writes.
var writtenOut = lazily(`%output\{(?:>>)?([^}]*)\}`)

// local reports whether an address is on this machine.
func local(f field) bool {
	_, host, found := strings.Cut(f.text, "://")
	if !found {
		host = f.text
	}
	return localHosts().MatchString(host)
}

var localHosts = lazily(`^((localhost|0\.0\.0\.0)([/:]|$)|127\.|\[::1\])`)

// storing reports whether an option names the file for a download of the program.
func storing(program, option string) bool {
	return slices.Contains([]string{"--output", "--output-document", "--out"}, option) ||
		option == "-o" && program != "wget" || option == "-O" && (program == "wget" || program == "gh")
}

// defaultName returns the file name that a program takes from the address f of a download.
func defaultName(f field) field {
	if f.vague {
		return unknownField(f.src)
	}
	name := f.text
	if u, err := url.Parse(f.text); err == nil {
		name = u.Path
		if u.Scheme == "" && u.Host == "" && !strings.Contains(name, "/") {
			name = ""
		}
	}
	if strings.HasSuffix(name, "/") {
		name = ""
	}
	if name = path.Base(name); name == "." || name == "/" {
		name = "index.html"
	}
	return literal(name)
}

// privateNames are the names of files with keys, passwords or similar data. A name that ends in a slash is a directory
// with such files.
var privateNames = []string{
	".ssh/", ".gnupg/", ".aws/", ".azure/", ".kube/", "gcloud/", ".password-store/", "keyrings/", "Keychains/",
	".docker/config.json",
	".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".vault-token", ".config/gh/",
	"credentials.json",
	".bash_history", ".zsh_history", ".env", ".env.local", ".env.production", "/etc/shadow", "/etc/gshadow",
	"/etc/sudoers", "id_rsa", "id_dsa",
	"id_ecdsa", "id_ed25519", "Cookies", "logins.json", "key4.db", ".terraform.tfstate", ".config/rclone/",
	".cargo/credentials",
	".cargo/credentials.toml", ".m2/settings.xml", ".claude/.credentials.json", ".codex/auth.json", ".mozilla/",
	".config/google-chrome/", ".config/chromium/", "cookies.sqlite", ".config/op/", ".gem/credentials",
	".config/hub", ".config/doctl/", ".fly/config.yml", ".config/sops/", ".config/age/", ".local/share/keyrings/",
}

// environs matches the files below /proc with the variables of a process. Variables often contain keys.
var environs = lazily(`^/proc/[^/]+(/task/[^/]+)?/environ$`)

// privateDirs is one of three fast tests of isPrivate. The others look for a hidden name and for a base name in
// privateNames. A path that fails all three tests is not private.
var privateDirs = lazily(`/gcloud|/keyrings|/Keychains|^/etc/|^/proc/self/`)

// isPrivate reports whether a path names a file with keys or passwords.
func isPrivate(target string) bool {
	switch path.Ext(target) {
	case ".pem", ".p12", ".pfx", ".kdbx", ".keystore", ".jks":
		return true
	case ".pub", ".example", ".sample", ".template":
		return false
	}
	if b := path.Base(target); b == "known_hosts" || b == "config" && strings.HasSuffix(target, ".ssh/config") {
		return false
	}
	if !strings.Contains(target, "/.") && !slices.Contains(privateNames, path.Base(target)) &&
		!privateDirs().MatchString(target) {
		return false
	}
	return slices.ContainsFunc(privateNames, func(name string) bool {
		if strings.HasPrefix(name, "/") {
			return target == name
		}
		dir, isDir := strings.CutSuffix(name, "/")
		return strings.HasSuffix(target, "/"+dir) || isDir && strings.Contains(target, "/"+name)
	})
}

// senders returns the row of a program that sends its input or its arguments to another machine. The row has the
// options with values that the program does not send.
var senders = table("senders", strings.Fields)

// uploads returns the row of a program that sends data only if one of the words in the row is among its words.
var uploads = table("uploads", strings.Fields)

// judgeSending asks about a command that may send private data to another machine.
func (w *walker) judgeSending(name string, fs []field, st *state, in flow) {
	used, known := senders(name)
	if words, ok := uploads(name); ok {
		known = among(fs[1:], words...)
	}
	if !known && slices.ContainsFunc(fs[1:], func(f field) bool { return f.origin.is(private) }) &&
		!w.isLocal(name, fs) {
		w.askBecause(whySendsPrivate, shown(fs))
	}
	if !known || len(fs) == 1 && !in.origin.is(private) {
		return
	}
	if (name == "scp" || name == "rsync") && isRemote(fs[1].text) && !isRemote(fs[len(fs)-1].text) {
		return
	}
	if in.origin.is(private|elsewhere) || w.wordsNamePrivate(fs, used, st) || w.inputNamesPrivate(name, in, st) {
		w.askBecause(whySendsPrivate, shown(fs))
	}
}

// wordsNamePrivate reports whether a word of a sending program contains private data or names a private file. The
// parameter "used" has the options with values that the program does not send.
func (w *walker) wordsNamePrivate(fs []field, used []string, st *state) bool {
	for i := 1; i < len(fs); i++ {
		option, _, _ := strings.Cut(fs[i].text, "=")
		unsent := slices.Contains(used, option) || slices.Contains(used, fs[i-1].text)
		if (fs[i].origin.is(private) || !unsent) && w.namesPrivate(fs[i], st) {
			return true
		}
	}
	return false
}

// inputNamesPrivate reports whether the known input of a sending program names a private file, such as in "put FILE"
// for sftp.
func (w *walker) inputNamesPrivate(name string, in flow, st *state) bool {
	if !in.known || !strings.Contains(in.text, "/") && !slices.Contains([]string{"sftp", "ftp", "lftp", "tftp"}, name) {
		return false
	}
	return slices.ContainsFunc(strings.Fields(in.text),
		func(word string) bool { return w.namesPrivate(literal(word), st) })
}

// isLocal reports whether the table says that a program does not send its words to another machine.
func (w *walker) isLocal(name string, fs []field) bool {
	if name == "git" {
		return among(fs, "commit", "tag", "notes", "stash", "config", "log", "grep", "diff", "show", "push")
	}
	p, _ := w.row(name)
	wr, wraps := wrappers(name)
	return p.reads || wraps && wr.runsCommand(fs) || isShell(name) ||
		slices.ContainsFunc(localParts, func(part string) bool { return listed(part, name) })
}

// localParts are the parts of the table with programs that do not send their words to another machine.
var localParts = []string{"textPrograms", "builtins", "tools", "local"}

// namesPrivate reports whether a word contains private data or names a private file. The word may be FILE, @FILE,
// NAME=@FILE, --post-file=FILE or open:FILE.
func (w *walker) namesPrivate(f field, st *state) bool {
	if f.origin.is(private) {
		return true
	}
	text := f.text
	for range 4 {
		if w.originOf(*part(f, text), st).is(private) {
			return true
		}
		i := strings.IndexAny(text, "@=:<,")
		if i < 0 {
			return false
		}
		text = w.home(text[i+1:])
	}
	return false
}

// home replaces ~/ at the start of a text by the home directory, as some programs do even if the shell does not.
func (w *walker) home(text string) string {
	if rest, ok := strings.CutPrefix(text, "~/"); ok && w.place.Home != "" {
		return w.place.Home + "/" + rest
	}
	return text
}
