package dialog

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team"
)

// TeamFlags are the flags of run and chat that send inputs to a team.
type TeamFlags struct {
	on        bool
	project   string
	labels    []string
	priority  int
	notBefore string
}

// AddTeamFlags adds the flags for a team that run and chat share.
func AddTeamFlags(cmd *cobra.Command, f *TeamFlags) {
	fl := cmd.Flags()
	fl.BoolVar(&f.on, "team", false, "let the team of team.url answer, and wait for its results; see docs/team.md")
	fl.StringVar(&f.project, "team-project", "",
		"with --team: the project's `name` in the team (default: the name of this folder's project)")
	fl.StringArrayVar(&f.labels, "team-label", nil, "with --team: a `label` that the worker must have; may be repeated")
}

// MeantByFlow reports whether a team answers the calls of a flow run. Only the flag --team says so, because a flow run
// stays where it began. The error names flags that exclude each other.
func (f TeamFlags) MeantByFlow(cmd *cobra.Command) (bool, error) {
	if !f.on && (flagChanged(cmd, "team-project") || flagChanged(cmd, "team-label")) {
		return false, frame.UsageErrorf("--team-project and --team-label go with --team")
	}
	if f.on && flagChanged(cmd, "wait-permissions") {
		return true, frame.UsageErrorf("--wait-permissions and --team exclude each other: the worker's own settings count")
	}
	return f.on, nil
}

// FlowDraft returns the settings of the inputs of a flow run.
func (f TeamFlags) FlowDraft(p *project.Project, provider, permissions string) team.Draft {
	return team.Draft{Project: f.Project(p), Labels: f.labels, Provider: provider, Permissions: permissions}
}

// AddTeamRunFlags adds the flags for a team that only run has.
func AddTeamRunFlags(cmd *cobra.Command, f *TeamFlags) {
	fl := cmd.Flags()
	fl.IntVar(&f.priority, "team-priority", 0, "with --team: a worker takes inputs with a higher `number` first")
	fl.StringVar(&f.notBefore, "team-not-before", "",
		"with --team: no worker takes the input before this `time`, RFC 3339")
}

// localFlags are the flags for an agent on this machine. --team excludes them.
var localFlags = []string{"agent", "env", "cwd", "add-dir", "model", "mode", "allow", "deny", "wait",
	"wait-permissions",
	"append-system", "mcp-config", "save-to", "schema", "sandbox", "require-sandbox"}

// Meant reports whether the user wants the team to answer. Without the flag --team, the setting team.default
// decides. The error names flags that exclude each other.
func (f TeamFlags) Meant(cmd *cobra.Command, p *project.Project) (bool, error) {
	on := f.on
	if fl := cmd.Flags().Lookup("team"); fl == nil || !fl.Changed {
		on = p.Config.Team.Default && fl != nil
	}
	for _, name := range localFlags {
		if on && flagChanged(cmd, name) {
			return on, frame.WithHint(frame.UsageErrorf("--%s and --team exclude each other: the worker's own settings count",
				name), "--team=false runs it here")
		}
	}
	for _, name := range []string{"continue", "resume"} {
		if on && flagChanged(cmd, name) {
			return on, frame.WithHint(frame.UsageErrorf("--%s and --team exclude each other", name),
				"-s names the session: perlica session list --team; --team=false continues one of this machine")
		}
	}
	for _, name := range []string{"team-project", "team-label", "team-priority", "team-not-before"} {
		if !on && flagChanged(cmd, name) {
			return on, frame.UsageErrorf("--%s goes with --team", name)
		}
	}
	return on, nil
}

func flagChanged(cmd *cobra.Command, name string) bool {
	fl := cmd.Flags().Lookup(name)
	return fl != nil && fl.Changed
}

// Draft returns an input for the team with the text and the values of the flags.
func (f TeamFlags) Draft(p *project.Project, df Flags, text string) (d team.Draft, err error) {
	d = team.Draft{
		ID: df.InputID, Text: text, Project: f.Project(
			p), Provider: df.Provider, Permissions: df.Permissions, Labels: f.labels, Priority: f.priority,
	}
	if f.notBefore != "" {
		if d.NotBefore, err = time.Parse(time.RFC3339, f.notBefore); err != nil {
			return d, frame.UsageErrorf("--team-not-before is a time such as 2026-12-24T18:00:00Z, not %q", f.notBefore)
		}
	}
	for _, path := range df.Attach {
		file, err := team.ReadFile(path)
		if err != nil {
			return d, frame.UsageErrorf("--attach: %w", err)
		}
		d.Attachments = append(d.Attachments, file)
	}
	if err := d.Check(); err != nil {
		return d, frame.ExitUsage.With(err)
	}
	return d, nil
}

// ContinueTeamSession makes the input d continue the named session. If session is empty, it changes nothing.
func ContinueTeamSession(ctx context.Context, t *team.Team, d *team.Draft, session string, note func(string)) error {
	if session == "" {
		return nil
	}
	s, l, err := t.FindSession(ctx, session, d.Project, note)
	if err != nil {
		return err
	}
	d.Worker, d.Session = l.Worker, s.ID
	return nil
}

// Project returns the name of the project for the inputs.
func (f TeamFlags) Project(p *project.Project) string { return cmp.Or(f.project, p.Name()) }
