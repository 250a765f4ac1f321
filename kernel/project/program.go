package project

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/hook"
	"github.com/perlica/perlica/kernel/program"
)

// errInHook means that a program of a hook wants to add events to a log. The new events would start the hook again, for
// ever.
var errInHook = errors.New("a program that Perlica started for a hook or a question only reads the record: it makes " +
	"no call, and it changes nothing")

// Programs returns the store of the user's programs. If an environment variable trusts the project, Programs also
// trusts the present bytes of its programs.
func (p *Project) Programs() *program.Store {
	s := &program.Store{Dir: filepath.Join(p.Dirs.State, "programs"), Project: p.Workspace.Root,
		Roots: []string{p.Workspace.Root, p.Dir}, Environ: p.Environ}
	if p.Config.Project.Once {
		for _, c := range p.Commands() {
			files, _ := s.Files(c) // if a program is missing, its start reports the error
			s.Pin(files)
		}
	}
	return s
}

// Commands returns the commands of all hooks and policy programs.
func (p *Project) Commands() (list []program.Command) {
	for _, h := range p.Hooks() {
		list = append(list, h.Command)
	}
	for _, j := range p.Judges() {
		list = append(list, j.Command)
	}
	return list
}

// AsTrusted returns the project as if its files were trusted. The caller may only show it.
func (p *Project) AsTrusted() (*Project, error) {
	as := *p
	var err error
	as.Config, err = config.Load(p.Workspace, p.Dirs, slices.Concat([]string{config.TrustVariable + "=1"}, p.Environ), nil)
	return &as, err
}

// Hooks returns the hooks of the project.
func (p *Project) Hooks() (list []hook.Hook) {
	for _, h := range p.Config.Hooks {
		one := hook.Hook{Command: program.Command{Words: h.Command, Folder: h.Folder}, Timeout: h.Timeout, Origin: h.Origin}
		for _, on := range h.On {
			one.On = append(one.On, event.Type(on))
		}
		list = append(list, one)
	}
	return list
}

// positions returns the folder that stores, for each hook, the number of the last event that the hook got.
func positions(paths config.ContextPaths) hook.Positions {
	return hook.Positions(filepath.Join(paths.Dir, "hooks"))
}

// Deliverer returns a Deliverer for the log of a Runner that Open returned.
func (p *Project) Deliverer(r *kernel.Runner) (*hook.Deliverer, error) {
	opt, err := p.options()
	return &hook.Deliverer{Log: r.Log(), Locks: opt.Paths.Locks, Positions: positions(opt.Paths), Store: p.Programs(),
		Hooks: p.Hooks(), After: -1, Trail: r.Trail(), Redactor: opt.Redactor}, err
}

// hookStarter returns the Starter for the project's hooks, or nil if there is nothing to start. The user's own log has
// no hooks.
func (p *Project) hookStarter(opt kernel.Options) *hook.Starter {
	if len(p.Config.Hooks) == 0 || p.Delivers || p.isUser() {
		return nil
	}
	argv := []string{p.Resolver().Self, "hook", "deliver", "--quiet"}
	if p.team {
		argv = append(argv, "--team", p.Config.ContextID)
	} else {
		argv = append(argv, "--context", p.Config.ContextID)
	}
	if p.Workspace.Named {
		argv = append(argv, "--project", p.Workspace.Root)
	}
	return hook.NewStarter(&hook.Starter{Argv: argv, Dir: p.Dir, Environ: p.Environ, Locks: opt.Paths.Locks,
		Hooks: p.Hooks(), Positions: positions(opt.Paths), Trail: opt.Trail})
}

// judges returns the policy programs for questions.
func (p *Project) judges() hook.Judges {
	if len(p.Config.Programs) == 0 {
		return hook.Judges{}
	}
	return hook.NewJudges(p.Programs(), p.Judges())
}

// Judges returns the policy programs of the project.
func (p *Project) Judges() (list []hook.Judge) {
	for _, one := range p.Config.Programs {
		list = append(list, hook.Judge{Command: program.Command{Words: one.Command, Folder: one.Folder},
			Timeout: one.Timeout, Origin: one.Origin})
	}
	return list
}
