package config

import (
	"bytes"
	"strings"
)

// SetProject is Set for the project's own file. A project that was trusted stays so: what
// is trusted is the file that was trusted before with this one key changed, and nothing
// that another process changed since it was read. So is a file that was not there.
func SetProject(dirs Dirs, ws Workspace, key, value string) error {
	before, problems := readProject(ws)
	if len(problems) > 0 {
		return problems
	}
	// Where there was no file, all that is in it is what its user wants set.
	trusted := !before.present()
	if before.present() {
		var err error
		if trusted, err = Trusted(dirs, ws, before.digest()); err != nil {
			return err
		}
	}
	if err := Set(ws.ConfigFile(), key, value); err != nil || !trusted {
		return err
	}
	ws.Exists = true // by now
	after, problems := readProject(ws)
	if len(problems) > 0 {
		return problems
	}
	row, _ := rowOf(key) // Set has checked both
	v, _ := row.parse(value)
	want, err := setKey(ws.ConfigFile(), before.config, strings.Split(key, "."), format(v))
	if err != nil || !bytes.Equal(after.config, want) || !bytes.Equal(after.prompt, before.prompt) {
		return err
	}
	return Trust(dirs, ws, after.digest())
}
