// Package team has the commands for a team of machines: the hub, the members, the inputs, and the work of this
// machine.
package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command team with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	return frame.Group("team", "Work with several machines over one hub",
		`Work with several machines over one hub, a PostgreSQL database (15 or newer). Exactly one
machine takes each input, for ever. It calls its agent at most once for the input, and records
the call on its own log.

The address of the hub is team.url in your own configuration, or PERLICA_TEAM_URL. See
docs/team.md.`,
		a.initCommand(), a.joinCommand(), a.confirmCommand(), a.leaveCommand(), a.membersCommand(), a.workCommand(),
		a.submitCommand(),
		a.statusCommand(), a.inputsCommand(), a.pendingCommand(), a.workersCommand(), a.cancelCommand(), a.resolveCommand(),
		a.adoptCommand(),
		a.keepCommand(), a.fetchCommand())
}

// teamOptions returns the options for opening the team. If url is not empty, it replaces the configured address.
func (a *app) teamOptions(url string) (opt team.Options, p *project.Project, err error) {
	if p, err = a.Locate(nil); err != nil {
		return opt, p, err
	}
	opt, err = team.OptionsOf(p, url, a.Version)
	return opt, p, err
}

// withTeam opens the team for this machine, which is a member, and calls f.
func (a *app) withTeam(ctx context.Context, f func(t *team.Team, p *project.Project) error) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	return team.Use(ctx, p, a.Version, func(t *team.Team) error { return f(t, p) })
}

func (a *app) initCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "init [URL]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Make a team in an empty database",
		Long: `Make a team in the database at URL, or at team.url. The command creates only the schema
"perlica" and the roles perlica_member and perlica_admin, which cannot log in. Your key becomes
the key of the first admin; 'perlica team join NAME' then makes you a member.

A database that already has a team stays unchanged.`,
		Example: `  perlica team init postgres:///perlica?host=/var/run/postgresql
  perlica team init --name website 'postgres://db.example.org/perlica?sslmode=verify-full'`,
		Args: frame.Between(0, "URL"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, _, err := a.teamOptions(strings.Join(args, ""))
			if err != nil {
				return err
			}
			state, made, err := team.Init(cmd.Context(), opt, name)
			if err != nil {
				return err
			}
			if !made {
				return a.Say("the database already holds the team %s", state.Name)
			}
			return a.Say("the team %s is made, generation %s", state.Name, state.Generation)
		},
	}
	cmd.Flags().StringVar(&name, "name", "team", "the `name` of the team and of its context")
	return cmd
}

func (a *app) joinCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use: "join NAME", Annotations: frame.PersonOnly.Annotation(),
		Short: "Ask for membership of the team",
		Long: `Ask for membership of the team. NAME becomes the lasting name of this machine. The command
prints the machine's key. An admin confirms the machine with 'perlica team confirm NAME', and
compares the key. The first admin's own key needs no confirmation.`,
		Args: frame.Exactly("NAME"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, p, err := a.teamOptions(url)
			if err != nil {
				return err
			}
			t, confirmed, err := team.Join(cmd.Context(), opt, args[0])
			if err != nil {
				return err
			}
			defer func() { _ = t.Close() }() // Every write was synced, so a failed close loses no data.
			if url != "" {
				if err := config.Set(p.Dirs.ConfigFile(), "team.url", url); err != nil {
					return err
				}
			}
			if confirmed {
				return a.Say("%s belongs to the team %s", t.As, t.State().Name)
			}
			return a.Say("%s asks to belong to the team %s, with the key\n%s\nAn admin confirms it: perlica team confirm %s",
				t.As, t.State().Name, t.Key, t.As)
		},
	}
	cmd.Flags().StringVar(&url, "hub", "",
		"the hub's address, a connection `URL`; it is saved in your own configuration")
	return cmd
}

func (a *app) confirmCommand() *cobra.Command {
	var key, rights string
	cmd := &cobra.Command{
		Use: "confirm [NAME]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Confirm a machine that asks to join; without NAME, list these machines",
		Long: `Confirm a machine that asks to join as a member. Compare the shown key with the key that
'perlica team join' printed on that machine, or give that key with --key. This is necessary:
everyone with the database's password can ask under any name.

Rights: ask (submit, stop and resolve inputs), approve (answer questions), admin.`,
		Args: frame.Between(0, "NAME"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			may, err := access.Parse(rights, "member", access.OfPeople())
			if err != nil {
				return frame.ExitUsage.With(err)
			}
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				asked, err := t.Hub.Requests(cmd.Context())
				if err != nil {
					return err
				}
				if len(args) == 0 {
					return a.listRequests(asked)
				}
				i := slices.IndexFunc(asked, func(r hub.JoinRequest) bool { return r.Name == args[0] })
				if i < 0 {
					return frame.WithHint(fmt.Errorf("%s does not ask to join", args[0]), "perlica team confirm lists who does")
				}
				if key == "" {
					yes, err := a.Confirm(cmd.Context(),
						fmt.Sprintf("%s, who logs in as %s, has the key %s\nIs that the key that 'perlica team join' printed there?",
							asked[i].Name, asked[i].Login, asked[i].Key))
					switch {
					case err != nil:
						return frame.WithHint(err, "--key KEY confirms the one that 'perlica team join' printed there")
					case !yes:
						return errors.New("not confirmed")
					}
					key = asked[i].Key
				}
				if err := t.Confirm(cmd.Context(), args[0], key, may); err != nil {
					return err
				}
				return a.Say("%s belongs to the team and may %s", args[0], may.Shown())
			})
		},
	}
	cmd.Flags().StringVar(&rights, "rights", "ask,approve",
		"the member's `rights`: some of "+access.OfPeople().Listed())
	cmd.Flags().StringVar(&key, "key", "", "confirm the machine with this `key`, without a question")
	return cmd
}

func (a *app) listRequests(asked []hub.JoinRequest) error {
	if len(asked) == 0 {
		a.Note("no machine asks to join")
		return nil
	}
	g := frame.Grid{Head: []string{"NAME", "LOGIN", "KEY"}}
	for _, r := range asked {
		g.Add(r.Name, r.Login, r.Key)
	}
	return a.Table(g)
}

func (a *app) leaveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "leave NAME", Annotations: frame.PersonOnly.Annotation(),
		Short: "End a membership; only an admin can do this",
		Long: `End the membership of the machine NAME. The hub refuses this machine at once, and workers
record the end within a minute. Its own inputs continue if another worker has taken them
already. The hub gets no results for the inputs that the machine itself has taken: the command
lists them for 'perlica team resolve'. Also revoke the password of the machine's database role.`,
		Args: frame.Exactly("NAME"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				if err := t.Leave(cmd.Context(), args[0]); err != nil {
					return err
				}
				owned, err := t.Hub.Owned(cmd.Context(), args[0])
				for _, c := range owned {
					a.Note(
						fmt.Sprintf("%s has claimed %s, and no outcome of it comes any more: 'perlica team resolve %[2]s' closes it",
							args[0], c.ID))
				}
				return cmp.Or(err, a.Say("%s has left the team", args[0]))
			})
		},
	}
}

func (a *app) membersCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "members", Annotations: frame.ReadOnly.Annotation(),
		Short: "List the members that this machine knows, with their rights and keys",
		Args:  frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				list := t.Members()
				if asJSON {
					return a.PrintJSON(list) // This machine is in the list, too.
				}
				g := frame.Grid{Head: []string{"NAME", "RIGHTS", "LOGIN", "KEY"}}
				for _, m := range list {
					rights := access.Rights(m.Rights).String()
					if m.Gone {
						rights = "left"
					}
					g.Add(m.Name, rights, m.Login, m.Key)
				}
				return a.Table(g)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (a *app) adoptCommand() *cobra.Command {
	var even, yes bool
	cmd := &cobra.Command{
		Use: "adopt", Annotations: frame.PersonOnly.Annotation(),
		Short: "Continue with a hub that was promoted or restored",
		Long: `Continue with the server that team.url names, although the team has used another server until
now. A promoted standby or a restored backup may not know which machine took which input. So
the command begins a new generation: it closes every input without an outcome on this server
as unknown, and nobody takes these inputs again. Workers that own such an input still finish
it, once. Their outcome is shown as soon as they report it.

Perlica promises one call for an id that you chose yourself only within one generation. This
server does not know ids that it has lost. If work must not be done twice, find out its result
first.`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				if !yes {
					ok, err := a.Confirm(cmd.Context(),
						"Every input without an outcome on this hub is closed as unknown and never claimed again, and ids that this "+
							"hub has forgotten can be called once more. Adopt it?")
					switch {
					case err != nil:
						return err
					case !ok:
						return errors.New("not adopted")
					}
				}
				done, err := t.Adopt(cmd.Context(), even)
				if err != nil {
					return err
				}
				return a.Say("generation %s: closed %s that waited and %s that workers own", t.State().Generation,
					frame.Count(done.Queued, "input"), frame.Count(done.Claimed, "input"))
			})
		},
	}
	cmd.Flags().BoolVar(&even, "even", false,
		"adopt a server that looks unchanged: a copy of its disk was put back")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// directory returns the path of a directory that the configuration names. It replaces ~ by the home directory.
func directory(p *project.Project, dir string) (string, error) {
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		dir = filepath.Join(p.Dirs.Home, rest)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(p.Dir, dir)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", frame.UsageErrorf("%s: no such directory", dir)
	}
	return dir, nil
}

// printNotes prints each line of a text as a note on standard error.
func (a *app) printNotes(text string) {
	_ = a.Write(func(io.Writer) error { // Write is used to keep the order of notes and output.
		_, err := fmt.Fprintln(a.Stderr, "perlica: "+frame.OneLine(text))
		return err
	})
}
