package web

import (
	"fmt"
	"slices"
	"sync"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/policy"
)

// offers are what an agent lets a client choose in its session.
type offers struct {
	Model  string    `json:"model,omitempty"` // the present one
	Models []string  `json:"models"`
	Mode   string    `json:"mode,omitempty"`
	Modes  []modeOne `json:"modes"` // that may be chosen from outside, with the present one
}

type modeOne struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// newOffers leaves out the modes in which the agent asks less than it is made to.
func newOffers(o kernel.Offers) *offers {
	shown := &offers{Models: []string{}, Mode: o.Mode, Modes: []modeOne{}}
	if _, models, now := o.Models(); models != nil {
		shown.Model, shown.Models = now, models
	}
	for _, m := range o.Modes {
		one := modeOne{ID: string(m.Id), Name: m.Name}
		if m.Description != nil {
			one.Description = *m.Description
		}
		if one.ID == o.Mode || slices.Contains(o.Asking, one.ID) {
			shown.Modes = append(shown.Modes, one)
		}
	}
	return shown
}

// learned is what the agents of each project offered last: before one runs nothing says what it offers.
type learned struct {
	mu sync.Mutex
	of map[learnedKey]*offers
}

type learnedKey struct {
	at       place
	provider string
}

// learn remembers what the agent of a talk offers now.
func (s *Server) learn(at place, k *talk) {
	o, _, ok := k.conv.Offers()
	if !ok {
		return
	}
	shown := newOffers(o)
	s.learned.mu.Lock()
	s.learned.of[learnedKey{at, k.conv.Provider()}] = &offers{Models: shown.Models, Modes: shown.Modes}
	s.learned.mu.Unlock()
}

// offered is what the agent of a session offers: of one that runs what it says, else what the provider
// offered last; nil: it is not known.
func (s *Server) offered(key talkKey, provider string) *offers {
	s.talks.mu.Lock()
	k := s.talks.open[key]
	s.talks.mu.Unlock()
	if k != nil {
		if o, _, ok := k.conv.Offers(); ok {
			return newOffers(o)
		}
	}
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	return s.learned.of[learnedKey{key.at, provider}]
}

// choose puts the agent into the mode, and onto the model, that an input asks for. Where that cannot be
// done the input is not sent: its sender would get another answer than was asked for.
func (s *Server) choose(k *talk, in inputBodyJSON) error {
	if in.Model == "" && in.Mode == "" {
		return nil
	}
	if err := k.conv.Await(s.hard); err != nil {
		return unfit.is("the agent cannot be started, so nothing can be chosen and nothing was sent: " + err.Error())
	}
	o, _, ok := k.conv.Offers()
	if !ok {
		return unfit.is("the agent has just ended, so nothing can be chosen and nothing was sent")
	}
	if in.Mode != "" && in.Mode != o.Mode {
		for _, m := range o.Modes {
			if string(m.Id) == in.Mode && !slices.Contains(o.Asking, in.Mode) {
				return forbidden.is(fmt.Sprintf("in the mode %q the agent may ask less; from outside only modes can be chosen in which it asks, or does less", in.Mode))
			}
		}
		if err := k.conv.SetMode(s.hard, in.Mode); err != nil {
			return unfit.of(err)
		}
	}
	if _, _, now := o.Models(); in.Model != "" && in.Model != now {
		if err := k.conv.SetModel(s.hard, in.Model); err != nil {
			return unfit.of(err)
		}
	}
	return nil
}

// modesByStrictness are the modes, the strictest first.
var modesByStrictness = []policy.Mode{policy.ModeDeny, policy.ModeAsk, policy.ModeReads, policy.ModeAllow}

// tightened is the mode that an input asks for, which may be stricter than the project's, not looser.
func tightened(p *project.Project, asked string) (policy.Mode, error) {
	own := p.Mode()
	if asked == "" {
		return own, nil
	}
	i := slices.Index(modesByStrictness, policy.Mode(asked))
	switch {
	case i < 0:
		return "", badRequest.is("permissions must be deny, ask, reads or allow")
	case i > slices.Index(modesByStrictness, own):
		return "", forbidden.is(fmt.Sprintf("the project's permissions are %q; from outside they can only be stricter", own))
	}
	return policy.Mode(asked), nil
}
