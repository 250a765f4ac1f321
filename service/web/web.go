// Package web is the front end for a browser and for programs: one http.Handler over the logs of all
// projects of a user. openapi.json describes it, and its tests hold every answer against that.
//
// It promises that nothing passes its guard without a credential but what the description opens to
// all; that an input sent several times is one call; that of several answers the first counts and the
// others are told which that was; and that a stream of events that breaks off and goes on at its cursor
// misses nothing and repeats nothing. A log that cannot be read is said to be so and holds up nothing.
//
// It refuses to decide anything about a run, to keep a second copy of what is on record, and to start
// a listener: who serves it chooses the address.
package web

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/web/device"
	"github.com/perlica/perlica/service/web/push"
)

// Options of New.
type Options struct {
	Dirs    config.Dirs
	Environ []string // what agents' environments are chosen from
	Version string   // of Perlica, for agents

	// Here is the project in which the server was started: it is shown before it has a log. Only
	// says that no other is shown.
	Here *project.Project
	Only bool

	// Team opens the user's team, when its copies are first asked for; nil: there is none.
	Team func(context.Context) (*team.Team, error)

	Devices *device.Devices
	Page    fs.FS    // the page; nil: there is none
	Hosts   []string // under which it is reached, each with its port if that is not the scheme's
	Base    string   // the path under which a proxy shows it, as "/perlica"; empty: none

	// Client says where a request comes from, for the limits and the debug trail; nil takes the
	// address of the connection. Behind a proxy that is the proxy's.
	Client func(*http.Request) string

	Trail      *slog.Logger      // the debug trail; nil: none
	Push       http.RoundTripper // a test's push service; nil: what reaches public addresses alone
	Foreground time.Duration     // how long a page that is shown has to show a question by itself; 0: 10 s
	Heartbeat  time.Duration     // between two signs of life of a stream; 0: 15 s
	Patience   time.Duration     // how long one write may take; 0: 30 s
	Ring       int               // how many bytes of encoded lines are kept for a log's followers; 0: 16 MiB
}

// Server is the handler. Its methods may be called from several goroutines. The caller must Close it.
type Server struct {
	opt    Options
	logs   *logs
	limits *limits
	mux    *http.ServeMux

	stopping chan struct{} // closed when it is to stop: streams end, inputs are refused
	stop     sync.Once
	hard     context.Context // ends the turns
	end      context.CancelCauseFunc
	turns    sync.WaitGroup

	verifying  chan struct{} // capacity 1: one log is verified at a time
	clients    chan struct{} // a place for each ACP client
	streams    chan struct{} // a place for each stream of events
	slots      chan struct{} // a place for each turn that may be under way
	push       *push.Sender
	subscribed chan struct{} // capacity 1: a device may have subscribed
	watching   sync.WaitGroup
	present    present
	atWorkers  atWorkers
	inputs     inputs
	talks      talks
	learned    learned
	counts     counters
}

// New returns a handler. Nothing is opened yet but for devices that are woken by Web Push, and logs with runs whose process
// is gone: these get their outcomes.
func New(opt Options) *Server {
	if opt.Trail == nil {
		opt.Trail = slog.New(slog.DiscardHandler)
	}
	if opt.Client == nil {
		opt.Client = func(r *http.Request) string { return hostOnly(r.RemoteAddr) }
	}
	opt.Heartbeat = orDefault(opt.Heartbeat, 15*time.Second)
	opt.Patience = orDefault(opt.Patience, 30*time.Second)
	opt.Ring = orDefault(opt.Ring, 16<<20)
	opt.Foreground = orDefault(opt.Foreground, 10*time.Second)
	opt.Base = strings.TrimSuffix(opt.Base, "/")
	s := &Server{
		opt: opt, logs: newLogs(opt), limits: newLimits(), stopping: make(chan struct{}),
		verifying: make(chan struct{}, 1), streams: make(chan struct{}, mostStreams), clients: make(chan struct{}, max(opt.Here.Config.Service.Agents, 1)), slots: make(chan struct{}, max(opt.Here.Config.Service.Agents, 1)),
		inputs:  inputs{under: map[inputKey]*flight{}},
		talks:   talks{open: map[talkKey]*talk{}, idle: opt.Here.Config.Service.Idle, agents: max(opt.Here.Config.Service.Agents, 1)},
		learned: learned{of: map[learnedKey]*offers{}},
		counts:  counters{of: map[place]*counted{}}, subscribed: make(chan struct{}, 1), present: newPresent(),
	}
	s.push = push.New(push.Options{Dir: opt.Dirs.PushDir(), Trail: opt.Trail, Due: s.due, Transport: opt.Push})
	s.hard, s.end = context.WithCancelCause(context.Background())
	s.mux = s.routes()
	s.watching.Go(s.watchQuestions)
	s.watching.Go(s.recoverRuns)
	return s
}

// recoverRuns has the runs that a process left behind when it was killed get their outcomes: a page that shows one waits
// for it. A log that cannot be worked in holds up no other, and is told in the trail.
func (s *Server) recoverRuns() {
	list, err := s.logs.list(s.hard, place{})
	if err != nil {
		s.opt.Trail.Warn("runs are not recovered", "error", err.Error())
	}
	for _, l := range list {
		if err := l.recoverRuns(s.hard); err != nil {
			s.opt.Trail.Warn("runs are not recovered", "project", l.Project, "context", l.Context, "error", err.Error())
		}
	}
}

// mostStreams is how many streams of events may be open at a time.
const mostStreams = 1000

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Stop ends the streams and refuses new inputs; turns under way go on. It returns at once.
func (s *Server) Stop() { s.stop.Do(func() { close(s.stopping) }) }

// errStopped is why turns end with the server.
var errStopped = errors.New("the server was stopped")

// Close stops the server, waits until ctx is done for the turns under way, cancels those that are left,
// and closes what is open. No request may be under way.
func (s *Server) Close(ctx context.Context) error {
	s.Stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.turns.Wait()
	}()
	select {
	case <-over:
	case <-ctx.Done():
		s.end(errStopped)
		<-over
	}
	s.end(errStopped)
	s.push.Close()
	s.watching.Wait()
	s.talks.close()
	return s.logs.close()
}
