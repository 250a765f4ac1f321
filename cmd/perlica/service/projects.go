package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/schedule"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/bot"
)

// homeOf returns the path of a project's log without symbolic links. Records identify the project's bot by this path.
func homeOf(p *project.Project) (string, error) {
	paths, err := p.Workspace.Context(p.Config.ContextID)
	return bot.Place(paths.EventLog), err
}

// addedProjects returns the other projects that the bot of project p serves. ever reports whether the bot has ever
// served another project.
func (a *app) addedProjects(ctx context.Context, p *project.Project) (list []fact.ServedProject, ever bool, err error) {
	home, err := homeOf(p)
	if err != nil {
		return nil, false, err
	}
	own, err := project.User(p.Dir, a.Environ, nil)
	if err != nil {
		return nil, false, err
	}
	r, _, err := own.OpenReader(ctx)
	if errors.As(err, &project.NoLogError{}) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("your own log: %w", err)
	}
	list, ever, err = bot.Projects(ctx, r, home)
	return list, ever, errors.Join(err, r.Close())
}

// findProject finds the project that a record of an added project names.
func (a *app) findProject(f fact.ServedProject) (*project.Project, error) {
	if _, err := os.Stat(f.Project); err != nil {
		return nil, err
	}
	return a.FindProject(f.Project, map[string]string{"context.default_id": f.Context})
}

// shortNames returns the names that people use for projects. A name is the name of the project's folder. If it is
// ambiguous, more of the path is added.
func shortNames(dirs ...string) (list []string) {
	for i, dir := range dirs {
		name := filepath.Base(dir)
		for j, other := range dirs {
			if i != j && strings.EqualFold(filepath.Base(other), name) {
				name = filepath.Join(filepath.Base(filepath.Dir(dir)), filepath.Base(dir))
			}
		}
		list = append(list, name)
	}
	return list
}

// namesOf returns the name of project p and the names of the other projects that its bot serves.
func namesOf(p *project.Project, list []fact.ServedProject) []string {
	dirs := []string{p.Workspace.Root}
	for _, f := range list {
		dirs = append(dirs, f.Project)
	}
	return shortNames(dirs...)
}

// openProjects opens the bridges of the other projects and joins them with the bridge b of the home project, which is
// open already. home has the options of b. Each function in reloads reads the settings of one other project again. The
// function "done" closes the other projects and is never nil.
func (a *app) openProjects(ctx context.Context, p *project.Project, list []fact.ServedProject, b *service.Bridge,
	home service.Options) (all *service.Projects, reloads []func(), done func() error, err error) {
	done = func() error { return nil }
	own, err := project.User(p.Dir, a.Environ, nil)
	if err != nil {
		return nil, nil, done, err
	}
	runner, close, err := a.Open(ctx, own)
	if err != nil {
		return nil, nil, done, err
	}
	done = close
	log, err := homeOf(p)
	if err != nil {
		return nil, nil, done, err
	}
	record, err := bot.Open(ctx, runner.Log(), log)
	if err != nil {
		return nil, nil, done, err
	}
	called := namesOf(p, list)
	all = service.NewProjects(record, called[0], log, b)
	for i, f := range list {
		all.Add(called[i+1], f.Log, func(ctx context.Context) (*service.Bridge, func() error, error) {
			return a.openProject(ctx, f, called[i+1], home)
		})
		reloads = append(reloads, func() {
			if p, err := a.findProject(f); err == nil { // If the project cannot be read, its settings stay unchanged.
				all.Set(f.Log, serviceSettings(p))
			}
		})
	}
	return all, reloads, done, nil
}

// openProject opens the bridge of an added project. The function "done" closes the project's log.
func (a *app) openProject(ctx context.Context, f fact.ServedProject, name string,
	home service.Options) (b *service.Bridge, done func() error, err error) {
	p, err := a.findProject(f)
	if err != nil {
		return nil, nil, err
	}
	paths, err := p.Workspace.EnsureService()
	if err != nil {
		return nil, nil, err
	}
	if held, err := service.Holder(paths.Lock); err == nil && held != nil {
		return nil, nil, held
	}
	runner, done, err := p.Open(ctx, a.Version) // p.Open does not ask about trust. The command 'service add' has asked.
	if err != nil {
		return nil, nil, err
	}
	a.WarnExposed(f.Log)
	log := slog.New(projectRows{home.Log.Handler(), name})
	opt := bridgeOptions(a, p, runner, paths, home.Channels, log)
	load := func() (*project.Project, error) { return a.findProject(f) }
	opt.Host.Schedules = schedule.Slash(runner.Log(), load, time.Now)
	b, err = service.Open(ctx, opt)
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	notified := a.startNotifying(p, b)
	kept := startSchedules(p, runner, load, log)
	closeLog := done // keep the present function, because the result "done" is replaced below
	return b, func() error { kept(); notified(); return closeLog() }, nil
}

// projectRows is a handler for log records. It adds the name of the project to each record.
type projectRows struct {
	slog.Handler
	project string
}

func (n projectRows) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(slog.String("project", n.project))
	return n.Handler.Handle(ctx, r)
}

// servedProject is a project that a bot serves, as the command prints it.
type servedProject struct {
	Name    string `json:"name"`
	Project string `json:"project"`
	Context string `json:"context"`
	State   string `json:"state"` // "served", "not running", or the reason why the bot cannot serve it
	Served  bool   `json:"served"`
	Hint    string `json:"-"`
}

// listProjects returns the other projects that the bot of project p serves, with their states.
func (a *app) listProjects(ctx context.Context, p *project.Project) ([]servedProject, error) {
	added, _, err := a.addedProjects(ctx, p)
	if err != nil {
		return nil, err
	}
	home, err := service.Holder(p.Workspace.Service().Lock)
	if err != nil {
		return nil, err
	}
	called, list := namesOf(p, added)[1:], []servedProject{}
	for i, f := range added {
		s := servedProject{Name: called[i], Project: f.Project, Context: f.Context}
		s.State, s.Hint = a.stateOf(ctx, f, home)
		s.Served = s.State == "served"
		list = append(list, s)
	}
	return list, nil
}

// stateOf returns the state of a project that the bot should serve. bridge is nil if no bridge runs.
func (a *app) stateOf(ctx context.Context, f fact.ServedProject, bridge *service.HeldError) (state, hint string) {
	p, err := a.findProject(f)
	if err != nil {
		return err.Error(), "'perlica service remove " + f.Project + "', if it is gone for good"
	}
	r, _, err := p.OpenReader(ctx)
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		return err.Error(), "'perlica doctor' in that project says more"
	}
	held, err := service.Holder(p.Workspace.Service().Lock)
	switch {
	case err != nil:
		return err.Error(), ""
	case held != nil && (bridge == nil || held.PID != bridge.PID):
		return fmt.Sprintf("served by another bridge, process %d", held.PID), "end that one, and restart this bridge"
	case bridge == nil:
		return "not running", ""
	case held == nil:
		return "not served", "the bridge says why, and tries again each minute"
	}
	return "served", ""
}

// Projects returns the state of each other project that the bot of project p serves.
func Projects(ctx context.Context, a *frame.App, p *project.Project) (list []service.Setup) {
	found, err := (&app{a}).listProjects(ctx, p)
	if err != nil {
		return []service.Setup{{Name: "projects", Err: err}}
	}
	for _, s := range found {
		setup := service.Setup{Name: s.Name, Hint: s.Hint}
		if !s.Served && s.State != "not running" {
			setup.Err = errors.New(s.State)
		}
		list = append(list, setup)
	}
	return list
}

func (a *app) serviceAddCommand() *cobra.Command {
	return &cobra.Command{
		Use: "add PROJECT", Annotations: frame.PersonOnly.Annotation(),
		Short: "Let this project's bot serve another project, too",
		Long: `Let the bot of this project also serve the project in the folder PROJECT, from the bot's next
start on. Each project keeps its own log, contacts and rights, so pair your phone with each
project. The message /project switches a phone between its projects.`,
		Example: "  perlica service add ../shop", Args: frame.Exactly("PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			other, err := a.findOther(args[0])
			if err != nil {
				return err
			}
			p, err := a.Locate(nil)
			if err != nil {
				return err
			}
			if sameFile(p.Workspace.Root, other.Workspace.Root) {
				return frame.UsageErrorf("%s is the project whose bot it is: it is served anyway", frame.OneLine(args[0]))
			}
			// Opening the log makes it, or asks whether to trust it. A bridge without a terminal could not ask later.
			_, done, err := a.Open(cmd.Context(), other)
			if err != nil {
				return err
			}
			if err := done(); err != nil {
				return err
			}
			f := fact.ServedProject{Project: realPath(other.Workspace.Root), Context: other.Config.ContextID}
			if f.Log, err = homeOf(other); err != nil {
				return err
			}
			if err := a.recordServed(cmd.Context(), p, f, bot.Add); err != nil {
				return err
			}
			a.Note("pair there, too: 'perlica service pair' in " + frame.OneLine(f.Project))
			return a.Say("%s: added; restart the bridge if it runs", frame.OneLine(f.Project))
		},
	}
}

func (a *app) serviceRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove PROJECT", Annotations: frame.PersonOnly.Annotation(),
		Short: "End the service of this project's bot for another project",
		Long: `End the service of this project's bot for another project. PROJECT is the project's name in
'perlica service projects', or its folder. Waiting messages stay on record, and are answered
when a bridge serves that project again.`,
		Example: "  perlica service remove shop", Args: frame.Exactly("PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.Locate(nil)
			if err != nil {
				return err
			}
			list, _, err := a.addedProjects(cmd.Context(), p)
			if err != nil {
				return err
			}
			called := namesOf(p, list)
			for i, f := range list {
				if !strings.EqualFold(called[i+1], args[0]) && f.Project != realPath(args[0]) {
					continue
				}
				if err := a.recordServed(cmd.Context(), p, f, bot.Remove); err != nil {
					return err
				}
				return a.Say("%s: removed; restart the bridge if it runs", frame.OneLine(f.Project))
			}
			return frame.WithHint(fmt.Errorf("the bot of this project does not serve %q", args[0]),
				"see 'perlica service projects'")
		},
	}
}

func (a *app) serviceProjectsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "projects", Annotations: frame.ReadOnly.Annotation(),
		Short: "List the other projects that this project's bot serves",
		Args:  frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.Locate(nil)
			if err != nil {
				return err
			}
			list, err := a.listProjects(cmd.Context(), p)
			if err != nil || asJSON {
				return errors.Join(err, a.PrintJSON(list))
			}
			if len(list) == 0 {
				a.Note("it serves this project alone; 'perlica service add PROJECT' adds another")
				return nil
			}
			g := frame.Grid{Head: []string{"NAME", "STATE", "FOLDER"}}
			for _, s := range list {
				g.Add(s.Name, s.State, s.Project)
			}
			return a.Table(g)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// findOther finds the project of another folder.
func (a *app) findOther(dir string) (*project.Project, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, frame.UsageErrorf("there is no folder %s", frame.OneLine(dir))
	}
	return a.FindProject(dir, nil)
}

// recordServed calls the function "write", which records on the user's own log that a project is served or is no longer
// served.
func (a *app) recordServed(ctx context.Context, p *project.Project, f fact.ServedProject,
	write func(context.Context, *eventlog.Log, fact.ServedProject) error) error {
	var err error
	if f.Home, err = homeOf(p); err != nil {
		return err
	}
	f.By = frame.UserName(a.Getenv)
	own, err := project.User(p.Dir, a.Environ, nil)
	if err != nil {
		return err
	}
	r, done, err := a.Open(ctx, own)
	if err != nil {
		return err
	}
	return errors.Join(write(ctx, r.Log(), f), done())
}

func sameFile(a, b string) bool { return realPath(a) == realPath(b) }

// realPath returns an absolute path without symbolic links, if the path exists.
func realPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return bot.Place(path)
}
