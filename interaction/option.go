package interaction

import (
	"cmp"
	"slices"
)

// Option is one of the answers to choose from.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Kind is ACP's: allow_once, allow_always, reject_once, reject_always; or "answer", where a value is
	// asked for and not a permission.
	Kind string `json:"kind"`
	// Offer marks an answer that Perlica offers beside the agent's own.
	Offer bool `json:"offer,omitempty"`
	// Text says that the answer takes a text, for which the question's Input holds.
	Text bool `json:"text,omitempty"`
}

// Allows reports whether choosing the option says yes. A kind that is neither a known yes
// nor a known no counts as a yes: anyone who guards yeses must guard it, too.
func (o Option) Allows() bool { return o.Kind != "reject_once" && o.Kind != "reject_always" }

// Always reports whether choosing the option says yes for good: the agent is not held to ask
// again. A kind that is neither a known yes nor a known no may be that.
func (o Option) Always() bool { return o.Allows() && o.Kind != "allow_once" && o.Kind != "answer" }

// DenyID is the id of the option that [Refusable] adds.
const DenyID = "perlica:deny"

// Refusable returns the options with one that rejects once among them: where the agent offers
// none it is Perlica's own, and the agent is answered that the request was cancelled. An option
// of the agent's that has the id of Perlica's is left out: it would be taken for a no.
func Refusable(options []Option) []Option {
	options = slices.DeleteFunc(slices.Clone(options), func(o Option) bool { return o.ID == DenyID })
	if slices.ContainsFunc(options, func(o Option) bool { return o.Kind == "reject_once" }) {
		return options
	}
	deny := Option{ID: DenyID, Label: "no: the agent is told that its request was cancelled", Kind: "reject_once", Offer: true}
	return append(options, deny)
}

// Order returns the options in the order in which every front end shows and counts them: yes
// once, Perlica's offers, yes for good, no once, no for good. So the first key means the same
// whatever the agent's own order is. Call it before the question is recorded.
func Order(options []Option) []Option {
	ordered := slices.Clone(options)
	slices.SortStableFunc(ordered, func(a, b Option) int { return cmp.Compare(a.rank(), b.rank()) })
	return ordered
}

func (o Option) rank() int {
	switch {
	case o.Kind == "reject_once":
		return 3
	case o.Kind == "reject_always":
		return 4
	case o.Always():
		return 2
	case o.Offer:
		return 1
	}
	return 0
}

// First returns the first option of an ACP kind that is the agent's own.
func (q Question) First(kind string) (Option, bool) {
	for _, o := range q.Options {
		if o.Kind == kind && !o.Offer {
			return o, true
		}
	}
	return Option{}, false
}

// Refusal returns the option that says no once: the agent's own, else Perlica's. Questions of
// before [Refusable] may have none.
func (q Question) Refusal() (Option, bool) {
	if o, ok := q.First("reject_once"); ok {
		return o, true
	}
	i := slices.IndexFunc(q.Options, func(o Option) bool { return o.Kind == "reject_once" })
	if i < 0 {
		return Option{}, false
	}
	return q.Options[i], true
}
