package interaction

import (
	"cmp"
	"slices"

	"github.com/perlica/perlica/eventlog/message"
)

// Option is one of the possible answers to a question.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Kind is ACP's kind: allow_once, allow_always, reject_once or reject_always. It is "answer" if the question asks
	// for a value instead of a permission.
	Kind string `json:"kind"`
	// Offer marks an answer that Perlica adds to the agent's options.
	Offer bool `json:"offer,omitempty"`
	// Code is the code of the label. It is empty for the agent's own words.
	Code message.Code `json:"code,omitempty"`
	// Text says that the answer takes a text. The question's Input describes the text.
	Text bool `json:"text,omitempty"`
}

// Allows reports whether the option says yes. An unknown kind counts as a yes, so each check of a yes must cover
// unknown kinds, too.
func (o Option) Allows() bool { return o.Kind != "reject_once" && o.Kind != "reject_always" }

// Always reports whether the option says yes for good: the agent need not ask again. An unknown kind may do that.
func (o Option) Always() bool { return o.Allows() && o.Kind != "allow_once" && o.Kind != "answer" }

// DenyID is the id of the option that [Refusable] adds.
const DenyID = "perlica:deny"

// Refusable returns the options and makes sure that one of them rejects once. If the agent offers none, Perlica adds
// its own, which answers the agent that the request was cancelled. Refusable drops an agent's option with the id of
// Perlica's option, because that option would be mistaken for a no.
func Refusable(options []Option) []Option {
	options = slices.DeleteFunc(slices.Clone(options), func(o Option) bool { return o.ID == DenyID })
	if slices.ContainsFunc(options, func(o Option) bool { return o.Kind == "reject_once" }) {
		return options
	}
	return append(options, NewOffer(DenyID, labelDeny, "reject_once"))
}

var labelDeny = message.New("interaction.label-deny", "no: the agent is told that its request was cancelled")

// NewOffer returns an answer that Perlica adds.
func NewOffer(id string, label *message.Text, kind string) Option {
	return Option{ID: id, Label: label.Text, Code: label.Code, Kind: kind, Offer: true}
}

// Order sorts the options for every front end: yes once, Perlica's offers, yes for good, no once, no for good. The
// first key thus has the same meaning for every agent. Call Order before the question is recorded.
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

// First returns the agent's first option of an ACP kind.
func (q Question) First(kind string) (Option, bool) {
	for _, o := range q.Options {
		if o.Kind == kind && !o.Offer {
			return o, true
		}
	}
	return Option{}, false
}

// Refusal returns the option that says no once: the agent's own option, or Perlica's if the agent offers none. A
// question that did not pass through [Refusable] may have none.
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
