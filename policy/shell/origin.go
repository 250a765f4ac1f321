package shell

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// An origin says where a text or a file comes from, as far as that matters.
type origin uint8

const (
	network   origin = 1 << iota // it was just downloaded
	private                      // it holds keys, passwords or the like
	decoded                      // it was unpacked or decoded from what cannot be read here
	elsewhere                    // it is, or is made from, a file outside the working directory
	altered                      // it is, or is made from, a file that the session changed before
	copied                       // it holds the content of a private file outside the working directory

	foreign = network | decoded // what is not run unseen
)

func (o origin) is(other origin) bool { return o&other != 0 }

// mark remembers what a file holds.
func (w *walker) mark(f field, st *state, o origin) {
	if o == 0 {
		return
	}
	if f.vague {
		w.unnamed |= o & foreign
		return
	}
	if o.is(foreign) {
		w.touch(f, st)
	}
	for _, target := range w.targets(f, st) {
		w.files[target] |= o
	}
}

// keep remembers what was written to a file, for the case that it is run or read.
func (w *walker) keep(f field, st *state, out flow) {
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

// runsText judges what the command itself wrote into a file that it runs. What a script
// of the disk does is beyond this package, so here only what is refused counts.
func (w *walker) runsText(f field, st *state) {
	for _, target := range w.targets(f, st) {
		if w.written[target].text != "" {
			w.ifRefused(field{text: w.written[target].text, src: f.src}, st)
		}
	}
}

// dot is . FILE, which the shell itself runs: what the file sets holds after it.
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
		w.packages++ // from now on the programs of an environment in the tree are found by their names
	}
	for _, target := range w.targets(args[0], st) {
		if text := w.written[target].text; text != "" {
			after := st.clone()
			w.refusedOnly++
			w.script(text, after, flow{})
			w.refusedOnly--
			st.join(st.clone(), after)
		}
	}
	if len(args) > 1 {
		st.args = outer
	}
	return out
}

// originOf is where a word, or the file that it names, comes from.
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

// runsForeign says whether the file f that is run was just downloaded or decoded. Where a download
// has a name that the text does not tell, it may be any.
func (w *walker) runsForeign(f field, st *state) bool {
	return (w.originOf(f, st) | w.unnamed).is(foreign)
}

// privacy is private if one of the words is or names something private.
func (w *walker) privacy(fs []field, st *state) (o origin) {
	for _, f := range fs[1:] {
		o |= w.originOf(f, st)
	}
	return o & private
}

// carry hands the origin of files, and what was written into them, on to their copies.
func (w *walker) carry(sources []field, target field, st *state) {
	for _, f := range sources {
		o := w.originOf(f, st)
		if o.is(private) && w.outside(f, st) && !w.outside(target, st) {
			w.ask("copies something private into the working directory: %s", f.src)
		}
		into := target
		into.text = path.Join(target.text, path.Base(f.text))
		w.touch(into, st)
		same := w.changed(f, st) == "" && !f.vague
		for _, to := range []field{target, into} {
			for _, copied := range w.targets(to, st) {
				if same { // a copy of a file that nobody changed is as the project has it
					w.unseen[copied] = max(0, w.unseen[copied]-1)
				}
			}
			w.mark(to, st, o)
			w.keep(to, st, w.fileFlow(f, st))
		}
	}
}

// fetchers are the programs that fetch, and their options that take a value.
var fetchers = table("fetchers", func(said string) string { return said })

// fetch judges where a download is stored and remembers it.
func (w *walker) fetch(name string, fs []field, st *state) {
	valued, _ := fetchers(name)
	opts, operands := options(fs[1:], valued, false)
	at := st.clone()
	for _, o := range opts {
		dir := o.name == "--output-dir" || o.name == "--directory-prefix" || o.name == "-P" && name == "wget" || o.name == "--dir" || o.name == "-d" && name == "aria2c"
		if dir && o.value != nil {
			w.write(*o.value, st, "downloads to "+o.value.text)
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
		w.write(*o.value, at, "downloads to "+o.value.text)
		w.mark(*o.value, at, network)
	}
	for _, f := range values(opts, "-w", "--write-out") {
		for _, m := range writtenOut().FindAllStringSubmatch(f.text, 16) {
			w.write(*part(f, m[1]), st, "writes to "+m[1])
		}
	}
	for _, f := range values(opts, "-e", "--execute") {
		if name == "wget" && !strings.HasPrefix(f.text, "robots") {
			w.ask("a setting on the command line: %s", shown(fs))
		}
	}
	if o, ok := find(opts, "-X", "--request"); ok && o.value != nil && o.value.text == "DELETE" && !slices.ContainsFunc(operands, local) {
		w.ask("deletes something on another machine: %s", shown(fs))
	}
	remote := has(opts, "-O", "-J", "--remote-name", "--remote-name-all", "--remote-header-name", "--content-disposition", "-d", "--download")
	switch name {
	case "curl", "http", "https", "xh":
		if !remote || name != "curl" && !has(opts, "-d", "--download") {
			return
		}
	case "wget", "aria2c", "axel":
		if stored {
			return
		}
	default:
		return
	}
	for _, f := range operands {
		w.mark(defaultName(f), at, network)
	}
	if has(opts, "-J", "--remote-header-name", "--content-disposition", "-i", "--input-file") {
		w.unnamed |= network
	}
}

// writtenOut finds the files that curl -w names.
var writtenOut = lazily(`%output\{(?:>>)?([^}]*)\}`)

// local says whether an address is that of this machine.
func local(f field) bool {
	_, host, found := strings.Cut(f.text, "://")
	if !found {
		host = f.text
	}
	return localHosts().MatchString(host)
}

var localHosts = lazily(`^((localhost|0\.0\.0\.0)([/:]|$)|127\.|\[::1\])`)

// storing says whether an option names the file to which a program stores.
func storing(program, option string) bool {
	return slices.Contains([]string{"--output", "--output-document", "--out"}, option) ||
		option == "-o" && program != "wget" || option == "-O" && (program == "wget" || program == "gh")
}

// defaultName is the name that a download gets from its address.
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

// privateNames are the names of files that hold keys or passwords; a name that ends in a
// slash is a directory.
var privateNames = []string{
	".ssh/", ".gnupg/", ".aws/", ".azure/", ".kube/", "gcloud/", ".password-store/", "keyrings/", "Keychains/", ".docker/config.json",
	".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".vault-token", ".config/gh/", "credentials.json",
	".bash_history", ".zsh_history", ".env", ".env.local", ".env.production", "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "id_rsa", "id_dsa",
	"id_ecdsa", "id_ed25519", "Cookies", "logins.json", "key4.db", ".terraform.tfstate", ".config/rclone/", ".cargo/credentials",
	".cargo/credentials.toml", ".m2/settings.xml", ".claude/.credentials.json", ".codex/auth.json", ".mozilla/", ".config/google-chrome/", ".config/chromium/", "cookies.sqlite", ".config/op/", ".gem/credentials",
	".config/hub", ".config/doctl/", ".fly/config.yml", ".config/sops/", ".config/age/", ".local/share/keyrings/",
}

// environs are the variables of a process, which often hold keys.
var environs = lazily(`^/proc/[^/]+(/task/[^/]+)?/environ$`)

// privateDirs tells quickly whether a path without hidden parts may be private.
var privateDirs = lazily(`/gcloud|/keyrings|/Keychains|^/etc/|^/proc/self/`)

// isPrivate says whether a path is that of a file with keys or passwords.
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
	if !strings.Contains(target, "/.") && !slices.Contains(privateNames, path.Base(target)) && !privateDirs().MatchString(target) {
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

// senders are the programs that hand what they read or what they are given to another
// machine, with their options whose value is used but not sent.
var senders = table("senders", strings.Fields)

// uploads are programs that send only with one of these words among their operands.
var uploads = table("uploads", strings.Fields)

// sends asks where something private leaves this machine.
func (w *walker) sends(name string, fs []field, st *state, in flow) {
	used, known := senders(name)
	if words, ok := uploads(name); ok {
		known = among(fs[1:], words...)
	}
	if !known && slices.ContainsFunc(fs[1:], func(f field) bool { return f.origin.is(private) }) && !w.isLocal(name, fs) {
		w.ask("sends something private away: %s", shown(fs))
	}
	if !known || len(fs) == 1 && !in.origin.is(private) {
		return
	}
	if (name == "scp" || name == "rsync") && isRemote(fs[1].text) && !isRemote(fs[len(fs)-1].text) {
		return
	}
	leaves := in.origin.is(private | elsewhere)
	for i := 1; i < len(fs) && !leaves; i++ {
		option, _, _ := strings.Cut(fs[i].text, "=")
		if !fs[i].origin.is(private) && (slices.Contains(used, option) || slices.Contains(used, fs[i-1].text)) {
			continue
		}
		leaves = w.namesPrivate(fs[i], st)
	}
	if in.known && (strings.Contains(in.text, "/") || slices.Contains([]string{"sftp", "ftp", "lftp", "tftp"}, name)) {
		for word := range strings.FieldsSeq(in.text) {
			leaves = leaves || w.namesPrivate(literal(word), st)
		}
	}
	if leaves {
		w.ask("sends something private away: %s", shown(fs))
	}
}

// isLocal says whether a program keeps to itself what it is given on its command line, as far as the
// table tells.
func (w *walker) isLocal(name string, fs []field) bool {
	if name == "git" {
		return among(fs, "commit", "tag", "notes", "stash", "config", "log", "grep", "diff", "show", "push")
	}
	p, _ := w.row(name)
	wr, wraps := wrappers(name)
	return p.reads || wraps && wr.runs(fs) || isShell(name) || slices.ContainsFunc(localParts, func(part string) bool { return listed(part, name) })
}

// localParts are the parts of the table whose programs keep to themselves what they are given.
var localParts = []string{"textPrograms", "builtins", "tools", "local"}

// namesPrivate says whether a word is, or names, something private: FILE, @FILE,
// NAME=@FILE, --post-file=FILE, open:FILE.
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

// home puts the home directory in place of a leading ~/, as some programs do themselves.
func (w *walker) home(text string) string {
	if rest, ok := strings.CutPrefix(text, "~/"); ok && w.place.Home != "" {
		return w.place.Home + "/" + rest
	}
	return text
}
