package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
)

// These are the errors of FindRecord, FindRun and FindSession.
var (
	ErrNotFound     = message.New("report.not-found", "nothing on the log has that number, id or name")
	ErrAmbiguousRef = message.New("report.ambiguous-ref", "more than one thing on the log matches")
)

// Found is the object that a reference names. Exactly one field is set, except that a question also has its Run.
type Found struct {
	Event    *event.Event
	Run      event.RunID
	Session  event.SessionID
	Question event.InteractionID
}

// FindRecord returns the object on the log that ref names. ref may be an event's number or id. For a run it may be the
// id, a unique beginning or end of the id, or the input's id. For a session it may also be the name. For a question it
// may be the id or a unique part of it. FindRecord tries runs before sessions, because the ids of both often begin
// alike. The error is ErrNotFound or ErrAmbiguousRef.
func FindRecord(ctx context.Context, log event.Reader, ref string) (Found, error) {
	if e, ok, err := findEvent(ctx, log, ref); ok || err != nil {
		return Found{Event: &e}, err
	}
	run, err := FindRun(ctx, log, ref)
	if !errors.Is(err, ErrNotFound) {
		return Found{Run: run}, err
	}
	session, err := FindSession(ctx, log, ref)
	if !errors.Is(err, ErrNotFound) {
		return Found{Session: session}, err
	}
	q, qerr := FindQuestion(ctx, log, ref)
	switch {
	case errors.Is(qerr, ErrNoQuestion):
		return Found{}, err
	case errors.Is(qerr, ErrAmbiguousQuestion):
		return Found{}, fmt.Errorf("%w: %s", ErrAmbiguousRef, ref)
	}
	return Found{Run: q.Refs.Run, Question: q.ID}, qerr
}

// findEvent returns the event with this number or this whole id.
func findEvent(ctx context.Context, log event.Reader, ref string) (event.Event, bool, error) {
	if n, err := strconv.ParseInt(ref, 10, 64); err == nil && n > 0 && ref[0] != '0' && ref[0] != '+' {
		return log.Last(ctx, event.Query{After: event.Seq(n - 1), Until: event.Seq(n)})
	}
	if len(ref) != len("00000000-0000-0000-0000-000000000000") {
		return event.Event{}, false, nil
	}
	for _, q := range []event.Query{{Run: event.RunID(ref)}, {Session: event.SessionID(ref)}} {
		q.Class = event.Fact
		if _, ok, err := log.Last(ctx, q); ok || err != nil {
			return event.Event{}, false, err // ref is the id of a run or a session, which the log finds quickly
		}
	}
	return log.Last(ctx, event.Query{ID: ref})
}

// FindRun returns the run that ref names. ref may be the run's id, a unique beginning or end of that id, or the id of
// the run's input. The error is ErrNotFound or ErrAmbiguousRef.
func FindRun(ctx context.Context, log event.Reader, ref string) (event.RunID, error) {
	if ref == "" {
		return "", ErrNotFound
	}
	if e, ok, err := log.Last(ctx, event.Query{Run: event.RunID(ref), Class: event.Fact}); ok || err != nil {
		return e.Run, err
	}
	// The log has an index of intents by input and of outcomes by run. FindRun uses these first, because reading all
	// inputs takes long on a large log. But a run without an intent has only its input.
	intent := event.Query{Types: []event.Type{event.Requested}, Input: event.InputID(ref)}
	if e, ok, err := log.Last(ctx, intent); ok || err != nil {
		return e.Run, err
	}
	if indexed, ok := log.(interface {
		FindRuns(ctx context.Context, part string) ([]event.RunID, error)
	}); ok && len(ref) >= minShort {
		found, err := indexed.FindRuns(ctx, ref)
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return matches[event.RunID]{found}.single(ref)
		}
	}
	inputs, parts := matches[event.RunID]{}, matches[event.RunID]{}
	for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.MessageReceived}}) {
		if err != nil {
			return "", err
		}
		inputs.addID(e.Run, string(e.Input) == ref)
		parts.addID(e.Run, isShortFor(ref, string(e.Run)))
	}
	if len(inputs.ids) > 0 {
		// An input may have several runs, because it may be given again after a failure before the call. The newest run
		// is meant.
		return inputs.ids[len(inputs.ids)-1], nil
	}
	return parts.single(ref)
}

// FindSession returns the session that ref names, even a deleted one. ref may be the id, the name, or a unique
// beginning or end of the id. The error is ErrNotFound or ErrAmbiguousRef.
func FindSession(ctx context.Context, log event.Reader, ref string) (event.SessionID, error) {
	if ref == "" {
		return "", ErrNotFound
	}
	if e, ok, err := log.Last(ctx, event.Query{Session: event.SessionID(ref), Class: event.Fact}); ok || err != nil {
		return e.Session, err
	}
	names := map[event.SessionID]string{}
	parts := matches[event.SessionID]{}
	types := []event.Type{event.SessionCreated, event.SessionRenamed, event.SessionDeleted}
	for e, err := range log.Events(ctx, event.Query{Types: types}) {
		if err != nil {
			return "", err
		}
		parts.addID(e.Session, isShortFor(ref, string(e.Session)))
		switch e.Type {
		case event.SessionDeleted:
			delete(names, e.Session) // another session may use the name now
		default:
			if f, err := fact.Decode[fact.SessionRenamed](e); err == nil && f.Name != "" {
				names[e.Session] = f.Name
			}
		}
	}
	for id, name := range names {
		if name == ref {
			return id, nil
		}
	}
	return parts.single(ref)
}

// matches collects the ids that a reference could mean.
type matches[T ~string] struct{ ids []T }

func (m *matches[T]) addID(id T, ok bool) {
	if ok && (len(m.ids) == 0 || m.ids[len(m.ids)-1] != id) {
		m.ids = append(m.ids, id)
	}
}

func (m matches[T]) single(ref string) (id T, err error) {
	for _, other := range m.ids {
		if other != m.ids[0] {
			return "", fmt.Errorf("%w: %s", ErrAmbiguousRef, ref)
		}
	}
	if len(m.ids) == 0 {
		return "", fmt.Errorf("%w: %s", ErrNotFound, ref)
	}
	return m.ids[0], nil
}

// minShort is the minimum length of a part of an id. shown is the number of last characters of an id that lists show.
const (
	minShort = 4
	shown    = 8
)

// isShortFor reports whether a person may write ref instead of the id. ref must be the beginning or the end of the id,
// or the beginning of the characters that lists show.
func isShortFor(ref, id string) bool {
	if len(ref) < minShort {
		return false
	}
	return strings.HasPrefix(id, ref) || strings.HasSuffix(id, ref) || strings.HasPrefix(id[max(0, len(id)-shown):], ref)
}

// These are the errors of FindApproval.
var (
	ErrNoApproval        = message.New("report.no-approval", "there is no such standing approval")
	ErrAmbiguousApproval = message.New("report.ambiguous-approval", "more than one standing approval matches")
)

// FindApproval returns the approval in the list that ref names. ref may be the id, or a unique beginning or end of it.
func FindApproval(list []policy.Approval, ref string) (policy.Approval, error) {
	if i := slices.IndexFunc(list, func(a policy.Approval) bool { return a.ID == ref }); i >= 0 {
		return list[i], nil
	}
	found := slices.DeleteFunc(slices.Clone(list), func(a policy.Approval) bool { return !isShortFor(ref, a.ID) })
	switch len(found) {
	case 0:
		return policy.Approval{}, fmt.Errorf("%w: %s", ErrNoApproval, ref)
	case 1:
		return found[0], nil
	}
	return policy.Approval{}, fmt.Errorf("%w: %s", ErrAmbiguousApproval, ref)
}

// These are the errors of FindQuestion.
var (
	ErrNoQuestion        = message.New("report.no-question", "there is no such question")
	ErrAmbiguousQuestion = message.New("report.ambiguous-question", "more than one question matches")
)

// FindQuestion returns the question that ref names, open or closed. ref may be the id, or a unique beginning or end of
// it. The error is ErrNoQuestion or ErrAmbiguousQuestion.
func FindQuestion(ctx context.Context, log event.Reader, ref string) (interaction.Question, error) {
	q, err := interaction.Find(ctx, log, event.InteractionID(ref))
	if ref != "" && err == nil {
		return q, nil
	}
	var found event.InteractionID
	for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.InteractionRequested}}) {
		switch {
		case err != nil:
			return interaction.Question{}, err
		case !isShortFor(ref, string(e.Interaction)):
		case found != "" && found != e.Interaction:
			return interaction.Question{}, fmt.Errorf("%w: %s", ErrAmbiguousQuestion, ref)
		default:
			found = e.Interaction
		}
	}
	if found == "" {
		return interaction.Question{}, fmt.Errorf("%w: %s", ErrNoQuestion, ref)
	}
	return interaction.Find(ctx, log, found)
}
