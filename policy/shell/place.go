package shell

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perlica/perlica/eventlog/message"
)

// Place has the directories in which a command runs. All paths are absolute. An empty path means unknown, and the
// effect of a command that depends on such a path is unknown. The package does not read the environment or the disk, so
// the caller resolves links.
type Place struct {
	Dir  string   // the agent's working directory
	Home string   // home directory of the agent's user
	Temp []string // the temporary directories
	Own  []string // Perlica's own folders: a program that writes there could answer for a person

	Changed Changed // the files that the session changed before
	// Sandbox is the sandbox of the process that runs the command. Nil means that the process can write outside its
	// project. With a sandbox the caller leaves Changed empty.
	Sandbox *Sandbox
}

// slashed returns the place with all paths cleaned and with slashes in place of backslashes.
func (p Place) slashed() Place {
	return Place{Dir: slashPath(p.Dir), Home: slashPath(p.Home), Temp: slashPaths(p.Temp), Own: slashPaths(p.Own),
		Changed: p.Changed, Sandbox: p.Sandbox}
}

func slashPaths(list []string) (out []string) {
	for _, p := range list {
		if p != "" {
			out = append(out, slashPath(p))
		}
	}
	return out
}

func slashPath(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(filepath.ToSlash(p))
}

// within reports whether the path p is the directory dir or lies below it. Both must be clean.
func within(dir, p string) bool {
	if dir == "" {
		return false
	}
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// writable reports whether a path or pattern lies in the working directory or a temporary directory. Commands may write
// there without a question.
func (p Place) writable(target string, glob bool) bool {
	sweeps := glob && sweeping(path.Base(target))
	if glob {
		target = fixedPrefix(target)
	}
	if within(p.Dir, target) {
		return true
	}
	for _, t := range p.Temp {
		// A pattern for all files of a temporary directory, or the directory itself, is not writable, because other
		// programs use the directory, too.
		if within(t, target) && (target != t || glob && !sweeps) {
			return true
		}
	}
	return false
}

// fixedPrefix returns the part of a pattern before its first wildcard: a directory that contains all matches.
func fixedPrefix(pattern string) string {
	base, _ := doublestar.SplitPattern(pattern)
	return Unescape(base)
}

// systemDirs are the usual system directories directly below the root.
var systemDirs = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/proc", "/root",
	"/sbin", "/sys", "/usr", "/var", "/Users", "/System", "/Library", "/Applications", "/Volumes",
}

// loss describes the protected directory, such as the home, that is lost if a command removes target. The parameter
// "target" is a clean absolute path or pattern. The result "word" is the word that a person must type to allow the
// loss. The result "what" is nil if nothing protected is lost. Removing all entries of a directory counts as removing
// the directory.
func (p Place) loss(target string, glob bool) (what *message.Text, word string) {
	if what, word = p.guarded(target, glob); what != nil || !glob {
		return what, word
	}
	stripped := target
	for sweeping(path.Base(stripped)) {
		stripped = path.Dir(stripped)
	}
	if stripped == target {
		return nil, ""
	}
	if glob = HasMeta(stripped); !glob {
		stripped = Unescape(stripped)
	}
	if what, word = p.guarded(stripped, glob); what != nil {
		what = placeAll.With(what)
	}
	return what, word
}

func (p Place) guarded(target string, glob bool) (what *message.Text, word string) {
	is := func(dir string) bool { return dir != "" && same(target, dir, glob) }
	switch {
	case is("/"):
		return placeRoot, "root"
	case is(p.Home):
		return placeHome, "home"
	case is(p.Dir):
		return placeWorking, "directory"
	case anyParent(p.Dir, is):
		return placeParent, "directory"
	case anyParent(p.Home, is), isHome(target):
		return placeAHome, "home"
	case slices.ContainsFunc(systemDirs, is):
		return placeSystem, "system"
	}
	return nil, ""
}

func anyParent(dir string, is func(string) bool) bool {
	for dir != "" && dir != "/" && dir != "." {
		dir = path.Dir(dir)
		if dir != "/" && is(dir) {
			return true
		}
	}
	return false
}

// isHome reports whether the path looks like the home directory of any user, such as /home/bob.
func isHome(p string) bool {
	parent := path.Dir(p)
	return (parent == "/home" || parent == "/Users") && !HasMeta(path.Base(p))
}

// same reports whether the path or pattern target matches dir. It ignores case, because some file systems do.
func same(target, dir string, glob bool) bool {
	if !glob {
		return strings.EqualFold(target, dir)
	}
	ok, err := doublestar.Match(strings.ToLower(target), strings.ToLower(dir))
	return ok && err == nil
}

// probes are lists of typical names of files. If a pattern matches all names of one list, it probably matches all files
// that matter.
var probes = [][]string{
	{"src", "lib", "x9", "qz"},
	{"a.go", "b.txt", "c.md"},
	{".git", ".cache", ".env"},
}

// sweeping reports whether a pattern for one name matches nearly every name.
func sweeping(pattern string) bool {
	spared := func(name string) bool {
		ok, err := doublestar.Match(pattern, name)
		return !ok || err != nil
	}
	return HasMeta(pattern) && slices.ContainsFunc(probes,
		func(row []string) bool { return !slices.ContainsFunc(row, spared) })
}

// HasMeta reports whether the pattern contains an unescaped *, ? or [.
func HasMeta(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			if strings.IndexByte(pattern[i:], ']') > 1 {
				return true
			}
		}
	}
	return false
}

func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`).Replace(s)
}

// Unescape removes the backslashes of a pattern.
func Unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// class matches a bracket expression with a character class, such as [[:alpha:]], which the package doublestar does not
// support. plainClasses replaces it by ?.
var class = lazily(`\[[!^]?(\[:[a-z]+:\]|[^\]])*\[:[a-z]+:\](\[:[a-z]+:\]|[^\]])*\]`)

func plainClasses(pattern string) string {
	if !strings.Contains(pattern, "[:") {
		return pattern
	}
	return class().ReplaceAllString(pattern, "?")
}

// deviceKind is the kind of device at a path, by the effect of writing to it.
type deviceKind int

const (
	notDevice  deviceKind = iota
	sinkDevice            // a device that keeps no data, such as /dev/null
	portDevice            // a terminal, a serial line or a network connection
	diskDevice            // a disk or another device with content that writing destroys
)

var (
	sinks = lazily(`^/dev/(null|zero|full|random|urandom|tty|stdin|stdout|stderr|fd(/.*)?)$`)
	ports = lazily(`^/dev/((tty|console|ptmx|cu\.|video|i2c|spidev|gpio|lp|hidraw|kvm|fuse|uinput).*|(snd|input|` +
		`usb|dri|tcp|udp|pts)/.*)$`)
	disks = lazily(`(?i)^//[.?]/(physicaldrive|harddisk|[a-z]:)`)
)

// device returns the kind of the device at the path p. Paths below /dev/shm are ordinary files and not devices. A file
// with the image of a disk is not a device either.
func device(p string) deviceKind {
	switch {
	case disks().MatchString(strings.ReplaceAll(p, `\`, "/")):
		return diskDevice
	case !strings.HasPrefix(p, "/dev/"), strings.HasPrefix(p, "/dev/shm/"), p == "/dev/shm":
		return notDevice
	case sinks().MatchString(p):
		return sinkDevice
	case ports().MatchString(p):
		return portDevice
	}
	return diskDevice
}

// Removal judges a tool of this ACP kind that removes the file p. The parameter "target" is the path of p after all
// links. The verdict is Refused or Ordinary.
func (at Place) Removal(kind, p, target string) Verdict {
	what, word := at.slashed().loss(slashPath(target), HasMeta(target))
	if what == nil {
		return Verdict{Tier: Ordinary}
	}
	v := because(Refused, whyChangesPlace.With(KindText(kind), what, p))
	v.Word = word
	return v
}

// Change judges a tool of this ACP kind that changes the file p. The parameter "target" is the path of p after all
// links.
func (at Place) Change(kind, p, target string) Verdict {
	at, target = at.slashed(), slashPath(target)
	asked := func(why *message.Text) Verdict {
		return because(AlwaysAsked, why.With(deedOf.With(KindText(kind), p)))
	}
	holds := func(own string) bool { return within(target, own) && kind != "change" && kind != "other" }
	if at.owns(target, false) || slices.ContainsFunc(at.Own, holds) {
		v := because(Refused, whyChangesOwn.With(KindText(kind), p))
		v.Word = "perlica"
		return v
	}
	switch {
	case !at.writable(target, false), at.athome(target):
		return asked(whyOutside)
	case at.dotfile(target):
		return asked(whySettingsFile)
	}
	if why := at.planted(target, HasMeta(target)); why != nil {
		return asked(why)
	}
	return Verdict{Tier: Ordinary}
}

// athome reports whether the target lies in the home, but neither in the working directory nor in a temporary directory
// inside the home.
func (at Place) athome(target string) bool {
	return at.Home != "" && within(at.Home, target) && !within(at.Dir, target) &&
		!slices.ContainsFunc(at.Temp, func(t string) bool { return within(at.Home, t) && within(t, target) })
}

// dotfile reports whether the target is a hidden file of the home or lies in a hidden directory of the home. If the
// working directory does not contain the home, it returns false.
func (at Place) dotfile(target string) bool {
	return at.Home != "" && within(at.Home, target) && within(at.Dir, at.Home) &&
		strings.HasPrefix(strings.TrimPrefix(target, strings.TrimSuffix(at.Home, "/")+"/"), ".")
}
