package interaction

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func ids(options []Option) string {
	var list []string
	for _, o := range options {
		list = append(list, o.ID)
	}
	return strings.Join(list, " ")
}

// TestOrder checks the order of the kinds. Two options of the same kind stay in the agent's order.
func TestOrder(t *testing.T) {
	given := []Option{
		{ID: "never", Kind: "reject_always"}, {ID: "always", Kind: "allow_always"}, {ID: "odd",
			Kind: "sure"}, {ID: "no", Kind: "reject_once"},
		{ID: "once", Kind: "allow_once"}, {ID: "no2", Kind: "reject_once"}, {ID: "once2",
			Kind: "allow_once"}, {ID: "offer", Kind: "allow_once", Offer: true},
	}
	before := ids(given)
	if got := ids(Order(given)); got != "once once2 offer always odd no no2 never" {
		t.Errorf("the order is %s", got)
	}
	if ids(given) != before {
		t.Error("what was given was changed")
	}
}

// TestRefusable checks that every question has an option for no. An agent's option that means yes must never take the
// place of that option.
func TestRefusable(t *testing.T) {
	for name, given := range map[string][]Option{
		"none": nil, "always only": {{ID: "a", Kind: "allow_always"}}, "never only": {{ID: "n", Kind: "reject_always"}},
		"Perlica's id": {{ID: DenyID, Kind: "allow_once"}},
	} {
		q := Question{Options: Order(Refusable(given))}
		o, ok := q.Refusal()
		if !ok || o.ID != DenyID || o.Allows() || !o.Offer {
			t.Errorf("%s: the refusal is %+v", name, o)
		}
		if n := slices.IndexFunc(q.Options, func(o Option) bool { return o.ID == DenyID }); q.Options[n].Allows() {
			t.Errorf("%s: the id says yes, too", name)
		}
		if err := q.Check(Answer{Option: o.ID, By: "me"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	given := []Option{{ID: "n", Kind: "reject_once"}}
	if got := Refusable(given); !slices.Equal(got, given) {
		t.Errorf("%+v", got)
	}
}

// TestForGood checks that a yes for good, or an option of an unknown kind, needs a confirmation.
func TestForGood(t *testing.T) {
	for kind, want := range map[string]error{
		"allow_once": nil, "reject_once": nil, "reject_always": nil, "allow_always": ErrAlways, "allow": ErrAlways,
		"": ErrAlways,
	} {
		q := Question{Options: []Option{{ID: "x", Label: "Reject", Kind: kind}}}
		if err := q.Check(Answer{Option: "x", By: "me"}); !errors.Is(err, want) {
			t.Errorf("%q: %v", kind, err)
		}
		if err := q.Check(Answer{Option: "x", By: "me", Always: true}); err != nil {
			t.Errorf("%q, confirmed: %v", kind, err)
		}
	}
}

// TestRefusal checks that Refusal returns Perlica's own option if no option of the agent is a refusal.
func TestRefusal(t *testing.T) {
	own := Option{ID: "no", Kind: "reject_once"}
	offer := Option{ID: DenyID, Kind: "reject_once", Offer: true}
	yes := Option{ID: "yes", Kind: "allow_once"}
	for want, options := range map[string][]Option{"no": {yes, offer, own}, DenyID: {yes, offer}, "": {yes}} {
		if o, ok := (Question{Options: options}).Refusal(); o.ID != want || ok != (want != "") {
			t.Errorf("%+v: %q", options, o.ID)
		}
	}
}
