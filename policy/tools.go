package policy

import (
	"slices"
	"strings"
)

// permissions judges chmod, chown and their like.
func (w *walker) permissions(name string, fs []field, st *state) {
	opts, operands := options(fs[1:], "--reference --from", false)
	if name == "chmod" {
		// A mode such as -x or -rwx looks like options.
		if len(operands) > 0 {
			w.setuid(operands[0].text, fs)
		}
		for _, f := range fs[1:] {
			if strings.HasPrefix(f.text, "+") || strings.Contains(f.text, "+s") {
				w.setuid(f.text, fs)
			}
		}
	}
	recursive := has(opts, "-R", "--recursive")
	if len(operands) > 0 && !has(opts, "--reference") {
		operands = operands[1:]
	}
	for _, f := range operands {
		if recursive {
			w.lockOut(f, st, fs)
		}
		w.write(f, st, shown(fs))
	}
}

// lockOut judges a change of rights on a whole directory. In the working directory
// it is everyday work, above it or at home it locks people out.
func (w *walker) lockOut(f field, st *state, fs []field) {
	for _, d := range st.dirs {
		target, ok := w.target(f, d)
		if f.vague || !ok {
			w.unknown("the text does not tell whose rights it changes: %s", shown(fs))
			continue
		}
		what, word := w.place.loss(target, f.glob)
		if what == "" || strings.HasSuffix(what, "the working directory") && !strings.Contains(what, "parent") {
			continue
		}
		w.add(Refused, "changes the rights of "+what+": "+shown(fs), word)
	}
}

// setuid asks about modes that let a program run as its owner.
func (w *walker) setuid(mode string, fs []field) {
	octal := strings.TrimLeft(mode, "0=")
	digits := strings.Trim(octal, "01234567") == ""
	special := len(octal) >= 4 && digits && octal[len(octal)-4]&6 != 0
	symbolic := !digits && strings.Contains(mode, "s") && strings.ContainsAny(mode, "+=")
	if special || symbolic {
		w.ask("changes privileges: %s", shown(fs))
	}
}

func (w *walker) editInPlace(fs []field, st *state) {
	if !slices.ContainsFunc(fs[1:], func(f field) bool {
		return strings.HasPrefix(f.text, "-i") || strings.HasPrefix(f.text, "--in-place") || strings.HasPrefix(f.text, "-pi")
	}) {
		return
	}
	opts, operands := options(fs[1:], "efE --expression --file", false)
	if !has(opts, "-e", "-f", "--expression", "--file") && len(operands) > 0 {
		operands = operands[1:]
	}
	for _, f := range operands {
		if !strings.ContainsAny(f.text, ";") {
			w.write(f, st, "edits "+f.src)
		}
	}
}

// archive judges where files are unpacked, and where an archive is written.
func (w *walker) archive(name string, fs []field, st *state) {
	if name == "unzip" || name == "7z" {
		opts, _ := options(fs[1:], "dxo", false)
		if o, ok := find(opts, "-d"); ok && o.value != nil && name == "unzip" {
			w.write(*o.value, st, "unpacks to "+o.value.text)
		}
		return
	}
	opts, _ := options(tarArgs(fs[1:]), "fCTXbgLHNVKIF --file --directory --files-from --exclude --exclude-from", false)
	at := st.clone()
	if o, ok := find(opts, "-C", "--directory"); ok && o.value != nil {
		if has(opts, "-x", "--extract", "--get") {
			w.write(*o.value, st, "unpacks to "+o.value.text)
		}
	} else if has(opts, "-P", "--absolute-names") && has(opts, "-x", "--extract") {
		w.ask("unpacks to wherever the archive says: %s", shown(fs))
	}
	if o, ok := find(opts, "-f", "--file"); ok && o.value != nil && has(opts, "-c", "-r", "-u", "--create", "--append") {
		if o.value.text != "-" {
			w.write(*o.value, at, "writes to "+o.value.text)
		}
	}
}

// tarArgs gives tar's old first argument its dash.
func tarArgs(args []field) []field {
	if len(args) == 0 || args[0].vague || strings.HasPrefix(args[0].text, "-") {
		return args
	}
	letters := args[0].text
	f := strings.IndexByte(letters, 'f')
	if f >= 0 {
		letters = letters[:f] + letters[f+1:] + "f"
	}
	first := *part(args[0], "-"+letters)
	return append([]field{first}, args[1:]...)
}

var diskTools = []string{
	"mke2fs", "mkswap", "mkdosfs", "wipefs", "fdisk", "sfdisk", "gdisk", "sgdisk", "cfdisk", "parted", "blkdiscard", "hdparm",
	"badblocks", "cryptsetup", "pvcreate", "pvremove", "vgremove", "lvremove", "mdadm", "zpool", "diskutil", "nvme", "partx", "tune2fs",
}

func isDiskTool(name string) bool {
	return name == "mkfs" || strings.HasPrefix(name, "mkfs.") || strings.HasPrefix(name, "newfs") || slices.Contains(diskTools, name)
}

// diskTool judges what makes, wipes or divides file systems.
func (w *walker) diskTool(name string, fs []field, st *state) {
	reads := slices.ContainsFunc(fs[1:], func(f field) bool {
		return slices.Contains([]string{"-l", "--list", "print", "list", "info", "status", "-V", "--version", "--help", "-h", "-I", "luksDump", "isLuks"}, f.text)
	})
	if reads {
		return
	}
	for _, f := range fs[1:] {
		switch {
		case f.vague:
			w.unknown("the text does not tell what it overwrites: %s", shown(fs))
		case device(slashRaw(f.text)) == diskDevice || name == "diskutil" && strings.HasPrefix(strings.ToLower(f.text), "erase"):
			w.add(Refused, "overwrites a device: "+shown(fs), "device")
		case strings.Contains(f.text, "/") && !strings.HasPrefix(f.text, "-"):
			w.write(f, st, shown(fs))
		}
	}
}

const gitValued = "Cc --git-dir --work-tree --namespace --exec-path --super-prefix --config-env"

// git judges pushes that rewrite, and the few other uses that lose or leave something.
func (w *walker) git(fs []field, st *state) {
	global, rest := options(fs[1:], gitValued, true)
	st = st.clone()
	for _, o := range global {
		switch {
		case o.name == "-C" && o.value != nil:
			st.chdir(*o.value)
			st.pending = nil
		case o.name == "-c" && o.value != nil:
			key, value, _ := strings.Cut(o.value.text, "=")
			if command, ok := strings.CutPrefix(value, "!"); ok && strings.HasPrefix(strings.ToLower(key), "alias.") {
				w.nested(command, *o.value, st.child(nil), flow{})
			}
		}
	}
	if len(rest) == 0 {
		return
	}
	w.gitCommand(rest[0].text, rest[1:], fs, st)
}

func (w *walker) gitCommand(sub string, args, fs []field, st *state) {
	switch sub {
	case "push":
		w.push(args, fs)
	case "clean":
		opts, _ := options(args, "e --exclude", false)
		if has(opts, "-f", "--force") && !has(opts, "-n", "--dry-run") {
			w.ask("removes files that are in no commit: %s", shown(fs))
		}
	case "rm":
		if opts, operands := options(args, "", false); has(opts, "-r") && !has(opts, "--cached", "-n", "--dry-run") {
			for _, f := range operands {
				w.destroy(f, st, false, "removes", fs)
			}
		}
	case "clone":
		if _, operands := options(args, "boucj --branch --origin --upload-pack --config --jobs --depth --reference --template --separate-git-dir --filter", false); len(operands) > 1 {
			w.write(operands[1], st, shown(fs))
		}
	case "init":
		_, operands := options(args, "b --initial-branch --template --separate-git-dir", false)
		w.writeAll(operands, st, "creates ")
	case "worktree":
		if _, operands := options(args, "bB --reason", false); len(operands) > 1 && operands[0].text == "add" {
			w.write(operands[1], st, shown(fs))
		}
	case "config":
		opts, operands := options(args, "f --file --type --default", false)
		if has(opts, "--global", "--system") && (len(operands) > 1 || has(opts, "--unset", "--unset-all", "--edit", "-e")) {
			w.ask("outside the working directory: %s", shown(fs))
		}
	case "submodule", "bisect":
		if len(args) > 1 && (args[0].text == "foreach" || args[0].text == "run") {
			_, command := options(args[1:], "", true)
			text := joined(command)
			w.nested(text.text, text, st.child(nil), flow{})
		}
	}
}

// push asks about everything that takes commits or branches away from others.
func (w *walker) push(args, fs []field) {
	opts, operands := options(args, "o --push-option --repo --receive-pack --exec", false)
	forced := has(opts, "-f", "-d", "--force", "--force-with-lease", "--mirror", "--delete", "--prune")
	for i, f := range operands {
		forced = forced || strings.HasPrefix(f.text, "+") || (i > 0 && strings.HasPrefix(f.text, ":") && len(f.text) > 1)
	}
	if forced {
		w.ask("a push that may take commits away: %s", shown(fs))
	}
}
