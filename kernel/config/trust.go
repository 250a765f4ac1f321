package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/provider/sandbox"
)

// errNothingToTrust means that a project has neither config.toml nor prompts/system.md.
var errNothingToTrust = errors.New("config: the project has nothing to trust")

// projectFiles has the contents of the two files that need trust. Nil means that a file is absent.
type projectFiles struct {
	config, prompt []byte
}

func (f projectFiles) present() bool { return f.config != nil || f.prompt != nil }

// digest returns a SHA-256 over the name, the presence, the length and the content of both files. So every change of
// either file changes the digest.
func (f projectFiles) digest() string {
	h := sha256.New()
	h.Write([]byte("perlica project v1\n"))
	for _, file := range []struct {
		name string
		data []byte
	}{{"config.toml", f.config}, {"prompts/system.md", f.prompt}} {
		length := int64(-1)
		if file.data != nil {
			length = int64(len(file.data))
		}
		h.Write([]byte(file.name + "\n"))
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(length)))
		h.Write(file.data)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// trustFile returns the path of the file with the trusted digest of a project. Its name is a hash of the project's
// absolute path.
func (d Dirs) trustFile(ws Workspace) string {
	sum := sha256.Sum256([]byte(realPath(ws)))
	return filepath.Join(d.State, "trust", hex.EncodeToString(sum[:]))
}

func realPath(ws Workspace) string {
	if real, err := filepath.EvalSymlinks(ws.Root); err == nil {
		return real
	}
	return ws.Root
}

// trustLine returns the whole content of a trust file.
func trustLine(ws Workspace, digest string) string {
	return digest + "  " + fmt.Sprintf("%q", realPath(ws)) + "\n"
}

// Trust lets all settings of the project's files take effect while the files have this digest. The caller passes the
// Config.Project.Digest of the files that the person saw, so that a later change is not trusted. When Trust returns
// nil, the trust survives a crash.
func Trust(dirs Dirs, ws Workspace, digest string) error {
	if digest == "" {
		return errNothingToTrust
	}
	path := dirs.trustFile(ws)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("config: trust: %w", err)
	}
	if err := disk.WriteFile(path, []byte(trustLine(ws, digest)), 0o600, os.Rename); err != nil {
		return fmt.Errorf("config: trust: %w", err)
	}
	return nil
}

// Untrust withdraws the trust. It returns no error if the project was not trusted.
func Untrust(dirs Dirs, ws Workspace) error {
	err := os.Remove(dirs.trustFile(ws))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("config: untrust: %w", err)
	}
	return nil
}

// Trusted reports whether project files with this digest are trusted in this workspace.
func Trusted(dirs Dirs, ws Workspace, digest string) (bool, error) {
	if digest == "" {
		return false, nil
	}
	data, err := os.ReadFile(dirs.trustFile(ws))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("config: trust: %w", err)
	}
	return string(data) == trustLine(ws, digest), nil
}

// loosening is the condition under which a key of a project file loosens the other settings. Such a key has no effect
// before the project is trusted.
type loosening int

const (
	never              loosening = iota
	always                       // for every value
	whenTrue                     // if the value is true, and it would be false without the project file
	whenFalse                    // if the value is false, and it would be true without the project file
	whenHigher                   // if the number is larger than without the project file
	whenLaxer                    // if the value is looser, in the order deny, ask, reads, allow
	whenOpener                   // if the sandbox is looser than without the project file
	whenMoreHosts                // if the list has a host that it would not have without the project file
	whenAllow                    // if the effect of the rule is allow
	whenSwitchedOn               // if the value is true
	whenProjectDefines           // if the same file sets the adapter of the chosen provider
)

// String returns the condition in the words of the documentation.
func (l loosening) String() string {
	return [...]string{
		never:              "no",
		always:             "always",
		whenTrue:           "when it turns `false` into `true`",
		whenFalse:          "when it turns `true` into `false`",
		whenHigher:         "when it is higher",
		whenLaxer:          "when it is further along `deny`, `ask`, `reads`, `allow` (absent counts as `ask`)",
		whenOpener:         "when it is a looser sandbox",
		whenMoreHosts:      "when it has a host that the list does not have without it",
		whenAllow:          "a rule whose effect is `allow`",
		whenSwitchedOn:     "when it is `true`",
		whenProjectDefines: "when the same file sets that provider's adapter",
	}[l]
}

// laxity orders the permission modes from the strictest to the loosest.
var laxity = map[any]int{"deny": 0, "ask": 1, nil: 1, "reads": 2, "allow": 3}

// loosens reports whether value is looser than the earlier value in the parameter "old". If that parameter is nil, no
// other layer sets the key.
func (l loosening) loosens(value, old any) bool {
	switch l {
	case always:
		return true
	case whenTrue:
		return value == true && old == false
	case whenSwitchedOn:
		return value == true
	case whenFalse:
		return value == false && old == true
	case whenHigher:
		return value.(int) > old.(int)
	case whenLaxer:
		return laxity[value] > laxity[old]
	case whenOpener:
		before, _ := old.(string) // nil means "off"
		after := sandbox.Mode(value.(string))
		return sandbox.Stricter(after, sandbox.Mode(before)) != after
	case whenMoreHosts:
		before, _ := old.([]string) // nil means that no other layer sets the list
		return slices.ContainsFunc(value.([]string), func(host string) bool { return !slices.Contains(before, host) })
	case whenAllow:
		return value == "allow"
	}
	return false
}

// tightenLayer adds the settings of a project file. If the project is not trusted, it omits the loosening settings and
// lists them in Withheld.
func (l *loader) tightenLayer(file *layer) {
	trusted := l.config.Project.Trusted
	programs := programs{}
	for _, e := range file.entries {
		programs.addKey(e.key, e.value)
	}
	for _, e := range file.entries {
		if !trusted && l.loosensEntry(file, e) {
			l.withholdSetting(file.source+":"+strconv.Itoa(e.line), e.key+" = "+shownValue(e.row, e.value, programs[e.key]))
			continue
		}
		l.putSetting(e.setting)
	}
	for _, e := range file.elements {
		if !trusted && e.loosens() {
			l.withholdSetting(e.place, e.summary())
			continue
		}
		l.elements = append(l.elements, e)
	}
}

func (l *loader) loosensEntry(file *layer, e entry) bool {
	if e.row.loosens == whenProjectDefines {
		return slices.ContainsFunc(file.entries, func(set entry) bool { // looks for an adapter of the chosen provider
			return set.id == e.value.(string) && strings.HasPrefix(set.row.name, "providers."+anyID+".adapter.")
		})
	}
	old := e.row.def
	if s, ok := l.values[e.key]; ok {
		old = s.value
	} else if s, ok := l.values["sandbox_hosts"]; ok && e.row.loosens == whenMoreHosts {
		old = s.value
	}
	return e.row.loosens.loosens(e.value, old)
}

func (e *element) loosens() bool {
	return slices.ContainsFunc(e.entries, func(f entry) bool { return f.row.loosens.loosens(f.value, nil) })
}

// summary returns the whole element on one line, with masked secrets.
func (e *element) summary() string {
	parts := make([]string, 0, len(e.entries))
	for _, f := range e.entries {
		parts = append(parts, f.key+" = "+shownValue(f.row, f.value, ""))
	}
	return "[[" + e.list + "]] " + strings.Join(parts, ", ")
}

// withholdSetting adds a line about an omitted setting to Withheld.
func (l *loader) withholdSetting(place, what string) {
	l.config.Withheld = append(l.config.Withheld, printable(place)+": "+printable(what))
}
