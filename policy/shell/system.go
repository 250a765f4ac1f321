package shell

import (
	"slices"
	"strings"
)

// setting is the row of a program that changes the machine: its power, services, kernel, mounts or network. Its words
// show whether it only reads.
type setting struct {
	shows []string // first operands or options with which it only shows
	bare  bool     // without operands it only shows
	acts  []string // if not empty, it changes something only with one of these words
}

var settings = table("settings", func(said string) setting {
	m := members(said, "shows", "bare", "acts")
	return setting{shows: m["shows"], bare: m["bare"] != nil, acts: m["acts"]}
})

// judgeMachine asks about changes of the machine. It reports whether the program is known.
func (w *walker) judgeMachine(name string, fs []field) bool {
	s, found := settings(name)
	if !found && !listed("changing", name) {
		return false
	}
	shows := s.onlyShows(name, fs[1:])
	if len(s.acts) > 0 {
		shows = !slices.ContainsFunc(fs[1:], s.isAct)
	}
	if name == "systemctl" && len(fs) > 1 {
		shows = shows || among(fs[1:], s.shows...)
	}
	if !shows {
		w.askBecause(whyMachine, shown(fs))
	}
	return true
}

// onlyShows reports whether a program without acts only shows something with these arguments.
func (s setting) onlyShows(name string, args []field) bool {
	if len(args) == 0 && s.bare || asksForHelp(args) {
		return true
	}
	for i, f := range args {
		// A word in s.shows counts if it is the first word, if it follows an option, or if it is an option itself.
		first := i == 0 || strings.HasPrefix(args[i-1].text, "-") || name == "service" && i == 1
		if slices.Contains(s.shows, f.text) && (first || strings.HasPrefix(f.text, "-")) {
			return true
		}
	}
	return false
}

// isAct reports whether a word is one with which the program changes something.
func (s setting) isAct(f field) bool {
	word, _, _ := strings.Cut(f.text, "=")
	return slices.ContainsFunc(s.acts, func(act string) bool {
		windows := strings.HasPrefix(act, "/") && strings.EqualFold(word, act)
		return word == act || windows || inOrder([]string{act}, []string{f.text}, false)
	})
}

// asksForHelp reports whether the only argument is --help or --version.
func asksForHelp(args []field) bool {
	return len(args) == 1 && (args[0].text == "--help" || args[0].text == "--version")
}

// judgeKill asks about signals to all processes, to a group, or to processes that the command does not start itself.
func (w *walker) judgeKill(name string, fs []field, st *state) {
	all := name != "kill" && selectsOthers(name, fs)
	above := procs().MatchString(w.text)
	for _, f := range fs[1:] {
		all = all || namesParent(f) || above && (f.vague || f.glob || strings.Contains(f.src, "$"))
	}
	if name == "kill" && !among(fs[1:], "-l", "-L") {
		all = all || slices.ContainsFunc(killed(fs), func(f field) bool { return foreignProcess(f, st) })
	}
	if all {
		w.askBecause(whyEndsProcesses, shown(fs))
	}
}

// namesParent reports whether a word may stand for a parent process of the command, or for Perlica.
func namesParent(f field) bool {
	return f.vague && f.origin.is(private) || parents().MatchString(f.src) ||
		parents().MatchString(strings.ReplaceAll(f.text, unknownText, ""))
}

// selectsOthers reports whether the words of pkill or killall select processes that the command did not start.
func selectsOthers(name string, fs []field) bool {
	pattern := name == "pkill" || name == "killall" && among(fs, "-r", "--regexp")
	for i, f := range fs[1:] {
		switch {
		case slices.Contains(everyones, f.text), name != "killall" && slices.Contains(groups, f.text):
			return true
		case f.text == "-P" && i+2 < len(fs) && !strings.Contains(fs[i+2].src, "$"):
			return true
		case pattern && !strings.HasPrefix(f.text, "-") && covers(f.text):
			return true
		}
	}
	return false
}

// everyones are words of pkill and killall that select the processes of a user or of the system. groups are words of
// pkill that select whole groups and terminals.
var (
	everyones = strings.Fields("-u -U --user --euid --uid -v --inverse . .* systemd init sshd launchd perlica")
	groups    = strings.Fields("-t --terminal -s --session -g --pgroup -G --group")
)

// killed returns the operands of kill after the signal.
func killed(fs []field) []field {
	args := fs[1:]
	switch {
	case len(args) > 1 && (args[0].text == "-s" || args[0].text == "-n" || args[0].text == "--signal"):
		args = args[2:]
	case len(args) > 1 && strings.HasPrefix(args[0].text, "-") && args[0].text != "--":
		args = args[1:]
	}
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	return args
}

// foreignProcess reports whether an operand of kill may mean a process of others: a group, all processes, process 1,
// or the output of a command that ownProcess does not match.
func foreignProcess(f field, st *state) bool {
	src := strings.Trim(f.src, `"-`)
	if v, ok := st.vars[strings.Trim(src, "${}")]; ok && v.src != "" {
		src = strings.Trim(v.src, `"`)
	}
	switch {
	case src == "$!", src == "${!}", ownProcess().MatchString(src):
		return false
	case !f.vague:
		return strings.TrimLeft(f.text, "0") == "" || f.text == "1" || strings.HasPrefix(f.text, "-")
	}
	return strings.HasPrefix(f.src, "-") || strings.Contains(src, "$(") || strings.Contains(src, "`")
}

// ownProcess matches commands that print processes by a port, a job, a name or a file with a number.
var ownProcess = lazily("^(\\$\\(|`)\\s*(lsof|jobs|pgrep|(cat|head|<)\\s*[^|;]*pid)\\b")

// procs matches texts that may find a parent process of the command.
var procs = lazily(`(?i)\bppid\b|/proc/`)

// parents matches words that stand for a parent process of the command, or for Perlica.
var parents = lazily(`(?i)\bppid\b|perlica|/proc/`)

// judgeContainer asks about containers that reach the whole machine.
func (w *walker) judgeContainer(fs []field, st *state) {
	if among(fs[1:min(len(fs), 3)], "stop", "kill", "rm", "restart", "pause") &&
		slices.ContainsFunc(fs[1:], allContainers) {
		w.askBecause(whyEndsContainers, shown(fs))
	}
	for i, f := range fs[1:] {
		next := ""
		if i+2 < len(fs) {
			next = fs[i+2].text
		}
		name, value, has := strings.Cut(f.text, "=")
		if !has {
			value = next
		}
		lower := strings.ToLower(value)
		open := false
		switch name {
		case "--privileged":
			open = !has || value != "false"
		case "--cap-add":
			open = slices.Contains([]string{"all", "sys_admin", "cap_sys_admin", "sys_module", "sys_ptrace",
				"sys_rawio", "dac_read_search"}, lower)
		case "--pid", "--ipc", "--userns", "--uts", "--cgroupns":
			open = value == "host"
		case "--device":
			open = device(strings.SplitN(value, ":", 2)[0]) == diskDevice && !strings.HasPrefix(value, "/dev/nvidia") &&
				!strings.HasPrefix(value, "/dev/kfd")
		case "--security-opt":
			open = strings.Contains(lower, "unconfined") || strings.Contains(lower, "disable")
		case "-v", "--volume", "--mount":
			open = w.mounts(value, st)
		default:
			if strings.HasPrefix(name, "-v") && len(f.text) > 2 && f.text[2] == '/' {
				open = w.mounts(f.text[2:], st)
			}
		}
		if open {
			w.askBecause(whyContainer, shown(fs))
			return
		}
	}
}

// allContainers reports whether a word stands for all containers of an unfiltered list.
func allContainers(f field) bool {
	lists := f.listed || strings.Contains(f.src, " ps ") || strings.Contains(f.src, " ls ")
	return f.vague && lists && !strings.Contains(f.src, "filter") && !strings.Contains(f.src, " -f")
}

// mounts reports whether a volume reaches too far into the machine: to the root, the home, a system directory, the
// container service's socket, or a folder outside the tree by a relative path.
func (w *walker) mounts(volume string, st *state) bool {
	source, _, _ := strings.Cut(volume, ":")
	if strings.Contains(volume, "source=") || strings.Contains(volume, "src=") {
		for part := range strings.SplitSeq(volume, ",") {
			if key, value, _ := strings.Cut(part, "="); key == "source" || key == "src" {
				source = value
			}
		}
	}
	source = w.home(source)
	if source == "~" {
		source = w.place.Home
	}
	if strings.HasPrefix(source, ".") {
		return !strings.HasSuffix(volume, ":ro") && w.outside(literal(source), st)
	}
	if !strings.HasPrefix(source, "/") {
		return false
	}
	target := slashPath(source)
	if strings.HasSuffix(target, ".sock") || isPrivate(target) || w.place.owns(target, false) {
		return true
	}
	if what, _ := w.place.loss(target, false); what != nil && target != w.place.Dir {
		return !strings.HasSuffix(volume, ":ro") || target == "/"
	}
	system := []string{"/etc", "/usr", "/boot", "/sys", "/proc", "/var/run", "/run", "/bin", "/sbin", "/lib", "/root"}
	return !strings.HasSuffix(volume, ":ro") && slices.ContainsFunc(system,
		func(dir string) bool { return within(dir, target) })
}

// judgePermissions judges chmod, chown and similar commands.
func (w *walker) judgePermissions(name string, fs []field, st *state) {
	opts, operands := options(fs[1:], "--reference --from", false)
	if name == "chmod" {
		// A mode such as -x or -rwx looks like an option.
		if len(operands) > 0 {
			w.setuid(operands[0].text, fs)
		}
		for _, f := range fs[1:] {
			if strings.HasPrefix(f.text, "+") || strings.Contains(f.text, "+s") {
				w.setuid(f.text, fs)
			}
		}
	}
	recursive := hasOption(opts, "-R", "--recursive")
	dashed := name == "chmod" && slices.ContainsFunc(fs[1:],
		func(f field) bool { return minusMode().MatchString(f.text) })
	if len(operands) > 0 && !hasOption(opts, "--reference") && !dashed {
		operands = operands[1:]
	}
	for _, f := range operands {
		if recursive {
			w.lockOut(f, st, fs)
		}
		if slices.ContainsFunc(w.targets(f, st), func(target string) bool {
			return slices.Contains(w.place.Temp,
				target)
		}) {
			w.askBecause(whyOthersRights, shown(fs))
		}
		f.made = true // its content stays
		w.judgeWrite(f, st, shown(fs))
	}
}

// minusMode matches a mode that looks like an option.
var minusMode = lazily(`^-[rwxXstugo]+(,.*)?$`)

// lockOut judges a change of rights on a whole directory. In the working directory this is everyday work. Above it or
// in the home it locks people out.
func (w *walker) lockOut(f field, st *state, fs []field) {
	for _, d := range st.dirs {
		target, ok := w.target(f, d)
		if f.vague || !ok {
			w.askUnknown(whyUnknownRights, shown(fs))
			continue
		}
		what, word := w.place.loss(target, f.glob)
		if what == nil || what == placeWorking || what.Is(placeAll) && what.Args[0] == placeWorking {
			continue
		}
		w.addFinding(Refused, whyRights.With(what, shown(fs)), word)
	}
}

// setuid asks about modes that let a program run as its owner.
func (w *walker) setuid(mode string, fs []field) {
	octal := strings.TrimLeft(mode, "0=")
	digits := strings.Trim(octal, "01234567") == ""
	special := len(octal) >= 4 && digits && octal[len(octal)-4]&6 != 0
	symbolic := !digits && strings.Contains(mode, "s") && strings.ContainsAny(mode, "+=")
	if special || symbolic {
		w.askBecause(whyPrivileges, shown(fs))
	}
}

func (w *walker) editInPlace(fs []field, st *state) {
	if !slices.ContainsFunc(fs[1:], func(f field) bool {
		return strings.HasPrefix(f.text, "-i") || strings.HasPrefix(f.text, "--in-place") ||
			strings.HasPrefix(f.text, "-pi")
	}) {
		return
	}
	opts, operands := options(fs[1:], "ef --expression --file", false)
	if !hasOption(opts, "-e", "-f", "--expression", "--file") && len(operands) > 0 {
		operands = operands[1:]
	}
	for _, f := range operands {
		if !strings.ContainsAny(f.text, ";") {
			w.judgeWrite(f, st, deedEdits.With(f.src))
		}
	}
}

// judgeArchive judges the target directory of unpacked files, and the file of a new archive.
func (w *walker) judgeArchive(name string, fs []field, st *state) {
	if name == "unzip" || name == "7z" {
		opts, _ := options(fs[1:], "dxP", false)
		if o, ok := findOption(opts, "-d"); ok && o.value != nil && name == "unzip" {
			w.judgeWrite(*o.value, st, deedUnpacks.With(o.value.text))
		}
		return
	}
	opts, _ := options(tarArgs(fs[1:]), "fCTXbgLHNVKIF --file --directory --files-from --exclude --exclude-from "+
		"--to-command --checkpoint-action --use-compress-program --info-script --new-volume-script --rsh-command "+
		"--rmt-command", false)
	w.tarScripts(opts, fs, st)
	at := st.clone()
	unpacks := hasOption(opts, "-x", "--extract", "--get")
	if o, ok := findOption(opts, "-C", "--directory"); ok && o.value != nil && unpacks {
		w.judgeWrite(*o.value, st, deedUnpacks.With(o.value.text))
	}
	if unpacks && hasOption(opts, "-P", "--absolute-names", "--absolute-paths") {
		w.askBecause(whyUnpacksAnywhere, shown(fs))
	}
	if hasOption(opts, "--remove-files") {
		w.packAway(fs, st)
	}
	if o, ok := findOption(opts, "-f", "--file"); ok && o.value != nil &&
		hasOption(opts, "-c", "-r", "-u", "--create", "--append") {
		if o.value.text != "-" {
			w.judgeWrite(*o.value, at, deedWrites.With(o.value.text))
			w.markOrigin(*o.value, at, w.privacy(fs, st))
		}
	}
}

// tarScriptOptions are the options of tar whose value is a command.
var tarScriptOptions = strings.Fields(`--to-command --checkpoint-action --use-compress-program -I --info-script
	--new-volume-script -F --rsh-command --rmt-command`)

// tarScripts judges the commands in the options of tar.
func (w *walker) tarScripts(opts []option, fs []field, st *state) {
	for _, o := range opts {
		if o.value == nil || !slices.Contains(tarScriptOptions, o.name) {
			continue
		}
		action, runs := strings.CutPrefix(o.value.text, "exec=")
		if o.name == "--checkpoint-action" && !runs {
			continue
		}
		w.walkNested(action, *part(*o.value, action), st.child(nil), flow{})
		compresses := o.name == "--use-compress-program" || o.name == "-I"
		if !compresses || !harmlessCommand(*o.value) {
			w.askBecause(whyPackingCommand, shown(fs))
		}
	}
}

// packAway judges the files that tar removes after packing them. A -C holds for the following files.
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
			w.judgeDestroy(args[i], at, true, verbPacks, fs)
		}
		at.pending = nil
	}
}

// tarArgs adds the dash to tar's first argument in the old form.
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
	return name == "mkfs" || strings.HasPrefix(name, "mkfs.") || strings.HasPrefix(name, "newfs") ||
		listed("diskTools", name)
}

// diskTool judges programs that make, wipe or partition file systems.
func (w *walker) diskTool(name string, fs []field, st *state) {
	if among(fs[1:], "-l", "--list", "print", "list", "info", "status", "-V", "--version", "--help", "-h", "-I",
		"luksDump", "isLuks") {
		return
	}
	for _, f := range fs[1:] {
		switch {
		case f.vague:
			w.askUnknown(whyUnknownOverwrite, shown(fs))
		case device(slashRaw(f.text)) == diskDevice || name == "diskutil" &&
			strings.HasPrefix(strings.ToLower(f.text), "erase"):
			w.addFinding(Refused, whyOverwritesDevice.With(shown(fs)), "device")
		case strings.Contains(f.text, "/") && !strings.HasPrefix(f.text, "-"):
			w.judgeWrite(f, st, shown(fs))
		}
	}
}
