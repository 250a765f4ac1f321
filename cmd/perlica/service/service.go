// Package service holds the commands of the messaging bridge, and the local channel's own phone.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/team"
)

// app is an invocation, with the commands of this package as its methods.
type app struct{ *frame.App }

// Beside starts what goes on beside the bridge until ctx is done, and says on lines of its own what there is
// to say. wait returns when it is over.
type Beside func(ctx context.Context, a *frame.App, say func(string)) (wait func() error, err error)

// PhoneCommand returns the command that is a phone of the local channel.
func PhoneCommand(a *frame.App) *cobra.Command { return (&app{a}).phoneCommand() }

// Serve runs the bridge, and what goes on beside it, until a signal ends it.
func Serve(ctx context.Context, a *frame.App, beside Beside) error {
	return (&app{a}).serve(ctx, beside)
}

// Setups says of each channel that is to be served whether all is there that it needs.
func Setups(a *frame.App, p *project.Project) []service.Setup { return (&app{a}).setups(p) }

// Command returns the command with those below it; tail shows and follows events, beside goes on beside the
// bridge.
func Command(c *frame.App, tail *cobra.Command, beside Beside) *cobra.Command {
	a := &app{c}
	cmd := frame.Group("service", "Let people drive the agent from a phone",
		`Run the messaging bridge in the foreground: it takes messages from its channels,
acknowledges them, answers them one after the other, and asks its questions there.

The first time: run 'perlica service' here, 'perlica phone' in another terminal, and type
the code that is shown into the phone.

SIGTERM and Ctrl-C let the turn under way end, for a while, and then cancel it; a second one
ends at once, and the next start tells what is known. SIGHUP reads the configuration again.`,
		a.serviceStatusCommand(), a.servicePairCommand(), a.serviceRightsCommand(), a.serviceUnpairCommand(), a.serviceContactsCommand(),
		a.serviceChannelCommand(), a.serviceProjectsCommand(), a.serviceAddCommand(), a.serviceRemoveCommand(), serviceLogsCommand(tail))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), beside) }
	cmd.Annotations = frame.PersonOnly.Annotation()
	return cmd
}

// serve runs the bridge until a signal ends it.
func (a *app) serve(ctx context.Context, beside Beside) (err error) {
	frame.SurviveBrokenPipes()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	runner, done, err := a.Open(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	paths, err := p.Workspace.EnsureService()
	if err != nil {
		return err
	}
	// The lock comes first: a second bridge learns of the first, not of its sockets.
	if held, err := service.Holder(paths.Lock); err == nil && held != nil {
		return frame.WithHint(held, "see 'perlica service status'")
	}
	added, ever, err := a.added(ctx, p)
	if err != nil {
		return err
	}
	r := &running{runner: runner} // is there before anything is polled
	list, left, closeChannels, err := a.openChannels(p, func(channel, contact string) bool { return r.paired(ctx, channel, contact) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeChannels()) }()
	view := newServiceView(a)
	opt := options(a, p, runner, paths, list, view.log)
	opt.Team = a.team(p)
	if opt.Team != nil {
		defer func() { err = errors.Join(err, opt.Team.Close()) }()
	}
	opt.LeftOut, opt.Serving = left, func() { newNotifier(a.Getenv).send("READY=1") }
	if r.home, err = service.Open(ctx, opt); err != nil {
		return err
	}
	r.whole = r.home
	if ever {
		all, reloads, done, err := a.several(ctx, p, added, r.home, opt)
		defer func() { _ = done() }() // what failed is on record
		if err != nil {
			return errors.Join(err, r.home.Close(context.WithoutCancel(ctx)))
		}
		r.all, r.whole, r.reloads = all, all, reloads
	}
	during, end := context.WithCancel(ctx)
	wait, err := beside(during, a.App, func(text string) { view.log.Info(text) })
	if err != nil {
		end()
		return errors.Join(err, r.whole.Close(context.WithoutCancel(ctx)))
	}
	err = a.serveOpen(ctx, stop, r, view)
	end()
	return errors.Join(err, wait())
}

// team is the team whose workers' questions the bridge asks, too; nil: none is configured, or it is not to.
func (a *app) team(p *project.Project) *team.Link {
	opt, err := team.OptionsOf(p, "", a.Version)
	if err != nil || !p.Config.Service.Team {
		return nil
	}
	return team.NewLink(func(ctx context.Context) (*team.Team, error) { return team.Open(ctx, opt) })
}

// options are those of a project's bridge.
func options(a *app, p *project.Project, runner *kernel.Runner, paths config.ServicePaths, channels []channel.Channel, log *slog.Logger) service.Options {
	return service.Options{
		Runner: runner, Context: p.Config.ContextID, Version: a.Version,
		View: paths.Bridge, Lock: paths.Lock, Files: paths.Files, Channels: channels, Settings: serviceSettings(p),
		Setup: func(id event.SessionID, provider string) (kernel.Setup, error) {
			return p.Conversation(context.Background(), runner, id, provider)
		}, Log: log,
		Host: command.Host{Runner: runner, Agents: p.Resolver(), Workspace: p.Workspace, Dirs: p.Dirs},
	}
}

// running is what runs: the bridge of the project, and those of others that its bot serves.
type running struct {
	runner  *kernel.Runner
	home    *service.Bridge
	all     *service.Projects // nil: there are no others
	reloads []func()          // of the others' settings
	whole   interface {
		Run(ctx context.Context) error
		Live(ctx context.Context) (service.Live, error)
		Close(ctx context.Context) error
	}
}

// paired reports whether a contact is paired in any of the projects.
func (r *running) paired(ctx context.Context, channel, contact string) bool {
	if r.all != nil {
		return r.all.Paired(ctx, channel, contact)
	}
	paired, err := r.home.Records().Paired(ctx, channel, contact)
	return paired && err == nil
}

// serviceSignals are the signals that the bridge's process gets.
type serviceSignals struct {
	reload   chan os.Signal
	stopping <-chan struct{} // closed when it is to stop
	stop     func()          // has it stop; signals do again what they do without it
}

// serveOpen runs an open bridge with all that stands beside it, and closes it.
func (a *app) serveOpen(ctx context.Context, stop func(), r *running, view *serviceView) (err error) {
	beside, end := context.WithCancel(context.WithoutCancel(ctx))
	sig := serviceSignals{make(chan os.Signal, 1), ctx.Done(), stop}
	signal.Notify(sig.reload, syscall.SIGHUP)
	over := make(chan struct{})
	go func() {
		defer close(over)
		a.beside(beside, r, view, sig)
	}()
	err = r.whole.Run(ctx)
	end()
	<-over
	signal.Stop(sig.reload)
	return errors.Join(err, r.whole.Close(context.WithoutCancel(ctx)))
}

// beside is what goes on while the bridge runs and while it stops: the view, pairing, the
// watchdog, reloading.
func (a *app) beside(ctx context.Context, r *running, view *serviceView, sig serviceSignals) {
	notify := newNotifier(a.Getenv)
	wait := time.NewTimer(0)
	defer wait.Stop()
	defer view.close()
	invitation := newInvitation(a, r.runner.Log(), r.home.Records(), view)
	for {
		live, err := r.whole.Live(ctx)
		if err == nil {
			notify.send("WATCHDOG=1")
			view.show(live, invitation.look(ctx, len(live.Contacts) > 0))
		}
		wait.Reset(min(view.every(live), notify.every))
		select {
		case <-wait.C:
		case <-view.happened: // what the bridge records it has not done yet
			select {
			case <-time.After(screenSoon):
			case <-ctx.Done():
			}
		case <-sig.reload:
			if view.live && !screen.IsTerminal(a.Stderr) { // its terminal was closed
				sig.stop()
				continue
			}
			a.reload(r, view)
		case <-sig.stopping:
			sig.stopping = nil
			sig.stop() // a second signal is a crash, of which the next start tells the truth
			notify.send("STOPPING=1")
			view.stopping = true
			view.log.Info("stopping: turns under way may end")
		case <-ctx.Done():
			return
		}
	}
}

// reload takes in the configuration again; one with mistakes changes nothing.
func (a *app) reload(r *running, view *serviceView) {
	p, err := a.Locate(nil)
	if err != nil {
		view.log.Warn("the configuration was not read again", "error", err.Error())
		return
	}
	r.home.Set(serviceSettings(p))
	for _, reload := range r.reloads {
		reload()
	}
	view.log.Info("the configuration was read again; channels and agents stay as they are")
}

func serviceSettings(p *project.Project) service.Settings {
	s := p.Config.Service
	return service.Settings{
		Language: language.Language(s.Language), Ack: s.Ack, Stream: s.Stream, Agents: s.Agents, Idle: s.Idle, MaxAge: s.MaxAge, Grace: s.Grace,
		AnswerIn: p.Config.AnswerTimeout, Permissions: p.Mode(),
	}
}

// printed writes what happens as plain lines.
type printed struct{ a *app }

func (printed) Enabled(context.Context, slog.Level) bool { return true }

func (h printed) Handle(_ context.Context, r slog.Record) error {
	line := r.Time.Local().Format(time.DateTime) + " " + r.Message
	if r.Level >= slog.LevelWarn {
		line = r.Time.Local().Format(time.DateTime) + " warning: " + r.Message
	}
	r.Attrs(func(at slog.Attr) bool {
		line += fmt.Sprintf(" %s=%q", at.Key, at.Value.String())
		return true
	})
	_, err := fmt.Fprintln(h.a.Stderr, screen.Sanitize(line))
	return err
}

func (h printed) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h printed) WithGroup(string) slog.Handler      { return h }
