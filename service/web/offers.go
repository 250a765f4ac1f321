package web

import (
	"slices"
	"sync"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/policy"
)

// offers holds the models and modes that an agent offers in its session.
type offers struct {
	Model  string   `json:"model,omitempty"` // the current one
	Models []string `json:"models"`
	Mode   string   `json:"mode,omitempty"`
	// Modes lists the modes that a client may choose, and the current one.
	Modes []modeOne `json:"modes"`
}

type modeOne struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// newOffers omits the modes in which the agent asks less than Perlica requires.
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

// learned holds the last offers of each project's agents. It is the only source before an agent
// runs.
type learned struct {
	mu sync.Mutex
	of map[learnedKey]*offers
}

type learnedKey struct {
	at       place
	provider string
}

// learnOffers stores the current offers of a live session's agent.
func (s *Server) learnOffers(at place, k *liveSession) {
	o, _, ok := k.conv.Offers()
	if !ok {
		return
	}
	shown := newOffers(o)
	s.learned.mu.Lock()
	s.learned.of[learnedKey{at, k.conv.Provider()}] = &offers{Models: shown.Models, Modes: shown.Modes}
	s.learned.mu.Unlock()
}

// offered returns the offers of a session's agent. If the agent is running, they come from the
// agent; otherwise they are the provider's last offers. nil means unknown.
func (s *Server) offered(key sessionKey, provider string) *offers {
	s.liveSessions.mu.Lock()
	k := s.liveSessions.open[key]
	s.liveSessions.mu.Unlock()
	if k != nil {
		if o, _, ok := k.conv.Offers(); ok {
			return newOffers(o)
		}
	}
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	return s.learned.of[learnedKey{key.at, provider}]
}

// chooseOffers sets the mode and the model that an input asks for. If that fails, the input is not sent:
// its sender would get the answer of another model or mode.
func (s *Server) chooseOffers(k *liveSession, in inputBodyJSON) error {
	if in.Model == "" && in.Mode == "" {
		return nil
	}
	if err := k.conv.Await(s.hard); err != nil {
		return unfit.problem(agentNotStarted.With(err))
	}
	o, _, ok := k.conv.Offers()
	if !ok {
		return unfit.problem(agentEnded)
	}
	if in.Mode != "" && in.Mode != o.Mode {
		for _, m := range o.Modes {
			if string(m.Id) == in.Mode && !slices.Contains(o.Asking, in.Mode) {
				return forbidden.problem(modeAsksLess.With(in.Mode))
			}
		}
		if err := k.conv.SetMode(s.hard, in.Mode); err != nil {
			return unfit.wrap(err)
		}
	}
	if _, _, now := o.Models(); in.Model != "" && in.Model != now {
		if err := k.conv.SetModel(s.hard, in.Model); err != nil {
			return unfit.wrap(err)
		}
	}
	return nil
}

// modesByStrictness lists the modes from the strictest to the loosest.
var modesByStrictness = []policy.Mode{policy.ModeDeny, policy.ModeAsk, policy.ModeReads, policy.ModeAllow}

// tightened returns the mode that an input asks for. It may be stricter than the project's mode but
// not looser.
func tightened(p *project.Project, asked string) (policy.Mode, error) {
	own := p.Mode()
	if asked == "" {
		return own, nil
	}
	i := slices.Index(modesByStrictness, policy.Mode(asked))
	switch {
	case i < 0:
		return "", badRequest.problem(badPermissions)
	case i > slices.Index(modesByStrictness, own):
		return "", forbidden.problem(laxPermissions.With(own))
	}
	return policy.Mode(asked), nil
}
