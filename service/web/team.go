package web

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// logReader reads a log of this machine, or the copy of a worker's log on a team's hub.
type logReader interface {
	event.Reader
	OpenRuns(ctx context.Context) ([]event.RunID, error)
	Origin(ctx context.Context) (string, error)
}

// teamProject is the project name of the copies of workers' logs. The context is the worker's name. A directory path
// never equals this project name. A client must ask for these copies by name, because no other list may wait for the
// hub.
const teamProject = "team"

// aliveFor is the time for which a worker counts as alive after its last sign of life.
const aliveFor = time.Minute

// workerCopy is the copy of a worker's log.
type workerCopy struct {
	*hub.CopyReader
	team  *team.Team
	lives bool // the worker gave a sign of life within aliveFor
}

// copies returns the copies of the logs of all workers, or of one worker.
func (ls *logs) copies(ctx context.Context, worker string) (list []*eventLog, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t, err := ls.hub.Get(ctx)
	switch {
	case errors.Is(err, team.ErrNoHub):
		return nil, notFound.problem(noTeam)
	case err != nil:
		return nil, logFailed.problem(hubFailed.With(err))
	}
	readers, err := t.Logs(ctx)
	workers, now, werr := t.Hub.Workers(ctx)
	if err = cmp.Or(err, werr); err != nil {
		return nil, logFailed.problem(hubFailed.With(err))
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
		return nil, notFound.problem(noCopy)
	}
	slices.SortFunc(list, func(a, b *eventLog) int { return strings.Compare(a.Context, b.Context) })
	return list, nil
}

// copied returns the copy of a worker's log. It returns nil for a log of this machine.
func (l *eventLog) copied() *workerCopy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copy
}

// requireOwn returns an error for a copy, because the operation needs a log of this machine. The parameter "instead" is
// a sentence that tells the user a different way.
func (l *eventLog) requireOwn(instead *message.Text) error {
	if l.copied() == nil {
		return nil
	}
	return unfit.problem(copyOnly.With(l.Context, instead))
}

// pendingQuestion is an open question.
type pendingQuestion struct {
	interaction.Question
	// there is the question on the hub. It is nil for a question of a local log.
	there *hub.Question
}

// open returns the questions of the worker that are open on the hub.
func (c *workerCopy) open(ctx context.Context) (list []pendingQuestion, err error) {
	all, err := team.OpenQuestions(ctx, c.team, c.Worker)
	for _, q := range all {
		input := event.InputID(q.There.Input)
		received, _, err := c.Last(ctx, event.Query{Input: input, Types: []event.Type{event.MessageReceived}})
		if err != nil {
			return nil, err
		}
		q.Refs = event.Refs{Session: received.Session, Run: received.Run, Interaction: q.ID, Input: input}
		list = append(list, pendingQuestion{q.Question, &q.There})
	}
	return list, err
}

// pending returns the questions of a log that a live process waits for, oldest first.
func (l *eventLog) pending(ctx context.Context, log logReader) (list []pendingQuestion, err error) {
	if c := l.copied(); c != nil {
		return c.open(ctx)
	}
	open, err := record.PendingQuestions(ctx, log.(*store.Reader), l.paths.Locks)
	for _, q := range open {
		list = append(list, pendingQuestion{Question: q})
	}
	return list, err
}

// closed returns the answer or the reason that ended a question. It returns nil if the question is open.
func (l *eventLog) closed(ctx context.Context, log logReader, q pendingQuestion) (*interaction.TakenError, error) {
	switch c := l.copied(); {
	case q.there != nil:
		return nil, nil
	case c != nil:
		return c.closed(ctx, q.ID)
	}
	return interaction.Closed(ctx, log, q.ID)
}

// closed returns the answer or the reason that ended a question. The question is not open on the hub. closed asks the
// copy first and then the hub, because the copy may arrive later than the worker's message. It returns nil if neither
// knows an end.
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

// submitAnswer proposes an answer to the asking worker and waits for the reply. It acts as the member
// that this machine belongs to.
func (c *workerCopy) submitAnswer(ctx context.Context, q pendingQuestion, a interaction.Answer) error {
	if q.there == nil {
		end, err := c.closed(ctx, q.ID)
		switch {
		case err != nil:
			return err
		case end != nil:
			return end
		}
		return questionClosed.problem(hubHasNot)
	}
	if err := q.Check(a); err != nil {
		return err
	}
	err := c.team.Answer(ctx, *q.there, a)
	var uncounted *team.UncountedError
	switch {
	case errors.As(err, &uncounted):
		return questionClosed.problem(answerUncounted.With(uncounted))
	case errors.Is(err, team.ErrNoRight):
		return forbidden.wrap(err)
	case errors.Is(err, context.DeadlineExceeded):
		return logFailed.problem(mayCount.With(c.Worker))
	case err != nil:
		return logFailed.problem(hubFailed.With(err))
	}
	return nil
}

// cancelInput asks the worker to stop the run of an input.
func (c *workerCopy) cancelInput(ctx context.Context, input event.InputID, by string) error {
	_, err := c.team.Cancel(ctx, string(input), by, source)
	switch {
	case errors.Is(err, team.ErrNoRight):
		return forbidden.wrap(err)
	case err != nil:
		return logFailed.problem(hubFailed.With(err))
	}
	return nil
}
