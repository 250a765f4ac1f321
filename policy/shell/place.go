package shell

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perlica/perlica/eventlog/message"
)

// Place is the surroundings of a command. All paths are absolute. An empty path is unknown, and commands that depend
// on it are judged as unknown. The package does not look at the environment or the disk: the caller resolves links.
type Place struct {
	Dir  string   // the agent's working directory
	Home string   // home directory of the agent's user
	Temp []string // the temporary directories
	Own  []string // Perlica's own folders: a program that writes there could answer for a person

	Changed Changed // the files that the session changed before
	// Sandbox is the sandbox of the process that would act. Nil means that the process can write outside of its project.
	// With a sandbox the caller leaves Changed empty.
	Sandbox *Sandbox
}

// slashed returns the place with clean paths that use slashes.
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

// within reports whether p is dir or lies below it. Both are clean.
func within(dir, p string) bool {
	if dir == "" {
		return false
	}
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// writable reports whether a command may write to a path or a pattern without a question: in the working directory or
// in a temporary directory.
func (p Place) writable(target string, glob bool) bool {
	sweeps := glob && sweeping(path.Base(target))
	if glob {
		target = fixedPrefix(target)
	}
	if within(p.Dir, target) {
		return true
	}
	for _, t := range p.Temp {
		// The whole content of a temporary directory belongs to others, too.
		if within(t, target) && (target != t || glob && !sweeps) {
			return true
		}
	}
	return false
}

// fixedPrefix returns the directory that contains all matches of a pattern.
func fixedPrefix(pattern string) string {
	base, _ := doublestar.SplitPattern(pattern)
	return Unescape(base)
}

// systemDirs are the directories directly below the root.
var systemDirs = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/proc", "/root",
	"/sbin", "/sys", "/usr", "/var", "/Users", "/System", "/Library", "/Applications", "/Volumes",
}

// loss describes the protected directory that is destroyed together with target, a clean absolute path or pattern.
// word is the word that a person would have to type. Empty results mean that nothing protected is lost. Removing all
// entries of a directory counts as removing the directory.
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

// isHome reports whether the path looks like a user's home directory.
func isHome(p string) bool {
	parent := path.Dir(p)
	return (parent == "/home" || parent == "/Users") && !HasMeta(path.Base(p))
}

// same compares names without regard to case, because some file systems do.
func same(target, dir string, glob bool) bool {
	if !glob {
		return strings.EqualFold(target, dir)
	}
	ok, err := doublestar.Match(strings.ToLower(target), strings.ToLower(dir))
	return ok && err == nil
}

// probes are rows of typical names. A pattern that matches all names of one row leaves nothing worth keeping.
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

// class matches bracket expressions with a character class, which doublestar does not support. Each stands for any
// one character.
var class = lazily(`\[[!^]?(\[:[a-z]+:\]|[^\]])*\[:[a-z]+:\](\[:[a-z]+:\]|[^\]])*\]`)

func plainClasses(pattern string) string {
	if !strings.Contains(pattern, "[:") {
		return pattern
	}
	return class().ReplaceAllString(pattern, "?")
}

// deviceKind is the effect of writing to a path.
type deviceKind int

const (
	notDevice  deviceKind = iota
	sinkDevice            // it discards all data, such as /dev/null
	portDevice            // a terminal, a line, a network connection
	diskDevice            // its content would be lost
)

var (
	sinks = lazily(`^/dev/(null|zero|full|random|urandom|tty|stdin|stdout|stderr|fd(/.*)?)$`)
	ports = lazily(`^/dev/((tty|console|ptmx|cu\.|video|i2c|spidev|gpio|lp|hidraw|kvm|fuse|uinput).*|(snd|input|` +
		`usb|dri|tcp|udp|pts)/.*)$`)
	disks = lazily(`(?i)^//[.?]/(physicaldrive|harddisk|[a-z]:)`)
)

// device returns the kind of device that the path names. /dev/shm is a directory, and files with an image are not
// devices.
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

// Removal judges that a tool removes the file p with the target target. The verdict is Refused or Ordinary.
func (at Place) Removal(kind, p, target string) Verdict {
	what, word := at.slashed().loss(slashPath(target), HasMeta(target))
	if what == nil {
		return Verdict{Tier: Ordinary}
	}
	v := because(Refused, whyChangesPlace.With(KindText(kind), what, p))
	v.Word = word
	return v
}

// Change judges that a tool changes the file p with the target target.
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

// athome reports whether the target lies in the home and not in the working directory. A temporary directory inside
// the home does not count as home. A temporary directory that contains the home changes nothing.
func (at Place) athome(target string) bool {
	return at.Home != "" && within(at.Home, target) && !within(at.Dir, target) &&
		!slices.ContainsFunc(at.Temp, func(t string) bool { return within(at.Home, t) && within(t, target) })
}

// dotfile reports whether the target is hidden in the home, or lies in a hidden directory there. It applies only if
// the home is the working directory or lies in it.
func (at Place) dotfile(target string) bool {
	return at.Home != "" && within(at.Home, target) && within(at.Dir, at.Home) &&
		strings.HasPrefix(strings.TrimPrefix(target, strings.TrimSuffix(at.Home, "/")+"/"), ".")
}
