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

// settings say where and how is listened, as flags and the user's configuration have it.
type settings struct {
	only                       string
	listen, url, cert, key, by string
}

// addListenFlags adds the flags of what is served.
func addListenFlags(cmd *cobra.Command, f *settings) {
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "", "the `address` to listen on, host:port (default \""+usualAddress+"\")")
	fl.StringVar(&f.only, "only", "", "show this project alone: its `folder`")
	fl.StringVar(&f.url, "public-url", "", "the `address` at which a proxy shows the page")
	fl.StringVar(&f.cert, "tls-cert", "", "speak TLS, with the certificate in this `file`")
	fl.StringVar(&f.key, "tls-key", "", "the `file` of its key")
	fl.StringVar(&f.by, "behind-proxy", "", "the `address` of the proxy that speaks TLS; no one else may connect")
}

// from fills in what the flags leave open from the user's configuration.
func (f settings) from(p *project.Project) settings {
	c := p.Config.Web
	f.listen, f.url = cmp.Or(f.listen, c.Listen, usualAddress), cmp.Or(f.url, c.PublicURL)
	f.cert, f.key, f.by = cmp.Or(f.cert, c.Cert), cmp.Or(f.key, c.Key), cmp.Or(f.by, c.Proxy)
	return f
}

// listen serves the page and HTTP until a signal ends it.
func (a *app) listen(ctx context.Context, f settings) (err error) {
	frame.SurviveBrokenPipes()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	here, own, err := a.projects(f.only)
	if err != nil {
		return err
	}
	s, err := a.site(ctx, f.from(own), here, own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.serve(ctx, func() {
		stop() // a second signal ends at once
		a.Note("stopping: turns under way may end")
	}, func(ctx context.Context) {
		a.Note("the page is at " + s.at.url)
		a.firstPairing(ctx, s.devices, s.runner, s.at.url)
	})
}

// Beside serves the page beside the bridge, if the user's configuration says so, until ctx is done; say is told
// where. The caller must call wait behind that, which returns when all is closed.
func Beside(ctx context.Context, c *frame.App, say func(string)) (wait func() error, err error) {
	a := &app{c}
	here, own, err := a.projects("")
	if err != nil || own.Config.Service.Web == "" {
		return func() error { return nil }, err
	}
	s, err := a.site(ctx, settings{listen: own.Config.Service.Web}.from(own), here, own)
	if err != nil {
		return nil, err
	}
	over := make(chan error, 1)
	go func() {
		err := s.serve(ctx, func() {}, func(context.Context) { say("the page is at " + s.at.url + "; 'perlica web pair' lets a browser in") })
		if err != nil {
			say("the page is not served any more: " + err.Error())
		}
		over <- errors.Join(err, s.close())
	}()
	return func() error { return <-over }, nil
}

// site is what is served, and all that is open for it.
type site struct {
	at      *address
	handler *web.Server
	devices *device.Devices
	runner  *kernel.Runner // of the user's own log
	grace   time.Duration
	closing []func() error
}

// close closes what is open, the last first.
func (s *site) close() (err error) {
	for _, one := range slices.Backward(s.closing) {
		err = errors.Join(err, one())
	}
	return err
}

// projects are the one in which the server is started, and the user's own.
func (a *app) projects(only string) (here, own *project.Project, err error) {
	if here, err = a.here(only); err != nil {
		return nil, nil, err
	}
	own, err = project.User(here.Dir, a.Environ, nil)
	return here, own, err
}

// site listens, and opens what is served. The caller must close it.
func (a *app) site(ctx context.Context, f settings, here, own *project.Project) (s *site, err error) {
	s = &site{grace: here.Config.Service.Grace}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	runner, done, err := a.Open(ctx, own)
	if err != nil {
		return s, err
	}
	s.runner, s.closing = runner, append(s.closing, done)
	at, err := f.resolve(a.Getenv)
	if err != nil {
		return s, err
	}
	s.at, s.closing = at, append(s.closing, func() error {
		_ = at.Close() // closed before, by those who serve
		return nil
	})
	release, err := serve(own, at.url)
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
		Page: page.Files(), Hosts: at.hosts, Base: at.base, Client: at.client, Trail: runner.Trail(), Team: a.team(here, f.only != ""),
	})
	return s, nil
}

// team is what opens the team that the settings name where the server is started; nil: they name none, or one project
// alone is shown.
func (a *app) team(here *project.Project, only bool) func(context.Context) (*team.Team, error) {
	opt, err := team.OptionsOf(here, "", a.Version)
	if err != nil || only {
		return nil
	}
	return func(ctx context.Context) (*team.Team, error) { return team.Open(ctx, opt) }
}

// here is the project in which the server is started.
func (a *app) here(only string) (*project.Project, error) {
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

// drainTime is how long answers under way may take when the server is told to stop.
const drainTime = 5 * time.Second

// serve serves until ctx is done; then stopping is called, streams end, answers are finished, and turns under
// way may go on for the time of grace. started runs beside it, until its context is done at the latest.
func (s *site) serve(ctx context.Context, stopping func(), started func(context.Context)) error {
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
	beside := make(chan struct{})
	go func() {
		defer close(beside)
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
		_ = server.Close() // what is left is slow
	}
	<-beside
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	defer cancel()
	return errors.Join(err, s.handler.Close(ending))
}

// firstPairing pairs a browser where nothing is paired yet.
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
		err = a.invite(ctx, d, rights, at)
	}
	if err != nil && ctx.Err() == nil {
		a.Note(err.Error() + "; 'perlica web pair' shows another address")
	}
}

// address is where is served.
type address struct {
	net.Listener
	url    string   // as a browser opens it
	base   string   // the path in it
	hosts  []string // all names under which it is asked
	tls    *tls.Config
	client func(*http.Request) string // nil: who is at the other end
}

// listenError says why an address cannot be listened on.
func listenError(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return frame.WithHint(fmt.Errorf("%s is taken: another program, or another 'perlica web', listens there", addr), "--listen chooses another address")
	case errors.Is(err, syscall.EACCES):
		return frame.WithHint(fmt.Errorf("%s may not be listened on: %w", addr, err), "--listen chooses another port; those below 1024 are the system's")
	}
	return frame.WithHint(fmt.Errorf("cannot listen on %s: %w", addr, err), "--listen takes HOST:PORT")
}
