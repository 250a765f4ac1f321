package interaction

import (
	"slices"
	"sort"

	"github.com/perlica/perlica/eventlog/message"
)

// Option is one of the possible answers to a question.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Kind is ACP's kind: allow_once, allow_always, reject_once or reject_always. It is "answer" if the question asks
	// for a value and not for a permission.
	Kind string `json:"kind"`
	// Offer means that Perlica added this answer to the agent's options.
	Offer bool `json:"offer,omitempty"`
	// Code is the code of the label. It is empty if the label has the agent's own words.
	Code message.Code `json:"code,omitempty"`
	// Text means that the person types a text with this option. The question's Input has the conditions on the text.
	Text bool `json:"text,omitempty"`
}

// Allows reports whether the option is a yes. An unknown kind counts as a yes, so that every check of a yes also
// applies to unknown kinds.
func (o Option) Allows() bool { return o.Kind != "reject_once" && o.Kind != "reject_always" }

// Always reports whether the option is a yes for good: the agent need not ask again. This includes unknown kinds.
func (o Option) Always() bool { return o.Allows() && o.Kind != "allow_once" && o.Kind != "answer" }

// DenyID is the id of the option that [Refusable] adds.
const DenyID = "perlica:deny"

// Refusable returns the options and makes sure that one of them says no once. If the agent offers no such option,
// Perlica adds its own. With that option, the agent is told that its request was cancelled. If an agent's option has
// the id of Perlica's option, Refusable removes it. Otherwise a yes of the agent could be mistaken for a no.
func Refusable(options []Option) []Option {
	options = slices.DeleteFunc(slices.Clone(options), func(o Option) bool { return o.ID == DenyID })
	if slices.ContainsFunc(options, func(o Option) bool { return o.Kind == "reject_once" }) {
		return options
	}
	return append(options, NewOffer(DenyID, labelDeny, "reject_once"))
}

var labelDeny = message.New("interaction.label-deny", "no: the agent is told that its request was cancelled")

// NewOffer returns an option that Perlica adds.
func NewOffer(id string, label *message.Text, kind string) Option {
	return Option{ID: id, Label: label.Text, Code: label.Code, Kind: kind, Offer: true}
}

// Order sorts the options in the same way for every front end: yes once, Perlica's offers, yes for good, no once, no
// for good. A key thus has the same meaning for every agent. Call Order before the question is recorded.
func Order(options []Option) []Option {
	ordered := slices.Clone(options)
	sort.SliceStable(ordered, func(i, j int) bool { return ordered[i].rank() < ordered[j].rank() })
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

// First returns the first option of the agent with this kind.
func (q Question) First(kind string) (Option, bool) {
	for _, o := range q.Options {
		if o.Kind == kind && !o.Offer {
			return o, true
		}
	}
	return Option{}, false
}

// Refusal returns the option that says no once. That is the agent's own option, or Perlica's option if the agent
// offers none. If [Refusable] was not called for the question, there may be no such option.
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
