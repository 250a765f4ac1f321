package team

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team/hub"
)

// ErrNoHub says that no hub is configured.
var ErrNoHub error = &hub.Fault{
	Text:    "no hub is configured",
	Advice:  "set PERLICA_TEAM_URL, or team.url in your own configuration",
	ByUsage: true,
}

// Options configures the opening of a team.
type Options struct {
	URL     string // the address of the hub
	Dir     string // the working directory
	Environ []string
	Version string // Perlica's version
}

// OptionsOf returns the options of the team in the settings of a project. A given url replaces the
// configured one. The error is ErrNoHub.
func OptionsOf(p *project.Project, url, version string) (Options, error) {
	opt := Options{URL: cmp.Or(url, p.Config.Team.URL), Dir: p.Dir, Environ: p.Environ, Version: version}
	if opt.URL == "" {
		return opt, ErrNoHub
	}
	return opt, nil
}

// ReadFile reads a file as an attachment.
func ReadFile(path string) (File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return File{}, err
	case !info.Mode().IsRegular():
		return File{}, fmt.Errorf("%s: not a regular file", path)
	case info.Size() > MaxInput:
		return File{}, fmt.Errorf("%s has %d bytes; an input has at most %d", path, info.Size(), MaxInput)
	}
	b, err := os.ReadFile(path)
	return File{Name: filepath.Base(path), Data: b}, err
}
