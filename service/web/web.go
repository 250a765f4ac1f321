// Package web is the front end for a browser and for programs. It is one http.Handler over the logs
// of all projects of a user. The file openapi.json describes it, and the tests check every answer
// against this file.
//
// The package keeps these promises. Without a credential a request reaches only the routes that the
// description opens to all. An input that is sent several times is one call. The first of several
// answers counts, and later answers learn which one counted. A stream of events that breaks and
// continues at its cursor misses no event and repeats none. The server reports an unreadable log,
// and the other logs work on.
//
// The package never decides about a run, keeps no second copy of the record, and opens no listener.
// The caller chooses the address.
//
// # Goroutines and locks
//
//   - The goroutine of each request runs its handler. It owns its request and its follower.
//   - New starts watchQuestions and recoverWork. watchQuestions owns the set of known questions
//     and starts the goroutine of watchTeam. Close joins both.
//   - joinInput starts one goroutine for each pending input, and joinFlow one for each driven flow run. Server.turns
//     counts these goroutines, recoverWork and the open ACP connections. Close waits for turns.
//   - Each followed log has a goroutine of its feed. This goroutine reads the log, and its child
//     watches the file. It ends with the last follower.
//   - Each ACP connection has three goroutines. They read messages, send pings, and wait for a
//     revocation.
//
// Locks are taken in this order: liveSessions.opening before liveSessions.mu, logs.mu before
// eventLog.mu, and eventLog.mu before feed.mu. The backlog's channel sem is held while a segment is
// read; no other lock is taken under it. The remaining mutexes guard only the fields of their own
// struct, and their holders take no other lock.
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

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/web/device"
	"github.com/perlica/perlica/service/web/push"
)

// Options configures New.
type Options struct {
	Dirs config.Dirs
	// Environ is the environment from which the agents' environments are chosen.
	Environ []string
	// Version is Perlica's version for agents.
	Version string

	// Here is the project in which the server was started. It is listed before it has a log.
	Here *project.Project
	// Only is true if all other projects are hidden.
	Only bool

	// Team opens the user's team at the first use of its copies. nil means that the user has no
	// team.
	Team func(context.Context) (*team.Team, error)

	Devices *device.Devices
	Page    fs.FS // the page; nil serves no page
	// Hosts lists the names under which the server is reached, each with its port unless the port
	// is the scheme's default.
	Hosts []string
	// Base is the path under which a proxy shows the server, such as "/perlica". It is empty
	// without such a proxy.
	Base string

	// Client returns the address of a request's client for the limits and the debug trail. If Client is nil, the
	// connection's remote address is used. This is the address of the proxy if there is a proxy.
	Client func(*http.Request) string

	Trail *slog.Logger // the debug trail; nil disables it
	// Push is the transport of the messages to push services. If it is nil, only public addresses are reached.
	Push http.RoundTripper
	// Foreground is the time that a visible page has to show a question itself. 0 means 10 s.
	Foreground time.Duration
	// Heartbeat is the interval between two signs of life of a stream. 0 means 15 s.
	Heartbeat time.Duration
	// Patience is the time limit of one write. 0 means 30 s.
	Patience time.Duration
	// Ring is the largest size of the encoded lines that are kept for a log's followers, in bytes. 0 means 16 MiB.
	Ring int
}

// Server is the handler. Its methods may be called from several goroutines. The caller must Close
// it.
type Server struct {
	opt    Options
	logs   *logs
	limits *limits
	mux    *http.ServeMux

	// stopping is closed by Stop: streams end and inputs are refused.
	stopping chan struct{}
	stop     sync.Once
	// hard is the context of the running turns. end cancels it.
	hard  context.Context
	end   context.CancelCauseFunc
	turns sync.WaitGroup

	verifying    chan struct{} // capacity 1: one request reads a whole log at a time
	clients      chan struct{} // capacity: the number of ACP clients
	streams      chan struct{} // capacity: the number of streams of events
	slots        chan struct{} // capacity: the number of running turns
	push         *push.Sender
	subscribed   chan struct{} // capacity 1: a device may have subscribed
	watching     sync.WaitGroup
	present      present
	atWorkers    atWorkers
	inputs       inputs
	flowRunsHere flowRunsHere
	reports      openReports
	liveSessions liveSessions
	learned      learned
	counts       counters
}

// New returns a handler. It opens only the logs that have runs without a process, to record their
// outcomes, and the files of devices that Web Push wakes.
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
		verifying: make(chan struct{}, 1), streams: make(chan struct{}, mostStreams),
		clients:      make(chan struct{}, max(opt.Here.Config.Service.Agents, 1)),
		slots:        make(chan struct{}, max(opt.Here.Config.Service.Agents, 1)),
		inputs:       inputs{pending: map[inputKey]*pendingInput{}},
		flowRunsHere: flowRunsHere{driven: map[flowRunKey]*drivenFlow{}, faults: map[flowRunKey]error{}},
		liveSessions: liveSessions{open: map[sessionKey]*liveSession{}, idle: opt.Here.Config.Service.Idle,
			agents: max(opt.Here.Config.Service.Agents, 1)},
		learned: learned{of: map[learnedKey]*offers{}},
		counts:  counters{of: map[place]*counted{}}, subscribed: make(chan struct{}, 1), present: newPresent(),
	}
	s.push = push.New(push.Options{Dir: opt.Dirs.PushDir(), Trail: opt.Trail, Due: s.due, Transport: opt.Push})
	s.hard, s.end = context.WithCancelCause(context.Background())
	s.mux = s.routes()
	s.watching.Go(s.watchQuestions)
	s.turns.Go(s.recoverWork)
	return s
}

// recoverWork records the outcomes of runs that ended with their killed process. A page that shows such a run waits for
// this outcome. It then sends the inputs that waited. A log that cannot be opened for work is named in the debug trail
// and does not delay the others.
func (s *Server) recoverWork() {
	list, err := s.logs.list(s.hard, place{})
	if err != nil {
		s.opt.Trail.Warn("runs are not recovered", "error", err.Error())
	}
	for _, l := range list {
		if err := errors.Join(l.recoverRuns(s.hard), s.takeUpInputs(l)); err != nil {
			s.opt.Trail.Warn("runs are not recovered", "project", l.Project, "context", l.Context, "error", err.Error())
		}
	}
}

// LogFiles returns the paths of the logs that the server shows.
func (s *Server) LogFiles(ctx context.Context) (paths []string, err error) {
	list, err := s.logs.list(ctx, place{})
	for _, l := range list {
		paths = append(paths, l.paths.EventLog)
	}
	return paths, err
}

// mostStreams limits the number of open streams of events.
const mostStreams = 1000

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Stop ends the streams and refuses new inputs. Running turns continue. Stop returns at once.
func (s *Server) Stop() { s.stop.Do(func() { close(s.stopping) }) }

// errStopped is the cause with which the closing server cancels turns.
var errStopped = message.New("web.stopped", "the server was stopped")

// Close stops the server and waits for the running turns until ctx is done. It then cancels the
// remaining turns and closes all open logs. No request may be running.
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
	s.liveSessions.closeAll()
	return s.logs.closeAll()
}
