// Package service has the commands of the messaging bridge and the phone of the local channel.
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
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/schedule"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/notify"
	"github.com/perlica/perlica/service/team"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Companion starts a service that runs next to the bridge until ctx ends. It passes its notes to the function say.
// wait returns when the service has ended.
type Companion func(ctx context.Context, a *frame.App, say func(string)) (wait func() error, err error)

// PhoneCommand returns the command that is a phone of the local channel.
func PhoneCommand(a *frame.App) *cobra.Command { return (&app{a}).phoneCommand() }

// Serve runs the bridge and its companion until a signal ends them.
func Serve(ctx context.Context, a *frame.App, companion Companion) error {
	return (&app{a}).serveBridge(ctx, companion)
}

// Setups returns the state of each configured channel: whether all needed settings and files are there.
func Setups(a *frame.App, p *project.Project) []service.Setup { return (&app{a}).channelSetups(p) }

// Command returns the command service with its subcommands. tail is a command that shows and follows events.
// companion runs next to the bridge.
func Command(c *frame.App, tail *cobra.Command, companion Companion) *cobra.Command {
	a := &app{c}
	cmd := frame.Group("service", "Let people drive the agent from a phone",
		`Run the messaging bridge in the foreground. The bridge receives messages from phones over its
channels, such as Telegram. It confirms each message, lets the agent answer the messages one
after the other, and sends the agent's questions to the phones.

To try it, run 'perlica service' here and 'perlica phone' in another terminal. Then type the
code that the bridge shows into the phone.

After SIGTERM or Ctrl-C the bridge waits a while for the running turn, and then cancels the
turn. A second signal ends the bridge at once; its next start reports the state of the turn.
After SIGHUP the bridge reads the configuration again.`,
		a.serviceStatusCommand(), a.servicePairCommand(), a.serviceRightsCommand(), a.serviceUnpairCommand(),
		a.serviceContactsCommand(),
		a.serviceChannelCommand(), a.serviceCheckCommand(), a.serviceProjectsCommand(), a.serviceAddCommand(),
		a.serviceRemoveCommand(),
		serviceLogsCommand(tail))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.serveBridge(cmd.Context(), companion) }
	cmd.Annotations = frame.PersonOnly.Annotation()
	a.AddSandboxFlag(cmd)
	return cmd
}

// serveBridge runs the bridge until a signal ends it.
func (a *app) serveBridge(ctx context.Context, companion Companion) (err error) {
	frame.SurviveBrokenPipes()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	if err := p.CheckSandbox(); err != nil {
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
	// The lock is checked first. A second bridge then reports that another bridge runs, and not that its sockets are
	// in use.
	if held, err := service.Holder(paths.Lock); err == nil && held != nil {
		return frame.WithHint(held, "see 'perlica service status'")
	}
	added, ever, err := a.addedProjects(ctx, p)
	if err != nil {
		return err
	}
	// Opening a channel does not poll it. The function isPaired is therefore called only after service.Open has set
	// r.home.
	r := &openBridges{runner: runner}
	list, left, closeChannels, err := a.openChannels(p,
		func(channel, contact string) bool { return r.isPaired(ctx, channel, contact) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeChannels()) }()
	view := newServiceView(a)
	opt := bridgeOptions(a, p, runner, paths, list, view.log)
	load := func() (*project.Project, error) { return a.Locate(nil) }
	opt.Host.Schedules = schedule.Slash(runner.Log(), load, time.Now)
	opt.Team = a.linkTeam(p)
	if opt.Team != nil {
		defer func() { err = errors.Join(err, opt.Team.Close()) }()
	}
	opt.LeftOut, opt.Serving = left, func() { newNotifier(a.Getenv).sendState("READY=1") }
	if r.home, err = service.Open(ctx, opt); err != nil {
		return err
	}
	defer a.startNotifying(p, r.home)()
	defer startSchedules(p, runner, load, view.log)()
	r.whole = r.home
	if ever {
		all, reloads, done, err := a.openProjects(ctx, p, added, r.home, opt)
		defer func() { _ = done() }() // The log has a record of each failure.
		if err != nil {
			return errors.Join(err, r.home.Close(context.WithoutCancel(ctx)))
		}
		r.all, r.whole, r.reloads = all, all, reloads
	}
	during, end := context.WithCancel(ctx)
	wait, err := companion(during, a.App, func(text string) { view.log.Info(text) })
	if err != nil {
		end()
		return errors.Join(err, r.whole.Close(context.WithoutCancel(ctx)))
	}
	err = a.serveOpen(ctx, stop, r, view)
	end()
	return errors.Join(err, wait())
}

// startNotifying delivers the notifications of a project, also to the contacts of its bridge.
func (a *app) startNotifying(p *project.Project, b *service.Bridge) (stop func()) {
	return notify.Start(p, notify.Options{Version: a.Version, Terminal: a.Terminal(), Contact: b.Notify})
}

// linkTeam returns the user's team, so that the bridge can ask the questions of its workers, too. It returns nil if
// no team is configured, or if the configuration does not let the bridge ask.
func (a *app) linkTeam(p *project.Project) *team.Link {
	opt, err := team.OptionsOf(p, "", a.Version)
	if err != nil || !p.Config.Service.Team {
		return nil
	}
	return team.NewLink(func(ctx context.Context) (*team.Team, error) { return team.Open(ctx, opt) })
}

// bridgeOptions returns the options for opening the bridge of a project.
func bridgeOptions(a *app, p *project.Project, runner *kernel.Runner, paths config.ServicePaths,
	channels []channel.Channel, log *slog.Logger) service.Options {
	return service.Options{
		Runner: runner, Context: p.Config.ContextID, Version: a.Version,
		View: paths.Bridge, Lock: paths.Lock, Files: paths.Files, Channels: channels, Settings: serviceSettings(p),
		Setup: func(id event.SessionID, provider string) (kernel.Setup, error) {
			return p.Conversation(context.Background(), runner, id, provider)
		}, Log: log,
		Host: command.Host{Runner: runner, Agents: p.Resolver(), Workspace: p.Workspace, Dirs: p.Dirs,
			Flows: flow.Teller(p, runner)},
	}
}

// openBridges has the open bridge of the project and the open bridges of the other projects that its bot serves.
type openBridges struct {
	runner  *kernel.Runner
	home    *service.Bridge
	all     *service.Projects // nil if there are no other projects
	reloads []func()          // functions that read the settings of the other projects again
	whole   interface {
		Run(ctx context.Context) error
		Live(ctx context.Context) (service.Live, error)
		Close(ctx context.Context) error
	}
}

// isPaired reports whether a contact is paired in any of the projects.
func (r *openBridges) isPaired(ctx context.Context, channel, contact string) bool {
	if r.all != nil {
		return r.all.Paired(ctx, channel, contact)
	}
	paired, err := r.home.Records().Paired(ctx, channel, contact)
	return paired && err == nil
}

// serviceSignals are the effects of signals on the bridge's process.
type serviceSignals struct {
	reload   chan os.Signal
	stopping <-chan struct{} // closed when the bridge must stop
	stop     func()          // stops catching signals, so that they have their usual effect
}

// serveOpen runs the open bridges until ctx ends, together with their side tasks. It then closes the bridges.
func (a *app) serveOpen(ctx context.Context, stop func(), r *openBridges, view *serviceView) (err error) {
	sideCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	sig := serviceSignals{make(chan os.Signal, 1), ctx.Done(), stop}
	signal.Notify(sig.reload, syscall.SIGHUP)
	over := make(chan struct{})
	go func() {
		defer close(over)
		a.runSideTasks(sideCtx, r, view, sig)
	}()
	err = r.whole.Run(ctx)
	end()
	<-over
	signal.Stop(sig.reload)
	return errors.Join(err, r.whole.Close(context.WithoutCancel(ctx)))
}

// runSideTasks runs the other tasks of the bridge's process: the view, pairing, the watchdog and reloading.
func (a *app) runSideTasks(ctx context.Context, r *openBridges, view *serviceView, sig serviceSignals) {
	notify := newNotifier(a.Getenv)
	wait := time.NewTimer(0)
	defer wait.Stop()
	defer view.clearScreen()
	invitation := newInvitation(a, r.runner.Log(), r.home.Records(), view)
	for {
		live, err := r.whole.Live(ctx)
		if err == nil {
			notify.sendState("WATCHDOG=1")
			view.paint(live, invitation.nextText(ctx, len(live.Contacts) > 0))
		}
		wait.Reset(min(view.interval(live), notify.every))
		select {
		case <-wait.C:
		// A short wait, because the bridge records an event first and acts on it a little later.
		case <-view.happened:
			select {
			case <-time.After(screenSoon):
			case <-ctx.Done():
			}
		case <-sig.reload:
			if view.live && !screen.IsTerminal(a.Stderr) { // SIGHUP can also mean that the terminal was closed.
				sig.stop()
				continue
			}
			a.reloadConfig(r, view)
		case <-sig.stopping:
			sig.stopping = nil
			sig.stop() // After this, a second signal kills the process. The next start then ends the runs that were cut off.
			notify.sendState("STOPPING=1")
			view.stopping = true
			view.log.Info("stopping: turns under way may end")
		case <-ctx.Done():
			return
		}
	}
}

// reloadConfig reads the configuration again. If it has mistakes, nothing changes.
func (a *app) reloadConfig(r *openBridges, view *serviceView) {
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
		Language: language.Language(s.Language), Ack: s.Ack, Stream: s.Stream, Agents: s.Agents, Idle: s.Idle,
		MaxAge: s.MaxAge, Grace: s.Grace,
		AnswerIn: p.Config.AnswerTimeout, Permissions: p.Mode(),
	}
}

// plainHandler prints log records as plain lines.
type plainHandler struct{ a *app }

func (plainHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h plainHandler) Handle(_ context.Context, r slog.Record) error {
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

func (h plainHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h plainHandler) WithGroup(string) slog.Handler      { return h }
