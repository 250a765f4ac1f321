package team

import (
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/proposal"
)

// Confirm makes a member of who asks to join under the name, if the key is the one that is asked for.
func (t *Team) Confirm(ctx context.Context, name, key string, rights []string) error {
	if _, err := t.may(t.As, Admin); err != nil {
		return err
	}
	asked, err := t.Hub.Requests(ctx)
	if err != nil {
		return err
	}
	for _, r := range asked {
		if r.Name == name && r.Key == key {
			m, _ := t.member(name)
			return errors.Join(t.declare(ctx, proposal.Member{Name: name, Version: m.Version + 1, Key: key, Rights: rights, Login: r.Login}, t.As), t.Refresh(ctx))
		}
	}
	return fmt.Errorf("nobody asks to join as %s with that key", name)
}

// Leave ends a membership: this machine's own, or with the right of an admin another one.
func (t *Team) Leave(ctx context.Context, name string) error {
	m, ok := t.member(name)
	if _, err := t.may(t.As, Admin); err != nil {
		return err
	}
	if !ok || m.Gone {
		return fmt.Errorf("%s is no member of the team", name)
	}
	return errors.Join(t.declare(ctx, proposal.Member{Name: name, Version: m.Version + 1, Key: m.Key, Rights: []string{}, Gone: true, Login: m.Login}, t.As), t.Refresh(ctx))
}

// Adopt begins a new generation on the server that is there now: see hub.Adopt.
func (t *Team) Adopt(ctx context.Context, even bool) (done hub.Adoption, err error) {
	if _, err := t.may(t.As, Admin); err != nil {
		return done, err
	}
	if done, err = t.Hub.Adopt(ctx, randomName(), t.As, even); err != nil {
		return done, err
	}
	return done, t.Refresh(ctx)
}
