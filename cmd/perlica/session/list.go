package session

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
)

func (a *app) sessionListCommand() *cobra.Command {
	var all, asJSON, inTeam bool
	cmd := &cobra.Command{
		Use: "list", Annotations: frame.ReadOnly.Annotation(),
		Aliases: []string{"ls"},
		Short:   "List the sessions and their running turns, the last used first",
		Long: `List the sessions, the last used first. A star marks the current one. If a process, such as a
chat, has a session open, the list shows this process in place of the last use, and marks a
running turn. A session that a run made for itself is listed only while the run lasts, or with
--all.

With --team the command lists the sessions of all workers, from the copies of their logs on the
team's hub. 'perlica run --team -s REF' continues each of them.`,
		Example: `  perlica session list
  perlica session list --all --json | jq -r '.[].id'
  perlica session list --json | jq -r '.[] | select(.run_id).id'   # where a turn is under way`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inTeam {
				return a.sessionsOfTeam(cmd.Context(), asJSON)
			}
			list := []listedSession{}
			err := a.Reading(cmd.Context(), func(log *store.Reader, p *project.Project) error {
				return frame.ViewSessions(cmd.Context(), log, p, func(view *sessions.View) (err error) {
					list, err = listSessions(cmd.Context(), view, log, p, all)
					return err
				})
			})
			if err := a.EmptyIfNoLog(err); err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			return a.printSessions(list, all)
		},
	}
	cmd.Flags().BoolVar(&inTeam, "team", false,
		"read the copies of all workers' logs on the team's hub; see docs/team.md")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list sessions that a run made for itself, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// listedSession is a session and the kind of process that has it open.
type listedSession struct {
	sessions.Session
	HeldBy string      `json:"held_by,omitempty"` // "chat", "service" or "run"; empty if no process has it open
	PID    int         `json:"pid,omitempty"`
	Run    event.RunID `json:"run_id,omitempty"` // the turn that is running
}

// listSessions returns the sessions. It adds the sessions of single runs that are running now.
func listSessions(ctx context.Context, view *sessions.View, log *store.Reader, p *project.Project,
	all bool) ([]listedSession, error) {
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return nil, err
	}
	holders, err := filelock.Sessions(paths.Locks)
	if err != nil {
		return nil, err
	}
	// There may be many sessions of single runs that have ended, so they are listed only if all is true.
	known, err := view.List(ctx, all)
	if err != nil {
		return nil, err
	}
	list := make([]listedSession, 0, len(known))
	for _, s := range known {
		one, err := heldBy(ctx, log, s, holders[string(s.ID)])
		if err != nil {
			return nil, err
		}
		delete(holders, string(s.ID))
		list = append(list, one)
	}
	for id, holder := range holders {
		s, err := view.Find(ctx, id)
		if err != nil {
			continue // The session was deleted, or its run has not begun.
		}
		one, err := heldBy(ctx, log, s, holder)
		if err != nil {
			return nil, err
		}
		if one.Run != "" {
			list = append([]listedSession{one}, list...)
		}
	}
	return list, nil
}

// heldBy returns a session together with its holder and its running turn.
func heldBy(ctx context.Context, log *store.Reader, s sessions.Session, holder *filelock.BusyError) (listedSession,
	error) {
	one := listedSession{Session: s}
	if holder == nil {
		return one, nil
	}
	one.HeldBy, one.PID = cmp.Or(holder.By, "run"), holder.PID
	begun, ok, err := log.Last(ctx, event.Query{Session: s.ID, Types: []event.Type{event.MessageReceived}})
	if err != nil || !ok {
		return one, err
	}
	_, over, err := log.Last(ctx, event.Query{Run: begun.Run,
		Types: event.Known().Where(func(r *event.Row) bool { return r.Run == event.Ends })})
	if err == nil && !over {
		one.Run = begun.Run
	}
	return one, err
}

func (a *app) printSessions(list []listedSession, all bool) error {
	if len(list) == 0 {
		hint := "perlica session new NAME makes one"
		if !all {
			hint += "; --all lists those that runs made for themselves"
		}
		a.Note("there is no session; " + hint)
		return nil
	}
	now := time.Now()
	g := frame.Grid{Head: []string{" ", "SESSION", "PROVIDER", "TURNS", "LAST USED", "TITLE"}}
	for _, s := range list {
		mark := " "
		if s.Current {
			mark = "*"
		}
		used := frame.FormatAge(s.Used, now)
		switch {
		case s.Run != "":
			used = "a turn is under way (" + s.HeldBy + ")"
		case s.HeldBy != "":
			used = "open (" + s.HeldBy + ")"
		}
		g.Add(mark, frame.SessionName(s.Session, frame.ShortID(s.ID)), s.Provider, strconv.Itoa(s.Turns), used, s.Title)
	}
	return a.Table(g)
}
