package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// logReader is a log as it is read: one of this machine's, or the copy of a worker's on the hub of a team.
type logReader interface {
	event.Reader
	OpenRuns(ctx context.Context) ([]event.RunID, error)
	Origin(ctx context.Context) (string, error)
}

// teamProject is the project of the copies of workers' logs; their context is the worker's name. The path of a
// directory is none like it. They are shown to who asks for it alone: no list waits for the hub.
const teamProject = "team"

// aliveFor is for how long a worker that was heard of is taken for one that lives.
const aliveFor = time.Minute

// workerCopy is what a log is that is a copy of a worker's.
type workerCopy struct {
	*hub.CopyReader
	team  *team.Team
	lives bool // the worker was heard of
}

// copies returns the copies of the logs of all workers, or of one.
func (ls *logs) copies(ctx context.Context, worker string) (list []*eventLog, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t, err := ls.hub.Get(ctx)
	switch {
	case errors.Is(err, team.ErrNoHub):
		return nil, notFound.is("no team is configured, or it is not shown here")
	case err != nil:
		return nil, logFailed.is("the team's hub: " + err.Error())
	}
	readers, err := t.Logs(ctx)
	workers, now, werr := t.Hub.Workers(ctx)
	if err = cmp.Or(err, werr); err != nil {
		return nil, logFailed.is("the team's hub: " + err.Error())
	}
	heard := map[string]time.Time{}
	for _, w := range workers {
		heard[w.Name] = w.Heard
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, r := range readers {
		if worker != "" && r.Worker != worker {
			continue
		}
		at := place{teamProject, r.Worker}
		l := ls.open[at]
		if l == nil {
			l = &eventLog{place: at, opt: ls.opt}
			ls.open[at] = l
		}
		l.mu.Lock()
		l.copy = &workerCopy{r, t, now.Sub(heard[r.Worker]) < aliveFor}
		l.mu.Unlock()
		list = append(list, l)
	}
	if len(list) == 0 && worker != "" {
		return nil, notFound.is("the team has no copy of such a worker's log")
	}
	slices.SortFunc(list, func(a, b *eventLog) int { return strings.Compare(a.Context, b.Context) })
	return list, nil
}

// copied returns the copy that the log is; nil: it is one of this machine's.
func (l *eventLog) copied() *workerCopy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copy
}

// own returns an error for a copy: what is asked for can be done with a log of this machine's alone; instead says
// what to do.
func (l *eventLog) own(instead string) error {
	if l.copied() == nil {
		return nil
	}
	return unfit.is(fmt.Sprintf("this is the copy of %s's log: %s", l.Context, instead))
}

// asked is a question that is open.
type asked struct {
	interaction.Question
	there *hub.Question // on the hub; nil: the question is of this machine's log
}

// open returns the questions of the worker that are open on the hub.
func (c *workerCopy) open(ctx context.Context) (list []asked, err error) {
	all, err := team.OpenQuestions(ctx, c.team, c.Worker)
	for _, q := range all {
		input := event.InputID(q.There.Input)
		received, _, err := c.Last(ctx, event.Query{Input: input, Types: []event.Type{event.MessageReceived}})
		if err != nil {
			return nil, err
		}
		q.Refs = event.Refs{Session: received.Session, Run: received.Run, Interaction: q.ID, Input: input}
		list = append(list, asked{q.Question, &q.There})
	}
	return list, err
}

// pending returns the questions of a log that somebody waits for, oldest first.
func (l *eventLog) pending(ctx context.Context, log logReader) (list []asked, err error) {
	if c := l.copied(); c != nil {
		return c.open(ctx)
	}
	open, err := kernel.PendingQuestions(ctx, log.(*store.Reader), l.paths.Locks)
	for _, q := range open {
		list = append(list, asked{Question: q})
	}
	return list, err
}

// closed says how a question ended; nil: it has not.
func (l *eventLog) closed(ctx context.Context, log logReader, q asked) (*interaction.TakenError, error) {
	switch c := l.copied(); {
	case q.there != nil:
		return nil, nil
	case c != nil:
		return c.closed(ctx, q.ID)
	}
	return interaction.Closed(ctx, log, q.ID)
}

// closed says how a question ended that the hub does not have as open: from the copy or, where that comes later, from what
// the worker told the hub. It is nil where neither knows.
func (c *workerCopy) closed(ctx context.Context, id event.InteractionID) (*interaction.TakenError, error) {
	if end, err := interaction.Closed(ctx, c, id); err != nil || end != nil {
		return end, err
	}
	end, err := c.team.Ended(ctx, string(id))
	if err != nil || end == nil {
		return nil, err
	}
	return &interaction.TakenError{Answer: end.Answer, Lapsed: end.Reason}, nil
}

// answer proposes an answer to the worker that asks, as the member that this machine is, and waits for its word.
func (c *workerCopy) answer(ctx context.Context, q asked, a interaction.Answer) error {
	if q.there == nil {
		end, err := c.closed(ctx, q.ID)
		switch {
		case err != nil:
			return err
		case end != nil:
			return end
		}
		return questionClosed.is("the hub does not have it any more")
	}
	if err := q.Check(a); err != nil {
		return err
	}
	err := c.team.Answer(ctx, *q.there, a)
	var uncounted *team.UncountedError
	switch {
	case errors.As(err, &uncounted):
		return questionClosed.is("the answer does not count: " + uncounted.Why)
	case errors.Is(err, team.ErrNoRight):
		return forbidden.of(err)
	case errors.Is(err, context.DeadlineExceeded):
		return logFailed.is(c.Worker + " did not say whether the answer counts; it may still count")
	case err != nil:
		return logFailed.is("the team's hub: " + err.Error())
	}
	return nil
}

// cancel asks the worker to stop the run of an input.
func (c *workerCopy) cancel(ctx context.Context, input event.InputID, by string) error {
	_, err := c.team.Cancel(ctx, string(input), by, source)
	switch {
	case errors.Is(err, team.ErrNoRight):
		return forbidden.of(err)
	case err != nil:
		return logFailed.is("the team's hub: " + err.Error())
	}
	return nil
}
