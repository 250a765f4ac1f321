// Package team is the work of one machine for a team of machines. It hands inputs to the hub and
// takes inputs from the hub. The kernel answers them as it answers inputs of any front end. The
// package also carries questions and answers.
//
// An input of the team is called at most once: the hub gives it one owner for ever, and the owner's
// own log permits one call. The package acts only on signed rows: a row of the hub is a proposal,
// and this machine's log pins the keys that count. It decides nothing by time. It sends an input
// only to the generation of the hub for which the input was made.
//
// An input never moves to another worker. Its owner continues it after a crash, or no machine does.
//
// Link and OpenQuestion serve the front ends. A front end that does not ask for the team never
// waits for an unreachable hub. An answer counts only for the question that was shown.
//
// # Goroutines and locks
//
//   - Worker.Run claims inputs in its own goroutine. It starts four more and waits for them.
//     findClaims looks for claims without an outcome. pulseHub reads answers and stops. sendReports sends the
//     reports of the outbox. copyLog sends the log.
//   - Each claim in work has a goroutine in Worker.tasks. This goroutine owns the run and the run's slot.
//   - Worker.copied is a separate connection that only copyLog uses, so that a batch of the copy
//     delays no claim.
//
// Team.mu guards the pinned members. Refresh holds it while it appends to the log. Worker.mu,
// outbox.mu and Team.mu each guard the fields that their structs name. No goroutine takes one of
// them while it holds another. Link.sem is held while a team is opened and refreshed, and Team.mu
// is taken under it.
package team

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
)

// These errors are the reasons why a machine cannot work for a team.
var (
	errNotJoined error = &hub.Fault{
		Text:   "this machine has not joined the team",
		Advice: "perlica team join NAME",
	}
	errNotConfirmed error = &hub.Fault{
		Text:   "no admin of the team has confirmed this machine yet",
		Advice: "an admin confirms it: perlica team confirm NAME",
	}
	errGone error = &hub.Fault{
		Text:   "this machine has left the team",
		Advice: "perlica team join NAME asks to be confirmed again",
	}
	errKeyChanged error = &hub.Fault{
		Text:   "this machine's key is not the one with which it joined",
		Advice: "perlica team join NAME, then an admin confirms the new key",
	}
	errTaken error = &hub.Fault{
		Text:   "another key has this name in the team",
		Advice: "choose another name",
	}
	ErrNoRight error = &hub.Fault{
		Text:   "the right is missing",
		Advice: "perlica team members shows who has it",
	}
	errOtherTeam error = &hub.Fault{
		Text:   "this context joined a team, and the hub belongs to another team of the same name",
		Advice: "the other team needs another name, because a context stays with its team",
	}
)

// Team is a team as a joined machine sees it. Its methods may be called from several goroutines.
// The caller must Close it.
type Team struct {
	Hub  *hub.Hub
	As   string // this machine's name
	Key  string // this machine's verifier key
	opt  Options
	keys *evidence.Keys
	r    *kernel.Runner
	done func() error

	views string // the folder of the views of copies

	mu      sync.Mutex // guards the fields below
	state   hub.State
	members map[string]fact.TeamMember // the pinned ones
	had     map[string][]string        // all keys that each member has had
}

// randomName returns a random name of 128 bits.
func randomName() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // rand.Read never fails
	return hex.EncodeToString(b)
}

// Init makes a team in an empty database. The result "made" is false if the team existed before. This machine's key
// becomes the key of the team's first admin.
func Init(ctx context.Context, opt Options, name string) (state hub.State, made bool, err error) {
	if err := hub.CheckName(name); err != nil {
		return state, false, err
	}
	p, err := project.Team(opt.Dir, opt.Environ, name)
	if err != nil {
		return state, false, err
	}
	keys, err := evidence.MakeKeys(p.Dirs.KeyDir())
	if err != nil {
		return state, false, err
	}
	h, err := hub.Open(opt.URL)
	if err != nil {
		return state, false, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if err = h.MakeSchema(ctx); err != nil {
		return state, false, err
	}
	if made, err = h.Found(ctx, hub.Team{ID: randomName(), Name: name, Admin: keys.VerifierKeys(keyName)[0]},
		randomName()); err != nil {
		return state, false, err
	}
	state, err = h.Look(ctx)
	return state, made, err
}

// Open opens the team on the hub of opt as this machine's confirmed member. It returns the errors of hub.Look, or
// errNotJoined, errOtherTeam, errKeyChanged, errNotConfirmed or errGone.
func Open(ctx context.Context, opt Options) (t *Team, err error) {
	t, joined, err := open(ctx, opt)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	switch {
	case joined == nil:
		return t, fmt.Errorf("%w: %s", errNotJoined, t.state.Name)
	case joined.Key != t.Key:
		return t, errKeyChanged
	}
	t.As = joined.As
	if err := t.Refresh(ctx); err != nil {
		return t, err
	}
	switch me, ok := t.member(t.As); {
	case ok && me.Gone:
		return t, errGone
	case !ok || me.Key != t.Key:
		return t, errNotConfirmed
	}
	return t, nil
}

// open opens the hub and the log. The result "joined" is nil if this machine has not joined.
func open(ctx context.Context, opt Options) (t *Team, joined *fact.TeamJoined, err error) {
	h, err := hub.Open(opt.URL)
	if err != nil {
		return nil, nil, err
	}
	t = &Team{Hub: h, opt: opt, members: map[string]fact.TeamMember{}, had: map[string][]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if t.state, err = h.Look(ctx); err != nil {
		return t, nil, err
	}
	p, err := project.Team(opt.Dir, opt.Environ, t.state.Name)
	if err != nil {
		return t, nil, err
	}
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return t, nil, err
	}
	t.views = filepath.Join(paths.Dir, "copies")
	if t.keys, err = evidence.MakeKeys(p.Dirs.KeyDir()); err != nil {
		return t, nil, err
	}
	t.Key = t.keys.VerifierKeys(keyName)[0]
	if t.r, t.done, err = p.Open(ctx, opt.Version); err != nil {
		return t, nil, err
	}
	e, ok, err := t.r.Log().Last(ctx, event.Query{Types: []event.Type{event.TeamJoined}})
	if err != nil || !ok {
		return t, nil, err
	}
	joined = new(fact.TeamJoined)
	if err := e.Decode(joined); err != nil {
		return t, nil, err
	}
	if err := otherTeam(*joined, t.state); err != nil {
		return t, nil, err
	}
	return t, joined, t.readPinned(ctx)
}

// Close closes the hub and the log.
func (t *Team) Close() error {
	err := t.Hub.Close()
	if t.done != nil {
		err = errors.Join(err, t.done())
		t.done = nil
	}
	return err
}

// State returns the state of the hub at the last look.
func (t *Team) State() hub.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// Log returns the log of this machine's work for the team.
func (t *Team) Log() *eventlog.Log { return t.r.Log() }

// Join requests membership for this machine under a name. The owner of the first admin's key is a member at once;
// otherwise an admin must confirm it. It returns the errors of the function open, or errTaken.
func Join(ctx context.Context, opt Options, as string) (t *Team, confirmed bool, err error) {
	if err := hub.CheckName(as); err != nil {
		return nil, false, err
	}
	t, joined, err := open(ctx, opt)
	if err != nil {
		return nil, false, err
	}
	t.As = as
	confirmed, err = t.joinHub(ctx, joined)
	if err != nil {
		return nil, false, errors.Join(err, t.Close())
	}
	return t, confirmed, nil
}

func (t *Team) joinHub(ctx context.Context, joined *fact.TeamJoined) (confirmed bool, err error) {
	list, err := t.Hub.Members(ctx)
	if err != nil {
		return false, err
	}
	var last hub.Member // the newest statement about the name
	for _, m := range list {
		if m.Name == t.As && m.Version > last.Version {
			last = m
		}
	}
	if last.Version > 0 && !last.Gone {
		if confirmed = last.Key == t.Key; !confirmed && t.Key != t.state.Admin {
			return false, fmt.Errorf("%w: %s", errTaken, t.As)
		}
	}
	now := fact.TeamJoined{Team: t.state.ID, Name: t.state.Name, Admin: t.state.Admin, As: t.As, Key: t.Key}
	if joined == nil || *joined != now {
		if _, err := t.Log().Append(ctx, event.NewFact(event.TeamJoined, "user", event.Refs{}, now)); err != nil {
			return false, err
		}
	}
	switch {
	case confirmed:
	case t.Key == t.state.Admin:
		err = t.declareMember(ctx, hub.Member{Name: t.As, Key: t.Key, Rights: access.OfPeople(), Login: t.state.Login}, "")
	default:
		return false, t.askToJoin(ctx)
	}
	if err != nil {
		return false, err
	}
	return true, t.Refresh(ctx)
}

// askToJoin writes the request to join to the hub. The error wraps errTaken if another key has requested the name.
func (t *Team) askToJoin(ctx context.Context) error {
	if err := t.Hub.Ask(ctx, t.As, t.Key); err != nil {
		return err
	}
	list, err := t.Hub.Requests(ctx)
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.Name == t.As && r.Key != t.Key {
			return fmt.Errorf("%w: %s", errTaken, t.As)
		}
	}
	return nil
}

// declareMember signs a statement about a member and writes it to the hub. The parameter "signer" is "" for the first
// admin's key.
func (t *Team) declareMember(ctx context.Context, m hub.Member, signer string) (err error) {
	list, err := t.Hub.Members(ctx)
	if err != nil {
		return err
	}
	m.Signer, m.Version = signer, 1
	for _, other := range list {
		if other.Name == m.Name {
			// The new version must also be above the versions of unsigned statements, because the hub's roles follow the newest
			// statement.
			m.Version = max(m.Version, other.Version+1)
		}
	}
	if m.Signature, err = t.signText(m.Text(t.state.ID)); err != nil {
		return err
	}
	return t.Hub.State(ctx, m)
}
