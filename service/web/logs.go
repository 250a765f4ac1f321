package web

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/notify"
	"github.com/perlica/perlica/service/team"
)

// place names a log: the directory of its project, and its context.
type place struct {
	Project string `json:"project"`
	Context string `json:"context"`
}

// unreadable names a log that could not be read.
type unreadable struct {
	place
	Error string `json:"error"` // in the language of the request
	text  *message.Text
}

// logs holds the user's logs. Each is opened at its first use.
type logs struct {
	opt     Options
	hub     *team.Link
	outflow *outflow

	// mu guards the fields below.
	mu   sync.Mutex
	open map[place]*eventLog
}

func newLogs(opt Options) *logs {
	return &logs{opt: opt, hub: team.NewLink(opt.Team), outflow: newOutflow(), open: map[place]*eventLog{}}
}

// eventLog is the log of a place. Its file may be missing, damaged or replaced at any time.
type eventLog struct {
	place
	opt     Options
	outflow *outflow
	paths   config.ContextPaths

	// mu guards the fields below.
	mu sync.Mutex
	// copy is the copy of a worker's log. It is nil for a log of this machine.
	copy   *workerCopy
	used   project.Used
	reader *store.Reader
	// info describes the file that reader has open.
	info    os.FileInfo
	old     []*store.Reader
	project *project.Project
	runner  *kernel.Runner
	done    func() error
	// stopNotifying ends the delivery of notifications. It is nil before the log is open for work.
	stopNotifying func()

	feed *feed
}

// here returns the place in which the server was started.
func (ls *logs) here() place {
	root := ls.opt.Here.Workspace.Root
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	return place{root, ls.opt.Here.Config.ContextID}
}

// list returns the logs that match the place in the parameter "where". An empty project or context matches every log of
// this machine.
func (ls *logs) list(ctx context.Context, where place) ([]*eventLog, error) {
	if where.Project == teamProject {
		return ls.copies(ctx, where.Context)
	}
	used, err := project.List(ls.opt.Dirs)
	if err != nil {
		return nil, err
	}
	here := ls.here()
	if !slices.ContainsFunc(used, func(u project.Used) bool { return place{u.Dir, u.Context} == here }) {
		used = append(used, project.Used{Dir: here.Project, Context: here.Context})
	}
	var list []*eventLog
	for _, u := range used {
		at := place{u.Dir, u.Context}
		if ls.opt.Only && u.Dir != here.Project || where.Project != "" && u.Dir != where.Project || where.Context != "" &&
			u.Context != where.Context {
			continue
		}
		l, err := ls.logAt(at, u)
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	if len(list) == 0 && where != (place{}) {
		return nil, notFound.problem(noProject)
	}
	slices.SortFunc(list, func(a, b *eventLog) int {
		return cmp.Or(strings.Compare(a.Project, b.Project), strings.Compare(a.Context, b.Context))
	})
	return list, nil
}

// oneLog returns the log that the place names. If the place matches several logs, oneLog chooses the log of the
// server's own place or of the context "default". Without such a log it returns an error.
func (ls *logs) oneLog(ctx context.Context, where place) (*eventLog, error) {
	list, err := ls.list(ctx, where)
	if err != nil {
		return nil, err
	}
	if len(list) == 1 {
		return list[0], nil
	}
	for _, l := range list {
		if l.place == ls.here() || l.Context == "default" {
			return l, nil
		}
	}
	return nil, whichContext.problem(severalContexts.With(len(list)))
}

// logAt returns the log of a place. The parameter "used" is the entry of this place in the list of the user's projects.
func (ls *logs) logAt(at place, used project.Used) (*eventLog, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.open[at]
	if l == nil {
		paths, err := config.Workspace{Root: at.Project}.Context(at.Context)
		if err != nil {
			return nil, err
		}
		l = &eventLog{place: at, opt: ls.opt, outflow: ls.outflow, paths: paths}
		ls.open[at] = l
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if used.Log == "" {
		used.Log = l.paths.EventLog
	}
	l.used = used
	return l, nil
}

// openReader returns a reader of the log. The reader is nil if the context has no log yet. openReader refuses a log
// with a changed schema, as a run does, even if the log was open before. The reader stays valid until the server
// closes, even if the file is replaced.
func (l *eventLog) openReader(ctx context.Context) (logReader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.copy != nil {
		return l.copy.CopyReader, nil
	}
	info, err := os.Stat(l.used.Log)
	if err != nil || l.reader == nil || !os.SameFile(info, l.info) {
		if l.reader != nil {
			l.old, l.reader = append(l.old, l.reader), nil
		}
		var r *store.Reader
		if err == nil {
			r, err = project.OpenLogToShow(context.WithoutCancel(ctx), l.opt.Dirs, l.used.Log) // its check outlives the request
		}
		if errors.Is(err, fs.ErrNotExist) && l.used.Origin == "" {
			return nil, nil // there is no log yet, or another process is just creating it
		}
		if err != nil {
			return nil, err
		}
		l.reader, l.info = r, info
	}
	return l.reader, l.reader.RequireSchema(ctx)
}

// openRunner opens the log for work and returns its runner and project. Opening also records an outcome for each run
// that has none although its process has ended.
func (l *eventLog) openRunner(ctx context.Context) (*kernel.Runner, *project.Project, error) {
	if err := l.requireOwn(onlyWorkerAppends); err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runner != nil {
		return l.runner, l.project, l.runner.Log().RequireSchema(ctx)
	}
	p, err := l.findProject()
	if err != nil {
		return nil, nil, err
	}
	r, done, err := p.Open(ctx, l.opt.Version)
	if err != nil {
		return nil, nil, err
	}
	if _, err := r.Recover(ctx); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	l.stopNotifying = notify.Start(p, notify.Options{Version: l.opt.Version, Push: l.opt.Push})
	l.project, l.runner, l.done = p, r, done
	return r, p, nil
}

// recoverRuns opens the log for work if it has runs without a process.
func (l *eventLog) recoverRuns(ctx context.Context) error {
	log, err := l.openReader(ctx)
	if err != nil || log == nil {
		return err
	}
	open, err := log.OpenRuns(ctx)
	if err != nil {
		return err
	}
	for _, run := range open {
		if held, err := l.isRunning(run); err != nil || held {
			continue
		}
		_, _, err := l.openRunner(ctx)
		return err
	}
	return nil
}

// findProject finds the project with its configuration.
func (l *eventLog) findProject() (*project.Project, error) {
	if l.Project == teamProject {
		return nil, notFound.problem(agentsUnknown)
	}
	p, err := project.Find(l.Project, l.opt.Environ, map[string]string{"context.default_id": l.Context})
	p.Attended = l.opt.Here.Attended
	if err == nil && p.Workspace.Root != l.Project {
		if real, rerr := filepath.EvalSymlinks(p.Workspace.Root); rerr != nil || real != l.Project {
			// Find also searches the folders above, and it has found another project there.
			err = fs.ErrNotExist
		}
	}
	return p, err
}

// failed returns an error for the open logs that accept no further events.
func (ls *logs) failed() (err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.open {
		l.mu.Lock()
		if l.runner != nil {
			err = errors.Join(err, l.runner.Log().Err())
		}
		l.mu.Unlock()
	}
	return err
}

// closeAll closes all open logs.
func (ls *logs) closeAll() (err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var notifying sync.WaitGroup
	for _, l := range ls.open {
		l.mu.Lock()
		if l.stopNotifying != nil {
			notifying.Go(l.stopNotifying)
		}
		l.mu.Unlock()
	}
	notifying.Wait()
	for _, l := range ls.open {
		l.mu.Lock()
		if l.feed != nil {
			l.feed.endReader()
		}
		if l.done != nil {
			err = errors.Join(err, l.done())
		}
		if l.reader != nil {
			l.old = append(l.old, l.reader)
		}
		for _, r := range l.old {
			err = errors.Join(err, r.Close())
		}
		l.reader, l.old, l.runner, l.done, l.stopNotifying = nil, nil, nil, nil, nil
		l.mu.Unlock()
	}
	clear(ls.open)
	return errors.Join(err, ls.hub.Close())
}

// patience limits the wait for one log, and the wait for the hub.
const patience = 5 * time.Second

// together calls the function f for each log, at most eight at a time. It lists a log as unreadable if f fails or takes
// too long. If the server has found a damaged event in a log, together lists the log as unreadable and also returns the
// log's value.
func together[T any](ctx context.Context, list []*eventLog, f func(context.Context, *eventLog, logReader) (T,
	error)) (of map[*eventLog]T, bad []unreadable) {
	var mu sync.Mutex
	of, bad = map[*eventLog]T{}, []unreadable{}
	var all sync.WaitGroup
	places := make(chan struct{}, 8)
	for _, l := range list {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			r, err := l.openReader(ctx)
			var v T
			if err == nil && r != nil {
				v, err = f(ctx, l, r)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil && r != nil {
				of[l] = v
				if file, ok := r.(*store.Reader); ok {
					err = file.Damaged()
				}
			}
			if err != nil {
				bad = append(bad, unreadable{l.place, say(ctx).Error(err), message.Of(err)})
			}
		})
	}
	all.Wait()
	sort.Slice(bad, func(i, j int) bool {
		a, b := &bad[i], &bad[j]
		return cmp.Or(strings.Compare(a.Project, b.Project), strings.Compare(a.Context, b.Context)) < 0
	})
	return of, bad
}
