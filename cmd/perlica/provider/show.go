package provider

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/provider/process"
)

func (a *app) providerShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Annotations: cli.Reads.On(),
		Short: "Show how an agent is started, installed and logged in",
		Long: `Show everything that is known of an agent without starting it: its command line and
where it comes from, which variables of the environment it is given (their names, never
their values), how it is made to ask, and how to install it and log in.`,
		Example:           `  perlica provider show claude`,
		Args:              cli.Exactly("NAME"),
		ValidArgsFunction: cli.CompleteFirst(a.CompleteProviders),
		RunE:              func(_ *cobra.Command, args []string) error { return a.providerShow(args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) providerShow(name string, asJSON bool) error {
	p, err := a.configured()
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
			Passed         []string `json:"env_passed"` // of the environment as it is now
			ConnectTimeout string   `json:"connect_timeout"`
			RequestTimeout string   `json:"request_timeout"`
		}{l, append([]string{}, passed...), l.ConnectTimeout.String(), l.RequestTimeout.String()})
	}
	return a.Write(func(w io.Writer) error {
		return writeRows(w, a.Styles(a.Stdout), listingRows(l, passed))
	})
}

// row is a line of a description: what it is about, and what is so.
type row struct{ name, text string }

// writeRows prints the rows that have a text.
func writeRows(w io.Writer, s term.Styles, rows []row) error {
	width := 0
	for _, r := range rows {
		width = max(width, len(r.name)+2)
	}
	for _, r := range rows {
		if r.text == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, s.Dim(runewidth.FillRight(r.name, width))+term.Sanitize(r.text)); err != nil {
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
	if l.State == agents.Missing && l.Origin == agents.OriginRegistry {
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

// askingOf says how the agent is put into the mode in which a run prompts it.
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
