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

// FindRecord, FindRun and FindSession return these errors.
var (
	ErrNotFound     = message.New("report.not-found", "nothing on the log has that number, id or name")
	ErrAmbiguousRef = message.New("report.ambiguous-ref", "more than one thing on the log matches")
)

// Found is the object that a reference names. Exactly one field is set. For a question, its run is set too.
type Found struct {
	Event    *event.Event
	Run      event.RunID
	Session  event.SessionID
	Question event.InteractionID
}

// FindRecord returns the object that ref names on the log. An event has a seq and an id. A run has an id, a unique
// beginning or end of it, and its input's id. A session has the same forms of its id, and a name. A question has an
// id, or a unique part of it. Runs come before sessions, because the ids of both often have the same beginning. The
// error is ErrNotFound or ErrAmbiguousRef.
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

// findEvent finds an event by its number or its whole id.
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
			return event.Event{}, false, err // the id of a run, a session or a question, which is indexed
		}
	}
	return log.Last(ctx, event.Query{ID: ref})
}

// FindRun returns the run that ref names. ref is an id, a unique beginning or end of an id, or the id of the run's
// input. The error is ErrNotFound or ErrAmbiguousRef.
func FindRun(ctx context.Context, log event.Reader, ref string) (event.RunID, error) {
	if ref == "" {
		return "", ErrNotFound
	}
	if e, ok, err := log.Last(ctx, event.Query{Run: event.RunID(ref), Class: event.Fact}); ok || err != nil {
		return e.Run, err
	}
	// The log has an index of intents by input and of outcomes by run. FindRun reads these first, because reading
	// all inputs takes long on a long log. Only the inputs show a run without an intent.
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
		// After a failure before the call, an input may have been tried again.
		return inputs.ids[len(inputs.ids)-1], nil
	}
	return parts.single(ref)
}

// FindSession returns the session that ref names, even a deleted one. ref is an id, a name, or a unique beginning
// or end of an id. The error is ErrNotFound or ErrAmbiguousRef.
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
			delete(names, e.Session) // the name is free again
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

// matches collects the different ids that a reference could mean.
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

// minShort is the minimum length of a part of an id. People see the last characters of an id, and shown is their
// number.
const (
	minShort = 4
	shown    = 8
)

// isShortFor reports whether ref is an id, or a sufficient part of it: of its beginning, of its end, or of the
// beginning of its shown characters.
func isShortFor(ref, id string) bool {
	if len(ref) < minShort {
		return false
	}
	return strings.HasPrefix(id, ref) || strings.HasSuffix(id, ref) || strings.HasPrefix(id[max(0, len(id)-shown):], ref)
}

// FindApproval returns these errors.
var (
	ErrNoApproval        = message.New("report.no-approval", "there is no such standing approval")
	ErrAmbiguousApproval = message.New("report.ambiguous-approval", "more than one standing approval matches")
)

// FindApproval returns the approval in the list that ref names. ref is an id, or a unique beginning or end of one.
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

// FindQuestion returns these errors.
var (
	ErrNoQuestion        = message.New("report.no-question", "there is no such question")
	ErrAmbiguousQuestion = message.New("report.ambiguous-question", "more than one question matches")
)

// FindQuestion returns the question that ref names, open or not. ref is an id, or a unique beginning or end of one.
// The error is ErrNoQuestion or ErrAmbiguousQuestion.
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
