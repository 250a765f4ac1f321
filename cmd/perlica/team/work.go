package team

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/notify"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

func (a *app) workCommand() *cobra.Command {
	var opt team.WorkerOptions
	var projects []string
	cmd := &cobra.Command{
		Use: "work", Annotations: frame.PersonOnly.Annotation(),
		Short: "Answer inputs of the team on this machine",
		Long: `Take inputs of the team and answer them on this machine. The worker serves the projects of
--project or of team.projects, or the project of this folder. It uses their agents, rules and
permissions. Every member with the right "approve" can answer the agents' questions. On this
machine 'perlica pending' does so in the folder of the team's log.

After SIGTERM or Ctrl-C the worker takes no more inputs and waits for the running ones. A
second signal ends their agents.`,
		Example: `  perlica team work
  perlica team work -n 4 --label gpu --project website=/srv/website`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.Slots < 1 {
				return frame.UsageErrorf("-n is at least 1")
			}
			for _, l := range opt.Labels {
				if err := hub.CheckName(l); err != nil {
					return frame.UsageErrorf("--label: %w", err)
				}
			}
			return a.withTeam(cmd.Context(), func(t *team.Team, p *project.Project) (err error) {
				if err := p.CheckSandbox(); err != nil {
					return err
				}
				if opt.Projects, err = servedDirs(p, projects); err != nil {
					return err
				}
				opt.Settings = a.WithSandbox(nil)
				stopNotifying, err := a.startNotifying(p, t.State().Name)
				if err != nil {
					return err
				}
				defer stopNotifying()
				return a.runWorker(cmd.Context(), t, opt)
			})
		},
	}
	a.AddSandboxFlag(cmd)
	cmd.Flags().IntVarP(&opt.Slots, "slots", "n", 1, "the `number` of inputs that run at the same time")
	cmd.Flags().StringArrayVar(&opt.Labels, "label", nil, "also take inputs that require this `label`; may be repeated")
	cmd.Flags().StringArrayVar(&projects, "project", nil,
		"serve the project NAME in the directory DIR: `NAME=DIR`; may be repeated")
	return cmd
}

// startNotifying delivers the notifications of the team's log. All projects of the worker share this log, so only the
// tables of the user's own configuration count.
func (a *app) startNotifying(p *project.Project, name string) (stop func(), err error) {
	log, err := project.Team(p.Dir, a.Environ, name)
	if err != nil {
		return nil, err
	}
	return notify.Start(log, notify.Options{Version: a.Version, Team: name, Terminal: a.Terminal()}), nil
}

// servedDirs returns the directories of the projects that the worker serves, by name. They are the given projects,
// otherwise the projects of the configuration, otherwise project p.
func servedDirs(p *project.Project, given []string) (dirs map[string]string, err error) {
	dirs = map[string]string{}
	for _, g := range given {
		name, dir, ok := strings.Cut(g, "=")
		if !ok || name == "" {
			return nil, frame.UsageErrorf("--project is NAME=DIR, not %q", g)
		}
		if dirs[name], err = directory(p, dir); err != nil {
			return nil, err
		}
	}
	if len(dirs) > 0 {
		return dirs, nil
	}
	for name, dir := range p.Config.Team.Projects {
		if dirs[name], err = directory(p, dir); err != nil {
			return nil, err
		}
	}
	if len(dirs) == 0 {
		dirs[p.Name()] = p.Dir
	}
	return dirs, nil
}

// runWorker runs a worker until a signal ends it. After the first signal the running inputs finish. The second
// signal ends the agents.
func (a *app) runWorker(ctx context.Context, t *team.Team, opt team.WorkerOptions) (err error) {
	opt.Note = a.printNotes
	w, err := team.NewWorker(ctx, t, opt)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := w.Close(); err == nil {
			err = cerr
		}
	}()
	drain, release := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer release()
	hard, end := context.WithCancel(ctx)
	defer end()
	context.AfterFunc(drain, func() {
		again, stop := signal.NotifyContext(hard, syscall.SIGTERM, syscall.SIGINT)
		release()
		defer stop()
		a.printNotes("no more inputs are taken; those under way end first")
		<-again.Done()
		end()
	})
	names := make([]string, 0, len(opt.Projects))
	for name, dir := range opt.Projects {
		names = append(names, fmt.Sprintf("%s in %s", name, dir))
	}
	a.printNotes(fmt.Sprintf("%s works for the team %s: %s", t.As, t.State().Name, strings.Join(names, ", ")))
	return w.Run(drain, hard)
}
