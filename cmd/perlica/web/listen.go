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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/cmd/perlica/signals"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
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
	signals.SurviveBrokenPipes()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	here, err := a.here(f.only)
	if err != nil {
		return err
	}
	own, err := project.User(here.Dir, a.Environ, nil)
	if err != nil {
		return err
	}
	runner, done, err := a.Open(ctx, own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	at, err := f.from(own).resolve(a.Getenv)
	if err != nil {
		return err
	}
	defer func() { _ = at.Close() }() // closed twice, by those who serve
	release, err := serve(own, at.url)
	if err != nil {
		return err
	}
	defer release()
	devices, err := device.Open(ctx, runner.Log(), device.Options{Base: at.base, Client: at.client})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, devices.Close()) }()
	handler := web.New(web.Options{
		Dirs: own.Dirs, Environ: a.Environ, Version: a.Version, Here: here, Only: f.only != "", Devices: devices,
		Page: page.Files(), Hosts: at.hosts, Base: at.base, Client: at.client, Trail: runner.Trail(),
	})
	return a.serving(ctx, stop, at, handler, devices, runner, here.Config.Service.Grace)
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
		return nil, exitcode.Usagef("--only: %w", err)
	}
	p, err := project.Find(dir, a.Environ, nil)
	if err == nil {
		p.Dir = dir
	}
	return p, err
}

// drainTime is how long answers under way may take when the server is told to stop.
const drainTime = 5 * time.Second

// serving serves until ctx is done; then streams end, answers are finished, and turns under way may go on
// for the time of grace.
func (a *app) serving(ctx context.Context, stop func(), at *address, handler *web.Server, devices *device.Devices, runner *kernel.Runner, grace time.Duration) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		TLSConfig: at.tls, ErrorLog: log.New(io.Discard, "", 0),
	}
	over := make(chan error, 1)
	go func() {
		if at.tls != nil {
			over <- server.ServeTLS(at.Listener, "", "")
		} else {
			over <- server.Serve(at.Listener)
		}
	}()
	a.Note("the page is at " + at.url)
	paired := make(chan struct{})
	go func() {
		defer close(paired)
		a.firstPairing(ctx, devices, runner, at.url)
	}()
	var err error
	select {
	case err = <-over:
		stop()
	case <-ctx.Done():
		stop() // a second signal ends at once
		a.Note("stopping: turns under way may end")
	}
	handler.Stop()
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if server.Shutdown(draining) != nil {
		_ = server.Close() // what is left is slow
	}
	<-paired
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(err, handler.Close(ending))
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
		return exitcode.WithHint(fmt.Errorf("%s is taken: another program, or another 'perlica web', listens there", addr), "--listen chooses another address")
	case errors.Is(err, syscall.EACCES):
		return exitcode.WithHint(fmt.Errorf("%s may not be listened on: %w", addr, err), "--listen chooses another port; those below 1024 are the system's")
	}
	return exitcode.WithHint(fmt.Errorf("cannot listen on %s: %w", addr, err), "--listen takes HOST:PORT")
}
