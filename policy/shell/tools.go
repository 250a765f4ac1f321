package shell

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
	dashed := name == "chmod" && slices.ContainsFunc(fs[1:], func(f field) bool { return minusMode().MatchString(f.text) })
	if len(operands) > 0 && !has(opts, "--reference") && !dashed {
		operands = operands[1:]
	}
	for _, f := range operands {
		if recursive {
			w.lockOut(f, st, fs)
		}
		if slices.ContainsFunc(w.targets(f, st), func(target string) bool { return slices.Contains(w.place.Temp, target) }) {
			w.ask("changes the rights of what belongs to others, too: %s", shown(fs))
		}
		w.write(f, st, shown(fs))
	}
}

// minusMode is a mode that looks like options.
var minusMode = lazily(`^-[rwxXstugo]+(,.*)?$`)

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
	opts, operands := options(fs[1:], "ef --expression --file", false)
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
	opts, _ := options(tarArgs(fs[1:]), "fCTXbgLHNVKIF --file --directory --files-from --exclude --exclude-from --to-command --checkpoint-action --use-compress-program --info-script --new-volume-script --rsh-command --rmt-command", false)
	for _, o := range opts {
		script := slices.Contains([]string{"--to-command", "--checkpoint-action", "--use-compress-program", "-I", "--info-script", "--new-volume-script", "-F", "--rsh-command", "--rmt-command"}, o.name)
		if script && o.value != nil {
			action, runs := strings.CutPrefix(o.value.text, "exec=")
			if o.name == "--checkpoint-action" && !runs {
				continue
			}
			w.nested(action, *part(*o.value, action), st.child(nil), flow{})
			if o.name != "--use-compress-program" && o.name != "-I" {
				w.ask("runs a command for what it packs: %s", shown(fs))
			}
		}
	}
	at := st.clone()
	if o, ok := find(opts, "-C", "--directory"); ok && o.value != nil {
		if has(opts, "-x", "--extract", "--get") {
			w.write(*o.value, st, "unpacks to "+o.value.text)
		}
	} else if has(opts, "-P", "--absolute-names") && has(opts, "-x", "--extract") {
		w.ask("unpacks to wherever the archive says: %s", shown(fs))
	}
	if has(opts, "--remove-files") {
		w.packAway(fs, st)
	}
	if o, ok := find(opts, "-f", "--file"); ok && o.value != nil && has(opts, "-c", "-r", "-u", "--create", "--append") {
		if o.value.text != "-" {
			w.write(*o.value, at, "writes to "+o.value.text)
		}
	}
}

// packAway judges that tar removes what it has packed. A -C holds for what follows it.
func (w *walker) packAway(fs []field, st *state) {
	at := st.clone()
	args := tarArgs(fs[1:])
	for i := 0; i < len(args); i++ {
		text := args[i].text
		dir, long := strings.CutPrefix(text, "--directory=")
		switch {
		case long:
			at.chdir(*part(args[i], dir))
		case (text == "-C" || text == "--directory") && i+1 < len(args):
			i++
			at.chdir(args[i])
		case strings.HasPrefix(text, "-"):
			if strings.HasSuffix(text, "f") || text == "--file" || text == "-T" || text == "-X" {
				i++
			}
		default:
			w.destroy(args[i], at, true, "packs and removes", fs)
		}
		at.pending = nil
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

func isDiskTool(name string) bool {
	return name == "mkfs" || strings.HasPrefix(name, "mkfs.") || strings.HasPrefix(name, "newfs") || listed("diskTools", name)
}

// diskTool judges what makes, wipes or divides file systems.
func (w *walker) diskTool(name string, fs []field, st *state) {
	if among(fs[1:], "-l", "--list", "print", "list", "info", "status", "-V", "--version", "--help", "-h", "-I", "luksDump", "isLuks") {
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
