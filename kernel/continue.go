package kernel

import (
	"context"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// The strategies of a session.
const (
	strategyFresh = "fresh" // an agent session for each input
	strategyKeep  = "keep"  // one agent session lives on between inputs
)

// continuation is how an agent session came to know the earlier turns.
type continuation string

const (
	continuedAnew   continuation = ""       // by a transcript ahead of the first text, if there are any
	continuedResume continuation = "resume" // session/resume: the agent has them
	continuedLoad   continuation = "load"   // session/load: the agent repeated them, which is on record
)

// native reports whether the agent itself knows the earlier turns.
func (c continuation) native() bool { return c != continuedAnew }

// continueNatively continues the agent's own session, if that holds the latest turn and the
// agent offers it. What the agent refuses is tried in another way; only an agent that can be
// spoken to no more is an error.
func (s *agentSession) continueNatively(ctx context.Context) (bool, error) {
	id, err := s.r.keptConversation(ctx, s.setup.Session)
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
			return true, nil
		}
		if gone := s.conn.Err(); gone != nil || ctx.Err() != nil {
			return false, err
		}
		s.r.opt.Trail.Warn("the agent does not continue its session", "session", string(s.setup.Session), "way", string(way.how), "error", err.Error())
	}
	return false, nil
}

// AgentCommand returns the command line of the agent that a session's latest call went to, as
// it is on record, or nothing if there was none.
func (r *Runner) AgentCommand(ctx context.Context, id event.SessionID) ([]string, error) {
	last, ok, err := r.log.Last(ctx, event.Query{Session: id, Types: []event.Type{event.Requested}})
	if err != nil || !ok {
		return nil, err
	}
	f, err := fact.Decode[fact.Requested](last)
	if err != nil {
		return nil, nil // it was pruned, or is a later version's
	}
	return f.Agent, nil
}

// SessionOf returns the session in which one of the agent's own sessions was kept, or "" if there is
// none.
func (r *Runner) SessionOf(ctx context.Context, conversation string) (event.SessionID, error) {
	for e, err := range r.log.Events(ctx, event.Query{Types: []event.Type{event.SessionStarted}, Newest: true}) {
		if err != nil {
			return "", err
		}
		if string(e.Conversation) != conversation || e.Session == "" {
			continue
		}
		if f, err := fact.Decode[fact.SessionStarted](e); err == nil && f.Strategy == strategyKeep {
			return e.Session, nil
		}
	}
	return "", nil
}

// keptConversation returns the agent's own session that holds the latest turn of a session,
// or "" if none does: a turn of the fresh strategy had an agent session of its own.
func (r *Runner) keptConversation(ctx context.Context, id event.SessionID) (event.ConversationID, error) {
	last, ok, err := r.log.Last(ctx, event.Query{Session: id, Types: []event.Type{event.Requested}})
	if err != nil || !ok {
		return "", err
	}
	// What cannot be decoded any more was pruned, or is a later version's.
	if f, err := fact.Decode[fact.Requested](last); err == nil && f.Strategy != "" {
		if f.Strategy != strategyKeep {
			return "", nil
		}
		return last.Conversation, nil
	}
	// Earlier versions said it only where the agent's session began, which may be far back.
	q := event.Query{Session: id, Until: last.Seq, Types: []event.Type{event.SessionStarted}, Newest: true}
	for e, err := range r.log.Events(ctx, q) {
		if err != nil {
			return "", err
		}
		if e.Conversation != last.Conversation {
			continue
		}
		if f, err := fact.Decode[fact.SessionStarted](e); err != nil || f.Strategy != strategyKeep {
			return "", nil
		}
		return last.Conversation, nil
	}
	return "", nil
}
