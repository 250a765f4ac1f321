package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// readHistory returns the earlier turns of a session, as record.ReadHistory does. The error wraps disk.ErrCorrupt if
// the log now has fewer inputs or answers of the session than the view of sessions has counted.
func (r *Runner) readHistory(ctx context.Context, s event.SessionID, before event.RunID,
	budget int) (record.History, error) {
	view, err := r.Sessions(ctx)
	if err != nil {
		return record.History{}, err
	}
	inputs, answers, err := view.Counts(ctx, s) // read before the log, which can only have more
	if err = errors.Join(err, view.Close()); err != nil {
		return record.History{}, err
	}
	h, err := record.ReadHistory(ctx, &r.log.Reader, s, before, budget)
	if err == nil && (h.Inputs < inputs || h.Answers < answers) {
		err = fmt.Errorf("%w: the session had %d inputs and %d answers, and the log gives %d and %d; perlica log verify",
			disk.ErrCorrupt, inputs, answers, h.Inputs, h.Answers)
	}
	return h, err
}

// These are the strategies of a session.
const (
	strategyFresh = "fresh" // one agent process for each input
	strategyKeep  = "keep"  // one agent process for all inputs
)

// continuation is the way in which an agent's session gets to know the earlier turns.
type continuation string

const (
	continuedAnew   continuation = ""       // a new session; a transcript of earlier turns goes before the first prompt
	continuedResume continuation = "resume" // session/resume: the agent knows the turns
	continuedLoad   continuation = "load"   // session/load: the agent knows the turns and has repeated them
)

// continueNatively continues the agent's own session if that session has the latest turn. It tries session/resume and
// then session/load, as far as the agent offers them. It returns an error only if the agent has ended or ctx is done.
func (s *agentSession) continueNatively(ctx context.Context) (bool, error) {
	id, err := s.r.latestConversation(ctx, s.setup.Session)
	if err != nil || id == "" {
		return false, err
	}
	can := s.info.AgentCapabilities
	for _, way := range []struct {
		how     continuation
		offered bool
		open    func(context.Context) (*provider.Session, error)
	}{
		{continuedResume, can.SessionCapabilities.Resume != nil, func(ctx context.Context) (*provider.Session, error) {
			return s.conn.ResumeSession(ctx, string(id), s.setup.Dir, s.setup.Servers)
		}},
		{continuedLoad, can.LoadSession, func(ctx context.Context) (*provider.Session, error) {
			return s.conn.LoadSession(ctx, string(id), s.setup.Dir, s.setup.Servers)
		}},
	} {
		if !way.offered {
			continue
		}
		session, err := way.open(ctx)
		if err == nil {
			s.session, s.how = session, way.how
			s.setConversation(session.ID)
			if way.how == continuedLoad {
				s.awaitSilence(ctx)
			}
			return true, nil
		}
		if gone := s.conn.Err(); gone != nil || ctx.Err() != nil {
			return false, err
		}
		s.r.opt.Trail.Warn("the agent does not continue its session", "session", string(s.setup.Session),
			"way", string(way.how), "error", err.Error())
	}
	return false, nil
}

// AgentCommand returns the agent's command line in the latest call of a session. It returns nil if the session has no
// call or if the call was pruned.
func (r *Runner) AgentCommand(ctx context.Context, id event.SessionID) ([]string, error) {
	last, ok, err := r.log.Last(ctx, event.Query{Session: id, Types: []event.Type{event.Requested}})
	if err != nil || !ok {
		return nil, err
	}
	f, err := fact.Decode[fact.Requested](last)
	if err != nil {
		return nil, nil // the payload was pruned
	}
	return f.Agent, nil
}

// SessionOf returns the Perlica session that the agent's session conversation belongs to, or "".
func (r *Runner) SessionOf(ctx context.Context, conversation string) (event.SessionID, error) {
	for e, err := range r.log.Events(ctx, event.Query{Types: []event.Type{event.SessionStarted}, Newest: true}) {
		if err != nil {
			return "", err
		}
		if string(e.Conversation) == conversation && e.Session != "" {
			return e.Session, nil
		}
	}
	return "", nil
}

// latestConversation returns the agent's own session in which the latest turn of a session ran, or "". If that turn had
// the fresh strategy, the agent's session has the earlier turns as a transcript.
func (r *Runner) latestConversation(ctx context.Context, id event.SessionID) (event.ConversationID, error) {
	last, _, err := r.log.Last(ctx, event.Query{Session: id, Types: []event.Type{event.Requested}})
	if err != nil {
		return "", err
	}
	answer, ok, err := r.log.Last(ctx, event.Query{Session: id, After: last.Seq, Types: []event.Type{event.Responded}})
	if ok && answer.Run != last.Run {
		err = fmt.Errorf("%w: the answer in event %d has no intent; perlica log verify", disk.ErrCorrupt, answer.Seq)
	}
	return last.Conversation, err
}
