package shell

import (
	"slices"
	"strings"
)

// setting is the row of a program in the part settings of programs.txt. Such a program changes the machine: its power,
// services, kernel, mounts or network. The row has the words with which the program only shows something.
type setting struct {
	shows []string // first operands, and options, with which the program only shows something
	bare  bool     // without arguments the program only shows something
	acts  []string // if not empty, the program changes something only with one of these words
}

var settings = table("settings", func(said string) setting {
	m := members(said, "shows", "bare", "acts")
	return setting{shows: m["shows"], bare: m["bare"] != nil, acts: m["acts"]}
})

// judgeMachine asks about a program that changes the machine. It reports whether the table has the program in the parts
// settings or changing.
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

// onlyShows is for a program without words in acts. It reports whether the program only shows something with these
// arguments.
func (s setting) onlyShows(name string, args []field) bool {
	if len(args) == 0 && s.bare || asksForHelp(args) {
		return true
	}
	for i, f := range args {
		// A word of s.shows must be the first word, follow an option, or be an option itself. At other places it may be
		// a name.
		first := i == 0 || strings.HasPrefix(args[i-1].text, "-") || name == "service" && i == 1
		if slices.Contains(s.shows, f.text) && (first || strings.HasPrefix(f.text, "-")) {
			return true
		}
	}
	return false
}

// isAct reports whether a word is in acts, or matches a pattern in acts.
func (s setting) isAct(f field) bool {
	word, _, _ := strings.Cut(f.text, "=")
	return slices.ContainsFunc(s.acts, func(act string) bool {
		windows := strings.HasPrefix(act, "/") && strings.EqualFold(word, act)
		return word == act || windows || inOrder([]string{act}, []string{f.text}, false)
	})
}

// asksForHelp reports whether args is only --help or only --version.
func asksForHelp(args []field) bool {
	return len(args) == 1 && (args[0].text == "--help" || args[0].text == "--version")
}

// judgeKill asks about signals to processes that the script did not start itself, such as all processes or a whole
// group.
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

// namesParent reports whether a word may mean a parent process of the command, or Perlica.
func namesParent(f field) bool {
	return f.vague && f.origin.is(private) || parents().MatchString(f.src) ||
		parents().MatchString(strings.ReplaceAll(f.text, unknownText, ""))
}

// selectsOthers reports whether the words of pkill or killall select processes that the script did not start.
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

// everyones are words such as -u, .* and sshd. With such a word, pkill and killall select all processes of a user,
// all processes, or processes of the system. groups are options of pkill that select all processes of a group or a
// terminal.
var (
	everyones = strings.Fields("-u -U --user --euid --uid -v --inverse . .* systemd init sshd launchd perlica")
	groups    = strings.Fields("-t --terminal -s --session -g --pgroup -G --group")
)

// killed returns the operands of kill that name processes, without the signal.
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

// foreignProcess reports whether an operand of kill may mean a process that the script did not start. This may be a
// group, all processes, process 1, or the output of a command that ownProcess does not match.
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

// ownProcess matches substitutions that print the numbers of a few processes, such as $(lsof -ti :8080) or $(cat
// server.pid).
var ownProcess = lazily("^(\\$\\(|`)\\s*(lsof|jobs|pgrep|(cat|head|<)\\s*[^|;]*pid)\\b")

// procs matches scripts that may look up the number of a parent process.
var procs = lazily(`(?i)\bppid\b|/proc/`)

// parents matches words that may mean a parent process of the command, or Perlica.
var parents = lazily(`(?i)\bppid\b|perlica|/proc/`)

// judgeContainer asks about containers with access to the whole machine, and about commands that end all containers.
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

// allContainers reports whether a word is the output of an unfiltered list of containers, as in $(docker ps -q).
func allContainers(f field) bool {
	lists := f.listed || strings.Contains(f.src, " ps ") || strings.Contains(f.src, " ls ")
	return f.vague && lists && !strings.Contains(f.src, "filter") && !strings.Contains(f.src, " -f")
}

// mounts reports whether a volume gives a container access to a dangerous directory: the root, the home, a system
// directory, a socket, or a relative path outside the working directory.
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

// judgePermissions judges chmod, chown and other commands that change the rights of files.
func (w *walker) judgePermissions(name string, fs []field, st *state) {
	opts, operands := options(fs[1:], "--reference --from", false)
	if name == "chmod" {
		// A mode such as -x or -rwx looks like an option, so the first operand may be a file.
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
		f.made = true // the content of the file does not change
		w.judgeWrite(f, st, shown(fs))
	}
}

// minusMode matches a mode of chmod that looks like an option, such as -x.
var minusMode = lazily(`^-[rwxXstugo]+(,.*)?$`)

// lockOut refuses a change of the rights of everything in a protected directory, such as the home, because people may
// lose their access. In the working directory such a change is everyday work.
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

// setuid asks about modes such as 4755, with which a program runs with the rights of its owner or group.
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

// judgeArchive judges the directory to which tar or unzip unpacks, and the archive that tar writes.
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

// tarScriptOptions are the options of tar with a command as value.
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

// packAway judges the files that tar --remove-files removes after packing them. An option -C changes the directory for
// the following files.
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

// tarArgs adds the dash to tar's first argument if it is missing, as in tar xf FILE.
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

// diskTool judges a program that creates, wipes or partitions file systems.
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
