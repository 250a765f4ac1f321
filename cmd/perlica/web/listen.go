package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/web"
	"github.com/perlica/perlica/service/web/device"
	"github.com/perlica/perlica/service/web/page"
)

// settings are the settings of the listener. They come from flags and from the user's configuration.
type settings struct {
	only                       string
	listen, url, cert, key, by string
}

// addListenFlags adds the flags for the listener.
func addListenFlags(cmd *cobra.Command, f *settings) {
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "", "the `address` to listen on, host:port (default \""+usualAddress+"\")")
	fl.StringVar(&f.only, "only", "", "show only the project in this `folder`")
	fl.StringVar(&f.url, "public-url", "", "the `address` of the page for browsers, if a proxy serves it")
	fl.StringVar(&f.cert, "tls-cert", "", "speak TLS with the certificate in this `file`")
	fl.StringVar(&f.key, "tls-key", "", "the `file` with the key of the certificate")
	fl.StringVar(&f.by, "behind-proxy", "", "the `address` of a proxy that speaks TLS; only this proxy may connect")
}

// withDefaults returns the settings. It takes missing values from the user's configuration.
func (f settings) withDefaults(p *project.Project) settings {
	c := p.Config.Web
	f.listen, f.url = cmp.Or(f.listen, c.Listen, usualAddress), cmp.Or(f.url, c.PublicURL)
	f.cert, f.key, f.by = cmp.Or(f.cert, c.Cert), cmp.Or(f.key, c.Key), cmp.Or(f.by, c.Proxy)
	return f
}

// serveUntilSignal serves the page and the HTTP API until a signal ends it.
func (a *app) serveUntilSignal(ctx context.Context, f settings) (err error) {
	frame.SurviveBrokenPipes()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	here, own, err := a.findProjects(f.only)
	if err == nil {
		err = here.CheckSandbox()
	}
	if err != nil {
		return err
	}
	s, err := a.openSite(ctx, f.withDefaults(own), here, own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.closeAll()) }()
	return s.serveRequests(ctx, func() {
		stop() // After this, a second signal ends the process at once.
		a.Note("stopping: turns under way may end")
	}, func(ctx context.Context) {
		a.Note("the page is at " + s.at.url)
		a.firstPairing(ctx, s.devices, s.runner, s.at.url)
	})
}

// ServeWithBridge serves the page next to the bridge until ctx ends, if the user's configuration asks for it. It passes
// the address to the function "say". The caller must call wait after ctx has ended. The function "wait" returns when
// everything is closed.
func ServeWithBridge(ctx context.Context, c *frame.App, say func(string)) (wait func() error, err error) {
	a := &app{c}
	here, own, err := a.findProjects("")
	if err != nil || own.Config.Service.Web == "" {
		return func() error { return nil }, err
	}
	s, err := a.openSite(ctx, settings{listen: own.Config.Service.Web}.withDefaults(own), here, own)
	if err != nil {
		return nil, err
	}
	over := make(chan error, 1)
	go func() {
		err := s.serveRequests(ctx, func() {},
			func(context.Context) { say("the page is at " + s.at.url + "; 'perlica web pair' lets a browser in") })
		if err != nil {
			say("the page is not served any more: " + err.Error())
		}
		over <- errors.Join(err, s.closeAll())
	}()
	return func() error { return <-over }, nil
}

// site has everything that is open while the page is served.
type site struct {
	at      *address
	handler *web.Server
	devices *device.Devices
	runner  *kernel.Runner // writes the user's own log
	grace   time.Duration
	closing []func() error
}

// closeAll calls the functions in closing, the last one first.
func (s *site) closeAll() (err error) {
	for _, one := range slices.Backward(s.closing) {
		err = errors.Join(err, one())
	}
	return err
}

// findProjects returns the project of the working directory and the user's own project.
func (a *app) findProjects(only string) (here, own *project.Project, err error) {
	if here, err = a.findHere(only); err != nil {
		return nil, nil, err
	}
	own, err = project.User(here.Dir, a.Environ, nil)
	return here, own, err
}

// openSite opens the logs and the listener. The caller must call closeAll if there is no error.
func (a *app) openSite(ctx context.Context, f settings, here, own *project.Project) (s *site, err error) {
	s = &site{grace: here.Config.Service.Grace}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeAll())
		}
	}()
	runner, done, err := a.Open(ctx, own)
	if err != nil {
		return s, err
	}
	s.runner, s.closing = runner, append(s.closing, done)
	at, err := f.listenAddress(a.Getenv)
	if err != nil {
		return s, err
	}
	s.at, s.closing = at, append(s.closing, func() error {
		_ = at.Close() // The server has closed the listener already.
		return nil
	})
	release, err := announceAddress(own, at.url)
	if err != nil {
		return s, err
	}
	s.closing = append(s.closing, func() error { release(); return nil })
	if s.devices, err = device.Open(ctx, runner.Log(), device.Options{Base: at.base, Client: at.client}); err != nil {
		return s, err
	}
	s.closing = append(s.closing, s.devices.Close)
	s.handler = web.New(web.Options{
		Dirs: own.Dirs, Environ: a.Environ, Version: a.Version, Here: here, Only: f.only != "", Devices: s.devices,
		Page: page.Files(), Hosts: at.hosts, Base: at.base, Client: at.client, Trail: runner.Trail(), Team: a.teamOpener(here,
			f.only != ""),
	})
	paths, err := s.handler.LogFiles(ctx)
	if err != nil {
		return s, errors.Join(err, s.handler.Close(ctx))
	}
	for _, path := range paths {
		a.WarnExposed(path)
	}
	return s, nil
}

// teamOpener returns the function that opens the configured team. It returns nil if no team is configured, or if
// only one project is served.
func (a *app) teamOpener(here *project.Project, only bool) func(context.Context) (*team.Team, error) {
	opt, err := team.OptionsOf(here, "", a.Version)
	if err != nil || only {
		return nil
	}
	return func(ctx context.Context) (*team.Team, error) { return team.Open(ctx, opt) }
}

// findHere returns the project of the working directory. If "only" is not empty, it returns the project of this folder.
func (a *app) findHere(only string) (*project.Project, error) {
	if only == "" {
		return a.Locate(nil)
	}
	dir, err := filepath.Abs(only)
	if err == nil {
		_, err = os.ReadDir(dir)
	}
	if err != nil {
		return nil, frame.UsageErrorf("--only: %w", err)
	}
	p, err := a.FindProject(dir, nil)
	if err == nil {
		p.Dir = dir
	}
	return p, err
}

// drainTime is the time after a stop in which running HTTP requests may finish.
const drainTime = 5 * time.Second

// serveRequests serves until ctx ends. Next to the server it runs the function "started". When ctx ends,
// serveRequests calls the function "stopping", ends streams, lets requests finish, and lets turns run for the grace
// time.
func (s *site) serveRequests(ctx context.Context, stopping func(), started func(context.Context)) error {
	during, end := context.WithCancel(ctx)
	defer end()
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		TLSConfig: s.at.tls, ErrorLog: log.New(io.Discard, "", 0),
	}
	over := make(chan error, 1)
	go func() {
		if s.at.tls != nil {
			over <- server.ServeTLS(s.at.Listener, "", "")
		} else {
			over <- server.Serve(s.at.Listener)
		}
	}()
	startedDone := make(chan struct{})
	go func() {
		defer close(startedDone)
		started(during)
	}()
	var err error
	select {
	case err = <-over:
	case <-ctx.Done():
		stopping()
	}
	end()
	s.handler.Stop()
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if server.Shutdown(draining) != nil {
		_ = server.Close() // Some requests are too slow and are cut off.
	}
	<-startedDone
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	defer cancel()
	return errors.Join(err, s.handler.Close(ending))
}

// firstPairing opens a pairing for a browser if no browser is paired yet.
func (a *app) firstPairing(ctx context.Context, d *device.Devices, runner *kernel.Runner, at string) {
	list, err := device.List(ctx, &runner.Log().Reader)
	if err != nil || len(list) > 0 {
		return
	}
	if a.canAsk() != nil {
		a.Note("nothing is paired: 'perlica web pair' in a terminal lets a browser in, 'perlica web token' a program")
		return
	}
	rights, err := access.Parse(defaultRights, "browser", access.OfDevices())
	if err == nil {
		err = a.pairBrowser(ctx, d, rights, at)
	}
	if err != nil && ctx.Err() == nil {
		a.Note(err.Error() + "; 'perlica web pair' shows another address")
	}
}

// address is the address at which the page is served.
type address struct {
	net.Listener
	url   string   // the address for a browser
	base  string   // the path of url
	hosts []string // all host names that a request may name
	tls   *tls.Config
	// client returns the client of a request. If client is nil, the connection's remote address is used.
	client func(*http.Request) string
}

// listenError returns an error that explains why the listener cannot use an address.
func listenError(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return frame.WithHint(fmt.Errorf("%s is taken: another program, or another 'perlica web', listens there", addr),
			"--listen chooses another address")
	case errors.Is(err, syscall.EACCES):
		return frame.WithHint(fmt.Errorf("%s may not be listened on: %w", addr, err),
			"--listen chooses another port; those below 1024 are the system's")
	}
	return frame.WithHint(fmt.Errorf("cannot listen on %s: %w", addr, err), "--listen takes HOST:PORT")
}
