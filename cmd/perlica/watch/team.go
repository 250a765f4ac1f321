package watch

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// watchTeam follows a session on the copy of a worker's log.
func (a *app) watchTeam(ctx context.Context, args []string, turns int, thoughts bool) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	return untilStopped(ctx, func(ctx context.Context) error {
		return team.Use(ctx, p, a.Version, func(t *team.Team) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			s, l, err := t.FindSession(ctx, name, "", a.Note)
			if err != nil {
				return err
			}
			return a.followSession(ctx, s, l.Worker, thoughts, func(ctx context.Context) iter.Seq2[record.Notice, error] {
				return record.Follow(ctx, retryingReader{l, a.Note, new(bool)}, "", s.ID, turns)
			})
		})
	})
}

// retryingReader reads a copy of a log on the hub. When the connection to the hub breaks, it tells the user once and
// reads again.
type retryingReader struct {
	*hub.CopyReader
	note func(string)
	away *bool
}

// waitAndRetry waits after an error of the hub. It reports whether the caller should read again.
func (p retryingReader) waitAndRetry(ctx context.Context, err error) bool {
	var version *hub.VersionError
	if err == nil || ctx.Err() != nil || errors.Is(err, hub.ErrEdited) || errors.Is(err, hub.ErrNotAllowed) ||
		errors.Is(err, hub.ErrNoTeam) || errors.As(err, &version) {
		if err == nil && *p.away {
			*p.away = false
			p.note("the hub answers again")
		}
		return false
	}
	if !*p.away {
		*p.away = true
		p.note("the hub does not answer, and this waits: " + err.Error())
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	return true
}

// Last returns the newest event that the query selects. It reads again after an error of the hub.
func (p retryingReader) Last(ctx context.Context, q event.Query) (e event.Event, ok bool, err error) {
	for again := true; again; again = p.waitAndRetry(ctx, err) {
		e, ok, err = p.CopyReader.Last(ctx, q)
	}
	return e, ok, err
}

// Events returns each event that the query selects once. After an error of the hub it continues after the last
// event.
func (p retryingReader) Events(ctx context.Context, q event.Query) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for {
			var failed error
			for e, err := range p.CopyReader.Events(ctx, q) {
				if failed = err; err != nil {
					break
				}
				if !yield(e, nil) {
					return
				}
				if q.Newest {
					q.Until = e.Seq - 1
				} else {
					q.After = e.Seq
				}
				if q.Limit > 0 {
					if q.Limit--; q.Limit == 0 {
						return
					}
				}
			}
			if !p.waitAndRetry(ctx, failed) {
				if failed != nil {
					yield(event.Event{}, failed)
				}
				return
			}
		}
	}
}
