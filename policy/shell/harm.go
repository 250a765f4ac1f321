package shell

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perlica/perlica/eventlog/message"
)

// judgeHarm judges the commands that can destroy, overwrite or change something, or give rights to others. It returns
// true if this package knows the meaning of all operands. If it returns false, the caller looks for a command among the
// operands.
func (w *walker) judgeHarm(name string, fs []field, st *state, in flow) bool {
	if w.fileCommand(name, fs, st) || w.judgeEscapes(name, fs, st, in) {
		return true
	}
	switch name {
	case "cmake":
		w.cmake(fs, st, in)
		return false
	case "sftp":
		w.sshSettings(optionsOf(fs[1:], "BbcDFiJloPRSsX"), st)
		return false
	case "socat":
		w.addresses(fs, st)
		return false
	case "git":
		w.git(fs, st)
	case "perlica":
		w.ownCall(fs)
	case "kill", "pkill", "killall", "skill":
		w.judgeKill(name, fs, st)
	default:
		if listed("privileges", name) {
			w.askBecause(whyPrivileges, shown(fs))
			return true
		}
		w.judgeDatabase(name, fs, st, in)
		w.lossOrContainer(name, fs, st)
		return w.judgeMachine(name, fs) || isDiskTool(name)
	}
	return true
}

// lossOrContainer judges programs that act outside the working directory, such as disk tools, package managers and
// clients of containers and clouds.
func (w *walker) lossOrContainer(name string, fs []field, st *state) {
	w.judgeRemoteLoss(name, fs)
	if isDiskTool(name) {
		w.diskTool(name, fs, st)
		return
	}
	switch name {
	case "gh":
		if among(fs, "download") {
			w.judgeDownload(name, fs, st)
		}
	case "docker", "podman", "nerdctl", "docker-compose":
		w.judgeContainer(fs, st)
		w.copyOut(fs, st)
	case "kubectl", "oc":
		w.copyOut(fs, st)
	case "npm", "yarn", "pnpm", "pip", "pip3", "bun", "poetry", "go":
		w.packageSettings(fs)
	case "java", "javac", "dpkg", "rpm", "installer":
		for _, f := range fs[1:] {
			if w.runsForeign(f, st) && !strings.HasPrefix(f.text, "-") {
				w.askUnknown(whyRunsDownload, shown(fs))
			}
		}
	}
}

// copyOut judges the target file of a copy out of a container, as in docker cp.
func (w *walker) copyOut(fs []field, st *state) {
	if last := fs[len(fs)-1]; among(fs[1:min(len(fs), 4)], "cp") && !isRemote(last.text) && !isStdin(last.text) {
		w.judgeWrite(last, st, shown(fs))
	}
}

// packageSettings asks about changes of settings of a package manager that name a program to run or a place for
// downloads.
func (w *walker) packageSettings(fs []field) {
	at := slices.IndexFunc(fs[:min(len(fs), 5)], func(f field) bool {
		return slices.Contains([]string{"set",
			"set-script", "-w"}, f.text)
	})
	if at < 0 {
		return
	}
	for _, f := range fs[at+1:] {
		key, _, _ := strings.Cut(f.text, "=")
		plain := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(key))
		if listed("packageKeys", key) || strings.HasPrefix(key, "scripts.") ||
			slices.ContainsFunc(packageKeyParts(), func(part string) bool { return strings.Contains(plain, part) }) {
			w.askBecause(whyNamesCode, shown(fs))
		}
	}
}

// packageKeyParts are parts of the names of settings. The value of such a setting is a program, code or a place for
// downloads.
var packageKeyParts = sync.OnceValue(func() []string {
	return strings.Fields(`shell nodeoptions registry indexurl findlinks trustedhost yarnpath plugin initmodule onload
		userconfig
	globalconfig editor viewer toolexec proxy mirror sumdb goflags`)
})

// fileCommand judges commands such as rm and cp, which change the files that their operands name. It reports whether
// this package knows the meaning of all operands.
func (w *walker) fileCommand(name string, fs []field, st *state) bool {
	args := fs[1:]
	switch name {
	case "del", "rd", "erase", "remove-item":
		w.judgeRemove(name, fs, st)
		w.judgeDrives(fs)
		return false
	case "rm", "grm", "srm", "rmdir", "unlink", "trash", "trash-put", "rimraf", "del-cli", "rip":
		w.judgeRemove(name, fs, st)
	case "shred", "truncate", "wipe":
		w.judgeOverwrite(fs, "nsio --iterations --size --io-blocks --reference --random-source", st)
	case "dd":
		w.dd(fs, st)
	case "mv", "gmv", "rename":
		w.mv(fs, st)
	case "cp", "gcp", "install", "ginstall", "ln", "gln", "ditto", "link", "scp":
		w.judgeCopy(name, fs, st)
	case "rsync":
		w.rsync(fs, st)
	case "mkdir": // a new, empty folder is harmless
		_, operands := options(args, "m --mode", false)
		for _, f := range operands {
			f.folder = true
			w.judgeWrite(f, st, deedCreates.With(f.src))
		}
	case "touch", "mkfifo", "mknod":
		_, operands := options(args, "mdtrA --mode --date --reference", false)
		w.judgeWrites(operands, st, deedCreates)
	case "chmod", "chown", "chgrp", "chattr", "setfacl", "gchmod", "gchown":
		w.judgePermissions(strings.TrimPrefix(name, "g"), fs, st)
	case "tar", "gtar", "bsdtar", "unzip", "7z":
		w.judgeArchive(name, fs, st)
	default:
		return false
	}
	return true
}

// judgeDrives refuses to remove a whole Windows drive.
func (w *walker) judgeDrives(fs []field) {
	for _, f := range fs[1:] {
		if drive().MatchString(f.text) {
			w.addFinding(Refused, whyRemovesRoot.With(shown(fs)), "root")
		}
	}
}

var drive = lazily(`^[A-Za-z]:[\\/]*(\*(\.\*)?)?$`)

// judgeRemove judges rm and other commands that remove their operands.
func (w *walker) judgeRemove(name string, fs []field, st *state) {
	opts, operands := options(fs[1:], "", false)
	recursive := hasOption(opts, "-r", "-R", "--recursive") || name == "rimraf" || name == "trash" || name == "rd" ||
		name == "srm"
	for _, f := range operands {
		w.judgeDestroy(f, st, recursive || f.swept, verbRemoves, fs)
	}
}

// judgeDestroy judges the loss of the file or directory f, from each directory in which the shell may be. If "whole"
// is true, everything below f is lost, too. The parameter "verb" is the action in the reason, such as "removes".
func (w *walker) judgeDestroy(f field, st *state, whole bool, verb *message.Text, fs []field) {
	w.writes = w.writes || w.refusedOnly == 0
	if f.vague && f.listed && !whole {
		return // xargs gets the names from a list, as in xargs rm < list.txt, and a person can read the list
	}
	if f.vague || f.unsure && whole {
		w.askUnknown(whyUnknownLoss, verb, shown(fs))
		return
	}
	if device(slashRaw(f.text)) == diskDevice {
		w.addFinding(Refused, whyDestroysDevice.With(verb, shown(fs)), "device")
		return
	}
	for _, d := range st.dirs {
		target, ok := w.target(f, d)
		if !ok {
			w.askUnknown(whyUnknownPlace, verb, shown(fs))
			continue
		}
		if !d.doubt {
			w.stopWrite(target, f.glob, st)
		}
		what, word := w.place.loss(target, f.glob)
		certain := whole && !d.doubt
		switch {
		case w.ownFile(target, f.glob, shown(fs)):
		case what == nil && certain && !f.glob && w.place.holdsOwn(target):
			w.addFinding(Refused, whyDestroysOwn.With(verb, shown(fs)), "perlica")
		case what != nil && certain:
			w.addFinding(Refused, whyDestroys.With(verb, what, shown(fs)), word)
		case what != nil && d.doubt:
			w.askBecause(whyIfCdFails, verb, what, shown(fs))
		case what != nil:
			w.askBecause(whyDestroys, verb, what, shown(fs))
		case !w.place.writable(target, f.glob) && !d.doubt:
			w.askBecause(whyDestroysOutside, verb, shown(fs))
		default:
			if why := w.place.planted(target, f.glob); why != nil {
				w.askBecause(why, shown(fs))
			}
		}
	}
}

// target returns the absolute path of an operand in the directory d. If the operand is a pattern of file names, it
// returns an absolute pattern. It returns false if d is needed and unknown.
func (w *walker) target(f field, d dir) (string, bool) {
	if !f.glob {
		if d.path == "" && !path.IsAbs(f.text) {
			return "", false
		}
		return resolve(d.path, f.text), true
	}
	if d.path == "" && !path.IsAbs(f.pat) {
		return "", false
	}
	return resolve(escape(d.path), f.pat), true
}

// targets returns the absolute paths or patterns of an operand, one for each directory in which the shell may be.
func (w *walker) targets(f field, st *state) []string {
	var out []string
	for _, d := range st.dirs {
		if target, ok := w.target(f, d); ok {
			out = append(out, target)
		}
	}
	return out
}

func slashRaw(s string) string {
	if strings.HasPrefix(s, "//./") || strings.HasPrefix(s, `\\`) {
		return s
	}
	return path.Clean(s)
}

// judgeWrite judges a command that writes to the file f. The parameter "action" is the action in the reason: the
// command itself, or a text such as "creates a.txt".
func (w *walker) judgeWrite(f field, st *state, action any) {
	if f.out != nil || f.sink != nil || f.vague && f.listed {
		return
	}
	if f.vague {
		w.askUnknown(whyUnknownLead, action)
		return
	}
	w.writes = w.writes || w.refusedOnly == 0 && device(slashRaw(f.text)) != sinkDevice
	w.recordChanged(f, st)
	for _, d := range st.dirs {
		target, ok := w.target(f, d)
		if !ok {
			w.askUnknown(whyUnknownLead, action)
			continue
		}
		if !d.doubt {
			w.stopWrite(target, f.glob, st)
		}
		kind := device(target)
		if k := device(slashRaw(f.text)); k != notDevice {
			kind = k
		}
		switch {
		case w.ownFile(target, f.glob, action):
		case kind == diskDevice:
			w.addFinding(Refused, whyOverwritesDevice.With(action), "device")
		case kind == sinkDevice || d.doubt:
		case kind == portDevice:
			w.askBecause(whyWritesDevice, action)
		case !w.place.writable(target, f.glob) && !slices.Contains(w.place.Temp, target):
			w.askBecause(whyOutside, action)
		default:
			if why := w.place.planted(target, f.glob); why != nil && !f.folder {
				w.askBecause(why, action)
			}
		}
	}
}

func (w *walker) judgeWrites(fs []field, st *state, deed *message.Text) {
	for _, f := range fs {
		w.judgeWrite(f, st, deed.With(f.src))
	}
}

// judgeOverwrite judges commands that destroy the content of their operands.
func (w *walker) judgeOverwrite(fs []field, valued string, st *state) {
	_, operands := options(fs[1:], valued, false)
	for _, f := range operands {
		if f.text == "-" || device(slashRaw(f.text)) == sinkDevice {
			continue
		}
		w.judgeDestroy(f, st, f.swept, verbOverwrites, fs)
	}
}

func (w *walker) dd(fs []field, st *state) {
	for _, f := range fs[1:] {
		if strings.HasPrefix(f.text, unknownText) {
			w.askUnknown(whyUnknownTarget, shown(fs))
		}
		if value, ok := strings.CutPrefix(f.text, "of="); ok {
			g := *part(f, value)
			g.src = f.src
			w.judgeWrite(g, st, shown(fs))
		}
	}
}

// sourcesAndTarget separates the operands of cp, mv, ln and install into sources and target. Without a target, target
// is nil.
func sourcesAndTarget(fs []field) (opts []option, sources []field, target *field) {
	opts, operands := options(fs[1:], "tSgom --target-directory --suffix --group --owner --mode", false)
	if o, ok := findOption(opts, "-t", "--target-directory"); ok && o.value != nil {
		return opts, operands, o.value
	}
	if len(operands) < 2 {
		return opts, operands, nil
	}
	last := len(operands) - 1
	return opts, operands[:last], &operands[last]
}

func (w *walker) mv(fs []field, st *state) {
	_, sources, target := sourcesAndTarget(fs)
	if target == nil {
		return
	}
	for _, f := range sources {
		if f.vague && f.listed {
			continue
		}
		// The pattern moves files in the working directory, and not the directory itself. The files are not lost.
		if f.glob && path.Dir(f.pat) == "." {
			if sweeping(f.pat) && (target.vague || path.IsAbs(target.text) || strings.Contains(target.text, "..")) {
				w.askBecause(whyMovesAll, shown(fs))
			}
			continue
		}
		w.judgeDestroy(f, st, true, verbMovesAway, fs)
	}
	if device(slashRaw(target.text)) != notDevice {
		w.askBecause(whyMovesToDevice, shown(fs))
	}
	w.judgeWrite(*target, st, shown(fs))
	w.copyOrigins(sources, *target, st)
}

func (w *walker) judgeCopy(name string, fs []field, st *state) {
	opts, sources, target := sourcesAndTarget(fs)
	if name == "scp" {
		with := optionsOf(fs[1:], "SoFiPJlcX")
		w.sshSettings(with, st)
		for _, f := range values(with, "-S") {
			w.walkNested(f.text, f, st.child(nil), flow{})
		}
	}
	if name == "install" {
		if hasOption(opts, "-d", "--directory") {
			if target != nil {
				sources = append(sources, *target)
			}
			w.judgeWrites(sources, st, deedCreates)
			return
		}
		if o, ok := findOption(opts, "-m", "--mode"); ok && o.value != nil {
			w.setuid(o.value.text, fs)
		}
	}
	if symbolic := hasOption(opts, "-s", "--symbolic", "--symbolic-link"); symbolic || strings.HasSuffix(name, "ln") ||
		name == "link" || hasOption(opts, "-l", "--link") {
		w.judgeLinks(sources, target, symbolic, fs, st)
	}
	if target == nil || (name == "scp" && isRemote(target.text)) {
		return
	}
	w.judgeWrite(*target, st, shown(fs))
	w.copyOrigins(sources, *target, st)
}

// judgeLinks asks about links that lead out of the working directory, because later writes to the link's name go there.
// A relative target of a symbolic link starts at the directory of the link.
func (w *walker) judgeLinks(sources []field, target *field, symbolic bool, fs []field, st *state) {
	if target == nil && len(fs) > 1 {
		sources = fs[len(fs)-1:]
	}
	for _, f := range sources {
		if f.vague && !f.listed && strings.HasPrefix(f.text, unknownText) {
			w.askUnknown(whyUnknownLink, shown(fs))
		}
		if symbolic && target != nil && !path.IsAbs(f.text) && !f.vague && !strings.HasPrefix(f.text, "~") {
			f = *part(f, path.Join(path.Dir(target.text), f.text))
		}
		if w.outside(f, st) {
			w.askBecause(whyOuterLink, shown(fs))
		}
	}
}

// isRemote reports whether a word has the form host:path.
func isRemote(s string) bool {
	i := strings.IndexByte(s, ':')
	return i > 0 && !strings.Contains(s[:i], "/")
}

func (w *walker) rsync(fs []field, st *state) {
	opts, operands := options(fs[1:], "efTBM --rsh --filter --exclude --include --files-from --partial-dir "+
		"--backup-dir --rsync-path", false)
	for _, f := range values(opts, "-e", "--rsh", "--rsync-path") {
		w.walkNested(f.text, f, st.child(nil), flow{})
	}
	if len(operands) < 2 || isRemote(operands[len(operands)-1].text) {
		return
	}
	target := operands[len(operands)-1]
	if slices.ContainsFunc(opts, func(o option) bool { return strings.HasPrefix(o.name, "--del") }) {
		w.judgeDestroy(target, st, true, verbRemovesExtra, fs)
	}
	w.judgeWrite(target, st, shown(fs))
}
