package provider

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/provider"
)

func (a *app) providerSessionsCommand() *cobra.Command {
	var f testFlags
	var all bool
	cmd := &cobra.Command{
		Use: "sessions [NAME]", Annotations: frame.StartsRun.Annotation(),
		Short: "List the sessions that an agent itself has stored; no prompt is sent",
		Long: `Start an agent and list the sessions that it has stored for this project, including sessions
made without Perlica. The agent must support ACP's session/list. Without NAME it is the default
agent. No prompt is sent, and nothing is recorded.

The column PERLICA shows the session of Perlica that belongs to the agent's session. 'perlica
session delete REF --from-agent' deletes both.`,
		Example: `  perlica provider sessions claude
  perlica provider sessions codex --all --json | jq -r '.[].id'`,
		Args:              frame.Between(0, "NAME"),
		ValidArgsFunction: frame.CompleteFirst(a.CompleteProviders),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.agent != "" && len(args) > 0 {
				return frame.UsageErrorf("give a NAME or --agent, not both")
			}
			return a.providerSessions(cmd.Context(), f, strings.Join(args, ""), all)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.agent, "agent", "", "use the ACP agent that this `command` starts: 'CMD ARG…'")
	fl.StringArrayVar(&f.env, "env", nil, "pass this environment `variable` to the agent, too")
	fl.BoolVarP(&all, "all", "a", false, "list the sessions of all directories")
	fl.BoolVar(&f.json, "json", false, "print a JSON array")
	return cmd
}

// keptSession is a session that an agent has stored.
type keptSession struct {
	ID      string          `json:"id"` // id that the agent gave the session
	Title   string          `json:"title"`
	Updated string          `json:"updated_at"` // in the agent's own format
	Dir     string          `json:"cwd"`
	AddDirs []string        `json:"additional_directories"`
	Session event.SessionID `json:"session_id"` // the same session in Perlica; empty if Perlica does not know it
}

func (a *app) providerSessions(ctx context.Context, f testFlags, name string, all bool) error {
	v, err := a.findVisit(f, name)
	if err != nil {
		return err
	}
	var found []acp.SessionInfo
	var more bool
	err = v.callRunning(ctx, func(ctx context.Context, c *provider.Conn, info acp.InitializeResponse) (err error) {
		if info.AgentCapabilities.SessionCapabilities.List == nil {
			return frame.ExitFailure.With(frame.WithHint(fmt.Errorf("%s does not offer to list its sessions", v.agent.ID),
				"'perlica session list' lists those of Perlica"))
		}
		dir := v.project.Dir
		if all {
			dir = ""
		}
		found, more, err = c.KeptSessions(ctx, dir)
		return err
	})
	if err != nil {
		return err
	}
	held, err := a.heldHere(ctx)
	if err != nil {
		return err
	}
	list := []keptSession{}
	for _, s := range found {
		list = append(list, keptSession{
			ID: string(s.SessionId), Title: *cmp.Or(s.Title, new(string)), Updated: *cmp.Or(s.UpdatedAt,
				new(string)), Dir: s.Cwd,
			AddDirs: append([]string{}, s.AdditionalDirectories...), Session: held[event.ConversationID(s.SessionId)],
		})
	}
	if more {
		a.Note("warning: the agent has more sessions than were asked for")
	}
	if f.json {
		return a.PrintJSON(list)
	}
	return v.printKept(list, all)
}

// heldHere returns Perlica's session for each session of an agent. It contains only sessions on the context's log.
func (a *app) heldHere(ctx context.Context) (map[event.ConversationID]event.SessionID, error) {
	held := map[event.ConversationID]event.SessionID{}
	if p, err := a.Locate(nil); err != nil || !p.Workspace.Exists {
		return held, err
	}
	return held, a.EmptyIfNoLog(a.Reading(ctx, func(log *store.Reader, _ *project.Project) error {
		for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.Requested, event.SessionDeleted}}) {
			if err != nil {
				return err
			}
			if held[e.Conversation] = e.Session; e.Type == event.SessionDeleted {
				for c, s := range held {
					if s == e.Session {
						delete(held, c)
					}
				}
			}
		}
		return nil
	}))
}

func (v *visit) printKept(list []keptSession, all bool) error {
	if len(list) == 0 {
		v.Note(v.agent.ID + " keeps no session for this directory; --all lists those of every one")
		return nil
	}
	head := []string{"SESSION", "PERLICA", "LAST USED", "TITLE"}
	if all {
		head = append(head, "DIRECTORY")
	}
	g := frame.Grid{Head: head}
	for _, s := range list {
		own, used := "", s.Updated
		if s.Session != "" {
			own = frame.ShortID(s.Session)
		}
		if at, err := time.Parse(time.RFC3339, s.Updated); err == nil {
			used = frame.FormatAge(at, time.Now())
		}
		row := []string{s.ID, own, used, s.Title}
		if all {
			row = append(row, s.Dir)
		}
		g.Add(row...)
	}
	return v.Table(g)
}
