package team

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
)

// Status returns the state of an input. ok is false if the input is unknown. An outcome without its owner's signature
// does not count, and neither does an opinion of a member without the right. The field Note says so.
func (t *Team) Status(ctx context.Context, id string) (s hub.Status, ok bool, err error) {
	s, ok, err = t.Hub.Status(ctx, id)
	if err != nil || !ok || t.stands(&s) {
		return s, ok, err
	}
	if err := t.Refresh(ctx); err != nil { // the signer may have joined a moment ago
		return s, ok, err
	}
	said := []hub.Status{s}
	if s.State == hub.Resolved {
		if said, err = t.Hub.Opinions(ctx, s); err != nil {
			return s, ok, err
		}
	}
	for _, s := range said {
		if t.stands(&s) {
			return s, ok, nil
		}
	}
	who := cmp.Or(s.By, s.Worker)
	s.Note = fmt.Sprintf("somebody wrote to the hub that it is %s, which %s did not sign", s.State, who)
	s.State, s.Result, s.By = hub.Claimed, nil, ""
	return s, ok, nil
}

// stands reports whether the state of an input comes from a member with the right.
func (t *Team) stands(s *hub.Status) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	by := func(name, text string) bool {
		return slices.ContainsFunc(t.had[name], func(key string) bool { return hub.VerifySignature(key, text, s.Signature) })
	}
	switch s.State {
	case hub.Waiting, hub.Queued, hub.Claimed, hub.Withdrawn, hub.Adopted, hub.Lost:
		return true
	case hub.Resolved:
		m := t.members[s.By]
		return (m.Gone || slices.Contains(m.Rights, access.Ask)) && by(s.By, hub.OpinionText(t.state.ID, s.ID, s.By, s.Note))
	}
	if !by(s.Worker, hub.OutcomeText(t.state.ID, s.ID, s.Worker, s.State, s.Digest)) {
		return false
	}
	if hub.Hash(s.Result) == s.Digest {
		return true
	}
	// The result was changed or pruned, so only its outcome is proven by the signature. The rest of the row is
	// replaced.
	r, err := ResultOf(*s)
	if err != nil || !r.Pruned {
		return false
	}
	s.Result, err = json.Marshal(streamjson.NewResult(record.Result{Input: event.InputID(s.ID),
		Outcome: record.Outcome(s.State), Pruned: true}, nil, ""))
	return err == nil
}

// ResultOf decodes the result of an input with an outcome.
func ResultOf(s hub.Status) (r streamjson.Result, err error) {
	err = json.Unmarshal(s.Result, &r)
	return r, err
}
