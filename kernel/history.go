package kernel

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// A turnText is one earlier turn of a session: its input and its answer.
type turnText struct{ input, answer string }

// history is the part of a session's earlier turns that goes into a prompt.
type history struct {
	turns   []turnText // oldest first
	tools   []string   // the ids of the answers' tool calls
	dropped int        // older turns that did not fit
	gone    int        // turns whose payloads were pruned
	tokens  int        // an estimate for turns
}

// history reads the answered turns of a session before the run, newest first, and keeps them until the budget of
// tokens is used up. It counts the other turns, and the caller reports them. The same log gives the same cut. A turn
// with a pruned text is left out, too. The error wraps disk.ErrCorrupt if the session had more inputs or answers
// than the log selects now.
func (r *Runner) history(ctx context.Context, s event.SessionID, before event.RunID, budget int) (history, error) {
	var h history
	hadInputs, hadAnswers, err := r.counts(ctx, s) // before the events are read: the log has at least these
	if err != nil {
		return h, err
	}
	inputs, answered, full := 0, 0, false
	answers := map[event.RunID]string{}
	q := event.Query{Session: s, Types: []event.Type{event.MessageReceived, event.Responded}, Newest: true}
	for e, err := range r.log.Events(ctx, q) {
		if err != nil {
			return h, err
		}
		if e.Type == event.Responded {
			answered++
		} else {
			inputs++
		}
		if e.Run == before || full {
			continue
		}
		if e.Payload == nil {
			if _, ok := answers[e.Run]; ok || e.Type == event.Responded {
				h.gone++
			}
			delete(answers, e.Run)
			continue
		}
		if e.Type == event.Responded {
			a, err := fact.Decode[fact.Responded](e)
			if err != nil {
				return h, err
			}
			answers[e.Run] = a.Text
			h.tools = append(h.tools, toolIDs(a)...)
			continue
		}
		answer, ok := answers[e.Run]
		if !ok {
			continue // the turn has no answer
		}
		m, err := fact.Decode[fact.MessageReceived](e)
		if err != nil {
			return h, err
		}
		t := turnText{pastInput(m), answer}
		if full = h.tokens+t.tokens() > budget; full {
			continue
		}
		h.tokens += t.tokens()
		h.turns = append(h.turns, t)
	}
	if inputs < hadInputs || answered < hadAnswers {
		return h, fmt.Errorf("%w: the session had %d inputs and %d answers, and the log gives %d and %d; perlica log verify",
			disk.ErrCorrupt, hadInputs, hadAnswers, inputs, answered)
	}
	h.dropped = answered - len(h.turns) - h.gone
	slices.Reverse(h.turns)
	return h, nil
}

// counts returns how many inputs and answers of a session the view of the sessions has counted.
func (r *Runner) counts(ctx context.Context, s event.SessionID) (inputs, answers int, err error) {
	view, err := r.Sessions(ctx)
	if err != nil {
		return 0, 0, err
	}
	inputs, answers, err = view.Counts(ctx, s)
	return inputs, answers, errors.Join(err, view.Close())
}

// pastInput returns the input for the transcript. It only names the attachments.
func pastInput(m fact.MessageReceived) string {
	text := m.Text
	for _, path := range m.Attachments {
		text += "\n[attached then, not repeated: " + filepath.Base(path) + "]"
	}
	return text
}

func (t turnText) tokens() int { return estimateTokens(t.input) + estimateTokens(t.answer) + 8 }

// estimateTokens estimates the number of tokens of a text: one for four bytes of ASCII, and one for every
// other rune. For prose the estimate is too high rather than too low.
func estimateTokens(s string) int {
	ascii, other := 0, 0
	for _, r := range s {
		if r < 0x80 {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+3)/4 + other
}

// transcript returns the history as a text that precedes an input.
func (h history) transcript() string {
	if len(h.turns) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("This conversation has earlier turns. They are repeated here because this is a new process; do not answer them again.\n")
	if h.dropped > 0 {
		b.WriteString("Older turns were left out.\n")
	}
	if h.gone > 0 {
		b.WriteString("Some turns are no longer on record.\n")
	}
	for _, t := range h.turns {
		b.WriteString("\nUser:\n" + quoted(t.input) + "\nAgent:\n" + quoted(t.answer))
	}
	b.WriteString("\nThe message to answer now follows.\n")
	return b.String()
}

// quoted marks every line as earlier words, so that the agent takes none of them as an instruction.
func quoted(text string) string {
	return "> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ") + "\n"
}

// The strategies of a session.
const (
	strategyFresh = "fresh" // an agent process for each input
	strategyKeep  = "keep"  // one process stays alive between inputs
)

// continuation is the way in which an agent session knows the earlier turns.
type continuation string

const (
	continuedAnew   continuation = ""       // by a transcript before the first text, if there are earlier turns
	continuedResume continuation = "resume" // session/resume: the agent has them
	continuedLoad   continuation = "load"   // session/load: the agent repeated them, which is on record
)

// continueNatively continues the agent's own session if it holds the latest turn and the agent offers that.
// After a refusal it tries the next way. The error says that the agent is gone, or that ctx ended.
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

// AgentCommand returns the recorded command line of the agent in a session's latest call, or nil without a
// call.
func (r *Runner) AgentCommand(ctx context.Context, id event.SessionID) ([]string, error) {
	last, ok, err := r.log.Last(ctx, event.Query{Session: id, Types: []event.Type{event.Requested}})
	if err != nil || !ok {
		return nil, err
	}
	f, err := fact.Decode[fact.Requested](last)
	if err != nil {
		return nil, nil // it was pruned or comes from a later version
	}
	return f.Agent, nil
}

// SessionOf returns the Perlica session of one of the agent's own sessions, or "".
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

// latestConversation returns the agent's own session that holds the latest turn of a session, or "". After a
// turn of the fresh strategy it also holds the earlier turns, in a transcript.
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
