package project

import (
	"errors"
	"path/filepath"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/hook"
	"github.com/perlica/perlica/kernel/program"
)

// errInHook means that a program of a hook wants to add to a record. Its events would start the hook again, for ever.
var errInHook = errors.New("a program that Perlica started for a hook or a question only reads the record: it makes " +
	"no call, and it changes nothing")

// Programs returns the store of the user's programs. For a trust by the environment, it trusts the present bytes of the
// programs.
func (p *Project) Programs() *program.Store {
	s := &program.Store{Dir: filepath.Join(p.Dirs.State, "programs"), Project: p.Workspace.Root,
		Roots: []string{p.Workspace.Root, p.Dir}, Environ: p.Environ}
	if p.Config.Project.Once {
		for _, c := range Commands(p.Config) {
			files, _ := s.Files(c) // a missing program is an error at its start
			s.Pin(files)
		}
	}
	return s
}

// Commands returns the commands of all hooks and policy programs.
func Commands(c *config.Config) (list []program.Command) {
	for _, h := range c.Hooks {
		list = append(list, program.Command{Words: h.Command, Folder: h.Folder})
	}
	for _, one := range c.Programs {
		list = append(list, program.Command{Words: one.Command, Folder: one.Folder})
	}
	return list
}

// judges returns the policy programs.
func (p *Project) judges() hook.Judges {
	if len(p.Config.Programs) == 0 {
		return hook.Judges{}
	}
	var list []hook.Judge
	for _, one := range p.Config.Programs {
		list = append(list, hook.Judge{Command: program.Command{Words: one.Command, Folder: one.Folder},
			Timeout: one.Timeout, Origin: one.Origin})
	}
	return hook.NewJudges(p.Programs(), list)
}
