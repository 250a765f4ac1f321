// Package provider has the commands that list, choose, install and test agents.
package provider

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/provider/process"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command provider with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	return frame.Group("provider", "List, show, test and choose agents; log in to them",
		`A provider is an agent that speaks the Agent Client Protocol. It comes from Perlica's registry
or from your configuration, or is the built-in agent. See docs/agents.md.`,
		a.providerListCommand(), a.providerShowCommand(), a.providerTestCommand(), a.providerSessionsCommand(),
		a.providerDefaultCommand(),
		a.providerInstallCommand(),
		a.providerLoginCommand(), a.providerLogoutCommand())
}

// locateValid finds the project for commands that need a valid configuration. It prints the project's settings that
// have no effect.
func (a *app) locateValid() (*project.Project, error) {
	p, err := a.Locate(nil)
	if err == nil {
		a.NoteIgnoredSettings(p.Config)
	}
	return p, err
}

func (a *app) providerListCommand() *cobra.Command {
	var asJSON, installed bool
	cmd := &cobra.Command{
		Use: "list", Annotations: frame.ReadOnly.Annotation(), Aliases: []string{"ls"},
		Short: "List the known agents, and mark the installed ones",
		Long:  `List the agents of the registry and of the configuration. A star marks the default agent.`,
		Example: `  perlica provider list
  perlica provider list --installed
  perlica provider list --json | jq -r '.providers[] | select(.default).id'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.providerList(cmd.Context(), installed, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&installed, "installed", false, "list only agents that can be used")
	return cmd
}

func (a *app) providerList(ctx context.Context, installed, asJSON bool) error {
	p, err := a.locateValid()
	if err != nil {
		return err
	}
	list := []agents.Listing{}
	for _, l := range p.Resolver().List() {
		l.Require(p.Resolver().Requirements(ctx, l.ID, false, p.Dirs, a.Getenv))
		if !installed || l.State == agents.Installed {
			l.Command = redact.Args(l.Command)
			list = append(list, l)
		}
	}
	agents.SortUsable(list)
	if asJSON {
		return a.PrintJSON(struct {
			Providers []agents.Listing `json:"providers"`
		}{list})
	}
	g := frame.Grid{Head: []string{"", "ID", "NAME", "STATE", "HOW"}}
	for _, l := range list {
		star, how := "", agents.CommandLine(l.Command)
		if l.Default {
			star = "*"
		}
		switch {
		case l.ID == agents.Predictable && l.Origin == agents.OriginRegistry:
			how = "built in"
		case l.Needs != nil:
			how = needsText(l.Needs)
		case l.State == agents.Missing && l.Origin == agents.OriginRegistry, l.State == agents.NeedsAdapter:
			how = l.Install
		case l.State != agents.Installed:
			how = l.Why
		}
		g.Add(star, l.ID, l.Name, string(l.State), how)
	}
	if err := a.Table(g); err != nil {
		return err
	}
	if _, err := p.Resolver().Default(); err != nil {
		a.Complain(fmt.Errorf("there is no default: %w", err))
	}
	return nil
}

// needsText describes the requirements of a model in one line: its address first, then the others and the missing
// ones.
func needsText(list []agents.Requirement) string {
	var words []string
	for _, n := range list {
		switch {
		case n.Name == "address":
			words = append([]string{n.Detail}, words...)
		case n.Name == "key" && n.OK:
			words = append(words, "key: "+n.Detail)
		case !n.OK:
			words = append(words, "needs a "+n.Name+": "+n.Detail)
		default:
			words = append(words, n.Name+": "+n.Detail)
		}
	}
	return strings.Join(words, "; ")
}

func (a *app) providerDefaultCommand() *cobra.Command {
	var user bool
	cmd := &cobra.Command{
		Use: "default [NAME]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Show or choose the default agent",
		Long: `Without NAME, print the default agent and the reason for it. Perlica uses this agent if you
name no other one.

With NAME, write model.default_provider into the project's configuration file, or with --user
into your own. Everything else in the file stays unchanged, including its comments. A trusted
project stays trusted.`,
		Example: `  perlica provider default
  perlica provider default claude
  perlica provider default --user codex`,
		Args:              frame.Between(0, "NAME"),
		ValidArgsFunction: frame.CompleteFirst(a.CompleteProviders),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				p, err := a.locateValid()
				if err != nil {
					return err
				}
				agent, err := p.Resolver().Default()
				if err != nil {
					return err
				}
				why := cmp.Or(agent.Why, originOf(p.Config, defaultKey))
				if err := a.Say("%s", agent.ID); err != nil {
					return err
				}
				fmt.Fprintln(a.Stderr, a.Styles(a.Stderr).Dim("perlica: "+screen.Sanitize(why)))
				return nil
			}
			return a.setDefault(args[0], user)
		},
	}
	cmd.Flags().BoolVar(&user, "user", false, "for all projects: write your own configuration file")
	return cmd
}

const defaultKey = "model.default_provider"

// originOf returns the configuration layer that set a key.
func originOf(cfg *config.Config, key string) string {
	for _, v := range cfg.Values() {
		if v.Key == key {
			return v.Origin
		}
	}
	return ""
}

func (a *app) setDefault(name string, user bool) error {
	p, err := a.locateValid()
	if err != nil {
		return err
	}
	l, err := p.Resolver().Describe(name)
	if err == nil && l.State == agents.Disabled {
		err = &agents.Error{ID: name, Why: l.Why, Hint: "set providers." + name + ".enabled = true"}
	}
	if err != nil {
		return err
	}
	file, before := p.Workspace.ConfigFile(), p.Config.DefaultProvider
	if user {
		file = p.Dirs.ConfigFile()
		err = config.Set(file, defaultKey, name)
	} else if _, err = p.Workspace.Ensure("default"); err == nil {
		err = config.SetProject(p.Dirs, p.Workspace, defaultKey, name)
	}
	if err != nil {
		return err
	}
	was := ""
	if before != "" && before != name {
		was = fmt.Sprintf(" (was %q)", before)
	}
	if err := a.Say("%s: %s = %q%s", frame.ShownPath(p, file), defaultKey, name, was); err != nil {
		return err
	}
	return a.checkDefault(l, name)
}

// checkDefault prints a warning on standard error if another configuration layer overrides the default that was
// written.
func (a *app) checkDefault(l agents.Listing, name string) error {
	now, err := a.Locate(nil)
	if err != nil {
		return err
	}
	var notes []string
	if now.Config.DefaultProvider != name {
		notes = append(notes, fmt.Sprintf("it does not count here: the default is %q by %s", now.Config.DefaultProvider,
			originOf(now.Config, defaultKey)))
		for _, w := range now.Config.Withheld {
			if strings.Contains(w, defaultKey) {
				notes[0] = "it counts after 'perlica config trust': the project's file defines this provider itself"
			}
		}
	}
	if l.Hint != "" {
		notes = append(notes, l.Why+"; "+l.Hint)
	}
	for _, n := range notes {
		fmt.Fprintln(a.Stderr, a.Styles(a.Stderr).Yellow("perlica: ")+screen.Sanitize(n))
	}
	return nil
}

func (a *app) providerShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show everything that Perlica knows about an agent",
		Long: `Show everything that Perlica knows about an agent, without starting it: its command line and
the origin of it, the names of the environment variables that the agent gets, the mode in
which it asks before it acts, and the ways to install it and to log in.`,
		Example:           `  perlica provider show claude`,
		Args:              frame.Exactly("NAME"),
		ValidArgsFunction: frame.CompleteFirst(a.CompleteProviders),
		RunE:              func(_ *cobra.Command, args []string) error { return a.providerShow(args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) providerShow(name string, asJSON bool) error {
	p, err := a.locateValid()
	if err != nil {
		return err
	}
	l, err := p.Resolver().Describe(name)
	if err != nil {
		return err
	}
	l.Command = redact.Args(l.Command)
	passed, err := process.Environ(a.Environ, l.Env)
	if err != nil {
		return err
	}
	for i, kv := range passed {
		passed[i], _, _ = strings.Cut(kv, "=")
	}
	if asJSON {
		return a.PrintJSON(struct {
			agents.Listing
			Passed         []string `json:"env_passed"` // names of variables in the current environment that the agent gets
			ConnectTimeout string   `json:"connect_timeout"`
			RequestTimeout string   `json:"request_timeout"`
		}{l, append([]string{}, passed...), l.ConnectTimeout.String(), l.RequestTimeout.String()})
	}
	return a.Write(func(w io.Writer) error {
		return writeRows(w, a.Styles(a.Stdout), listingRows(l, passed))
	})
}

// row is one line of a description: a name and a text.
type row struct{ name, text string }

// writeRows prints the rows that have a text.
func writeRows(w io.Writer, s screen.Styles, rows []row) error {
	width := 0
	for _, r := range rows {
		width = max(width, len(r.name)+2)
	}
	for _, r := range rows {
		if r.text == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, s.Dim(runewidth.FillRight(r.name, width))+screen.Sanitize(r.text)); err != nil {
			return err
		}
	}
	return nil
}

func listingRows(l agents.Listing, passed []string) []row {
	state := string(l.State)
	if l.Why != "" {
		state += ": " + l.Why
	}
	if l.Default {
		state += ", the default"
	}
	command, origin := agents.CommandLine(l.Command), l.Origin
	if l.Hint != "" && l.Origin == agents.OriginRegistry {
		command += "  (looked for on PATH)"
	}
	return []row{
		{"id", l.ID}, {"name", l.Name}, {"state", state},
		{"command", command}, {"from", origin},
		{"environment", strings.Join(passed, " ")},
		{"own variables", strings.Join(l.Env, " ")},
		{"asking", askingOf(l)}, {"asks", l.Asks},
		{"install", l.Install}, {"login", l.Login}, {"website", l.Website},
		{"timeouts", fmt.Sprintf("connect %s, other requests %s, prompts none", l.ConnectTimeout, l.RequestTimeout)},
		{"note", l.Note},
	}
}

// askingOf describes how a run puts the agent into the mode in which it asks for permission.
func askingOf(l agents.Listing) string {
	switch {
	case l.Mode == agents.ModeNone:
		return "left in the mode in which it starts, as the configuration says"
	case l.Mode != "":
		return fmt.Sprintf("mode %q, as the configuration says", l.Mode)
	case l.Asking.Mode != "":
		return fmt.Sprintf("mode %q is selected", l.Asking.Mode)
	case l.Asking.Option != "":
		return fmt.Sprintf("option %s is set to %q", l.Asking.Option, l.Asking.Value)
	case len(l.Asking.Env) > 0:
		return "started with " + strings.Join(l.Asking.Env, " ")
	}
	return "nothing to select"
}
