package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/sessions"
)

func newSessionFact(id event.SessionID, f fact.SessionCreated) event.Event {
	return event.NewFact(event.SessionCreated, "user", event.Refs{Session: id}, f)
}

// CreateSession creates a session and returns its id. The error is ErrNameTaken if another listed session has its name.
func (r *Runner) CreateSession(ctx context.Context, f fact.SessionCreated) (event.SessionID, error) {
	if err := r.checkName(ctx, f.Name, ""); err != nil {
		return "", err
	}
	id := event.SessionID(uuid.Must(uuid.NewV7()).String())
	_, err := r.log.Append(ctx, newSessionFact(id, f))
	return id, err
}

// RenameSession gives a session a name. The lists then always show the session.
func (r *Runner) RenameSession(ctx context.Context, id event.SessionID, name string) error {
	if name == "" {
		return emptyName
	}
	if err := r.checkName(ctx, name, id); err != nil {
		return err
	}
	_, err := r.log.Append(ctx, event.NewFact(event.SessionRenamed, "user", event.Refs{Session: id},
		fact.SessionRenamed{Name: name}))
	return err
}

// SelectSession makes a session the current session.
func (r *Runner) SelectSession(ctx context.Context, id event.SessionID) error {
	_, err := r.log.Append(ctx, event.NewFact(event.SessionSelected, "user", event.Refs{Session: id}, struct{}{}))
	return err
}

// DeleteSession removes a session from every list. Its events stay on the log.
func (r *Runner) DeleteSession(ctx context.Context, id event.SessionID) error {
	return r.deleteSession(ctx, id, func() error { return nil })
}

// DeleteKept makes the agent delete its own sessions of a Perlica session, and then removes the Perlica session from
// every list. It returns the number of deleted agent sessions. If the agent does not offer deletion or fails, the
// Perlica session stays on the lists.
func (r *Runner) DeleteKept(ctx context.Context, setup Setup) (n int, err error) {
	return n, r.deleteSession(ctx, setup.Session, func() (err error) {
		n, err = r.deleteKept(ctx, setup)
		return err
	})
}

func (r *Runner) deleteKept(ctx context.Context, setup Setup) (n int, err error) {
	var ids []event.ConversationID
	for e, err := range r.log.Events(ctx, event.Query{Session: setup.Session, Types: []event.Type{event.Requested}}) {
		if err != nil {
			return 0, err
		}
		if e.Conversation != "" && !slices.Contains(ids, e.Conversation) {
			ids = append(ids, e.Conversation)
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	s := newAgentSession(r, setup, event.Refs{Session: setup.Session}, nil)
	if err := s.startProcess(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.endProcess(context.WithoutCancel(ctx))) }()
	if s.info, err = s.conn.Initialize(ctx, r.opt.Version); err != nil {
		return 0, s.recordTimeout(err)
	}
	if s.info.AgentCapabilities.SessionCapabilities.Delete == nil {
		return 0, noDelete.With(setup.Agent.ID)
	}
	for _, id := range ids {
		s.setConversation(string(id))
		if err := s.conn.DeleteKept(ctx, string(id)); err != nil {
			return n, s.recordTimeout(err)
		}
		n++
	}
	return n, nil
}

// deleteSession locks the session, calls the function "first", and removes the session from every list. If "first"
// returns an error, the session stays on the lists.
func (r *Runner) deleteSession(ctx context.Context, id event.SessionID, first func() error) error {
	lock, err := filelock.AcquireSession(ctx, filelock.Session(r.opt.Paths.Locks, string(id)), false)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := first(); err != nil {
		return err
	}
	_, err = r.log.Append(ctx, event.NewFact(event.SessionDeleted, "user", event.Refs{Session: id}, struct{}{}))
	return err
}

// Sessions opens the view of this context's sessions. The caller must close it.
func (r *Runner) Sessions(ctx context.Context) (*sessions.View, error) {
	return sessions.Open(ctx, &r.log.Reader, r.opt.Paths.Sessions, r.opt.ViewKey)
}

// ErrNameTaken means that another session already has this name.
var ErrNameTaken = message.New("kernel.name-taken", "another session has this name")

func (r *Runner) checkName(ctx context.Context, name string, except event.SessionID) (err error) {
	if name == "" {
		return nil
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) || len(name) > 200 {
		return longName
	}
	s, err := r.Sessions(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found, err := s.Named(ctx, name, except)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%w: %s", ErrNameTaken, name)
	}
	return err
}
