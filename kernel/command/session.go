package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/sessions"
)

func (h *Host) session(ctx context.Context, args []string) (Output, error) {
	verb := "list"
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	do := map[string]func(context.Context, []string) (Output, error){
		"list": h.sessionList, "new": h.sessionNew, "use": h.sessionUse, "show": h.sessionShow,
		"rename": h.sessionRename, "delete": h.sessionDelete, "current": h.sessionCurrent, "export": h.sessionExport,
	}[verb]
	if do == nil {
		return Output{}, errUsage
	}
	return do(ctx, args)
}

// viewSessions opens the list of sessions, calls the function "do", and closes the list.
func (h *Host) viewSessions(ctx context.Context, do func(*sessions.View) error) (err error) {
	v, err := h.Runner.Sessions(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	return do(v)
}

func (h *Host) sessionList(ctx context.Context, args []string) (Output, error) {
	all := len(args) == 1 && args[0] == "--all"
	if len(args) > 0 && !all {
		return Output{}, errUsage
	}
	var b strings.Builder
	err := h.viewSessions(ctx, func(v *sessions.View) error {
		sessions, err := v.List(ctx, all)
		for _, s := range sessions {
			if !h.concerns(s.ID) {
				continue
			}
			name := cmp.Or(s.Name, short(string(s.ID)))
			here := s.ID == h.Conversation.Session()
			h.writeItem(&b, here, name, h.about(s))
		}
		return err
	})
	if err == nil && b.Len() == 0 {
		b.WriteString(h.say().NoSession)
	}
	return Output{Text: b.String()}, err
}

// about returns a session's agent, its number of turns and its title.
func (h *Host) about(s sessions.Session) string {
	return strings.TrimSuffix(fmt.Sprintf("%s, %s, %s", s.Provider, language.Count(s.Turns, h.say().Turn, h.say().Turns),
		s.Title), ", ")
}

func (h *Host) sessionNew(ctx context.Context, args []string) (Output, error) {
	out := Output{Effect: Switch}
	if len(args) == 0 {
		return out, nil
	}
	var err error
	out.Provider = h.Conversation.Provider()
	out.Session, err = h.Runner.CreateSession(ctx, fact.SessionCreated{Name: strings.Join(args, " "),
		Provider: out.Provider})
	return out, err
}

func (h *Host) sessionUse(ctx context.Context, args []string) (Output, error) {
	s, err := h.findSession(ctx, args)
	if err != nil {
		return Output{}, err
	}
	return Output{Effect: Switch, Session: s.ID, Provider: s.Provider}, nil
}

func (h *Host) findSession(ctx context.Context, args []string) (s sessions.Session, err error) {
	if len(args) == 0 {
		return s, errUsage
	}
	err = h.viewSessions(ctx, func(v *sessions.View) error {
		s, err = v.Find(ctx, strings.Join(args, " "))
		return err
	})
	return s, err
}

// turnsShown is the number of newest turns that /session show prints.
const turnsShown = 20

func (h *Host) sessionShow(ctx context.Context, args []string) (Output, error) {
	id := h.Conversation.Session()
	if len(args) > 0 {
		s, err := h.findSession(ctx, args)
		if err != nil {
			return Output{}, err
		}
		id = s.ID
	}
	list, err := report.ReadTurns(ctx, &h.Runner.Log().Reader, id, 0, turnsShown)
	if err != nil {
		return Output{}, err
	}
	var b strings.Builder
	if len(list) == turnsShown {
		fmt.Fprintf(&b, h.say().NewestTurns, turnsShown, id)
	}
	for _, t := range list {
		fmt.Fprintf(&b, "> %s\n\n%s\n\n", strings.ReplaceAll(t.Text, "\n", "\n> "), t.Answer)
		if end := t.Ending(h.say()); end != "" {
			fmt.Fprintf(&b, "(%s)\n\n", h.literal(end))
		}
	}
	if len(list) == 0 {
		b.WriteString(h.say().NoTurns)
	}
	return Output{Text: b.String()}, nil
}

func (h *Host) sessionCurrent(ctx context.Context, args []string) (Output, error) {
	if len(args) > 0 {
		return Output{}, errUsage
	}
	id := h.Conversation.Session()
	s := sessions.Session{ID: id, Provider: h.Conversation.Provider()}
	err := h.viewSessions(ctx, func(v *sessions.View) (err error) {
		found, err := v.Find(ctx, string(id))
		if errors.Is(err, sessions.ErrNoSession) { // the session has no turn yet
			return nil
		}
		s = found
		return err
	})
	text := fmt.Sprintf("`%s` — %s", id, h.about(s))
	if s.Name != "" {
		text = fmt.Sprintf("%s: %s", s.Name, text)
	}
	return Output{Text: text}, err
}

func (h *Host) sessionExport(_ context.Context, args []string) (Output, error) {
	if len(args) == 0 {
		return Output{}, errUsage
	}
	return Output{Effect: Export, Path: unquoted(strings.Join(args, " "))}, nil
}

func (h *Host) sessionRename(ctx context.Context, args []string) (Output, error) {
	if len(args) == 0 {
		return Output{}, errUsage
	}
	return h.save(ctx, args)
}

func (h *Host) sessionDelete(ctx context.Context, args []string) (Output, error) {
	s, err := h.findSession(ctx, args)
	if err != nil {
		return Output{}, err
	}
	if s.ID == h.Conversation.Session() {
		return Output{}, inThisSession
	}
	if err := h.Runner.DeleteSession(ctx, s.ID); err != nil {
		return Output{}, err
	}
	return Output{Text: h.say().OffLists}, nil
}

// save gives the session a name, so that it stays on the lists. Without a name in args it uses the session's title.
func (h *Host) save(ctx context.Context, args []string) (Output, error) {
	id := h.Conversation.Session()
	name := strings.Join(args, " ")
	if name == "" {
		err := h.viewSessions(ctx, func(v *sessions.View) error {
			s, err := v.Find(ctx, string(id))
			name = cmp.Or(s.Name, s.Title)
			return err
		})
		if err != nil && !errors.Is(err, sessions.ErrNoSession) {
			return Output{}, err
		}
		if name == "" {
			return Output{}, nothingToName
		}
	}
	if err := h.Runner.RenameSession(ctx, id, name); err != nil {
		return Output{}, err
	}
	return Output{Text: fmt.Sprintf(h.say().KeptAs, name)}, nil
}
