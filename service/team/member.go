package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
)

// Confirm makes the machine that requested this name a member, if the request has this key.
func (t *Team) Confirm(ctx context.Context, name, key string, rights access.Rights) error {
	if _, err := t.may(t.As, access.Admin); err != nil {
		return err
	}
	asked, err := t.Hub.Requests(ctx)
	if err != nil {
		return err
	}
	for _, r := range asked {
		if r.Name == name && r.Key == key {
			return errors.Join(t.declareMember(ctx, hub.Member{Name: name, Key: key, Rights: rights, Login: r.Login}, t.As),
				t.Refresh(ctx))
		}
	}
	return fmt.Errorf("nobody asks to join as %s with that key", name)
}

// Leave ends the membership with this name. This machine must be an admin, also to end its own membership.
func (t *Team) Leave(ctx context.Context, name string) error {
	m, ok := t.member(name)
	if _, err := t.may(t.As, access.Admin); err != nil {
		return err
	}
	if !ok || m.Gone {
		return fmt.Errorf("%s is no member of the team", name)
	}
	left := hub.Member{Name: name, Key: m.Key, Rights: access.Rights{}, Gone: true, Login: m.Login}
	return errors.Join(t.declareMember(ctx, left, t.As), t.Refresh(ctx))
}

// Adopt begins a new generation on the current server; see hub.Adopt.
func (t *Team) Adopt(ctx context.Context, even bool) (done hub.Adoption, err error) {
	if _, err := t.may(t.As, access.Admin); err != nil {
		return done, err
	}
	if done, err = t.Hub.Adopt(ctx, randomName(), t.As, even); err != nil {
		return done, err
	}
	return done, t.Refresh(ctx)
}

func pin(m hub.Member) fact.TeamMember {
	return fact.TeamMember{Name: m.Name, Version: m.Version, Key: m.Key, Rights: m.Rights, Gone: m.Gone, Login: m.Login,
		Signer: m.Signer, Signature: m.Signature}
}

func stated(m fact.TeamMember) hub.Member {
	return hub.Member{Name: m.Name, Version: m.Version, Key: m.Key, Rights: m.Rights, Gone: m.Gone, Login: m.Login,
		Signer: m.Signer, Signature: m.Signature}
}

// readPinned reads the members that the log has pinned.
func (t *Team) readPinned(ctx context.Context) error {
	for e, err := range t.Log().Events(ctx, event.Query{Types: []event.Type{event.TeamMember}}) {
		if err != nil {
			return err
		}
		var m fact.TeamMember
		if err := e.Decode(&m); err != nil {
			return err
		}
		t.addMember(m)
	}
	return nil
}

// addMember adds a pinned statement. The caller holds mu or is the only user.
func (t *Team) addMember(m fact.TeamMember) {
	t.members[m.Name] = m
	if !slices.Contains(t.had[m.Name], m.Key) {
		t.had[m.Name] = append(t.had[m.Name], m.Key)
	}
}

// Refresh reads the members from the hub. It pins the statements that are newer than the known ones
// and signed by an admin. An unsigned statement does not count.
func (t *Team) Refresh(ctx context.Context) error {
	state, err := t.Hub.Look(ctx)
	if err != nil {
		return err
	}
	list, err := t.Hub.Members(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if state.ID != t.state.ID {
		return errOtherTeam
	}
	t.state = state
	for found := true; found; { // one statement may make the signer of another an admin
		found = false
		for _, m := range list {
			if m := pin(m); m.Version > t.members[m.Name].Version && hub.CheckName(m.Name) == nil && t.signed(m) {
				if _, err := t.Log().Append(ctx, event.NewFact(event.TeamMember, "perlica", event.Refs{}, m)); err != nil {
					return err
				}
				t.addMember(m)
				found = true
			}
		}
	}
	return nil
}

// refreshMembership calls Refresh. It returns errGone if this machine is no longer a member,
// because the hub then shows it nothing.
func (t *Team) refreshMembership(ctx context.Context) error {
	err := t.Refresh(ctx)
	if me, _ := t.member(t.As); err == nil && me.Gone {
		return errGone
	}
	return err
}

// signed reports whether an admin made the statement. The caller holds mu.
func (t *Team) signed(m fact.TeamMember) bool {
	text := stated(m).Text(t.state.ID)
	if m.Signer == "" {
		return hub.VerifySignature(t.state.Admin, text, m.Signature)
	}
	admin, ok := t.members[m.Signer]
	return ok && !admin.Gone && slices.Contains(admin.Rights, access.Admin) &&
		hub.VerifySignature(admin.Key, text, m.Signature)
}

// member returns a pinned member.
func (t *Team) member(name string) (fact.TeamMember, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.members[name]
	return m, ok
}

// Members returns the pinned members, by name.
func (t *Team) Members() (list []fact.TeamMember) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.members {
		list = append(list, m)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// Signed reports whether the named member has signed an input, with any of its known keys.
func (t *Team) Signed(in *hub.Input) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := in.Text(t.state.ID)
	return slices.ContainsFunc(t.had[in.Sender], func(key string) bool {
		return hub.VerifySignature(key, text,
			in.Signature)
	})
}

// May returns the reason why this machine may not do something, or nil.
func (t *Team) May(right access.Right) error {
	_, err := t.may(t.As, right)
	return err
}

// may returns the key of a member that has the right, or the reason why the member may not do
// something.
func (t *Team) may(name string, right access.Right) (key string, err error) {
	m, ok := t.member(name)
	switch {
	case !ok:
		return "", fmt.Errorf("%s is no member of the team", name)
	case m.Gone:
		return "", fmt.Errorf("%s has left the team", name)
	case !slices.Contains(m.Rights, right):
		return "", fmt.Errorf("%w: %s may not %s", ErrNoRight, name, right)
	}
	return m.Key, nil
}
