// Package config has the commands that show, change and trust the configuration.
package config

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command config with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	return frame.Group("config", "Show, check and trust the configuration",
		`A setting comes from the first of these places that has it: flags, environment (PERLICA_*),
the project's file, your own file, defaults. All files are optional. See docs/configuration.md.`,
		a.configShowCommand(), a.configPathCommand(), a.configCheckCommand(), a.configTrustCommand())
}

func (a *app) configShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show [KEY…]", SuggestFor: []string{"get", "list"}, Annotations: frame.ReadOnly.Annotation(),
		Short: "Show every value and its origin",
		Long: `Show every key that has a value, the value, and its origin: a flag, the environment, a file
or the default. Arguments select keys and everything below them. Secrets are masked.

If the configuration has mistakes, the command prints them and the valid values, and ends
with exit code 2.`,
		Example: `  perlica config show
  perlica config show runtime.logs providers.claude
  perlica config show --json | jq -r '.values[] | select(.key == "permissions.mode").value'`,
		ValidArgsFunction: a.completeKeys,
		RunE:              func(_ *cobra.Command, args []string) error { return a.configShow(args, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// configValue is one line of config show.
type configValue struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
}

type configReport struct {
	OK       bool            `json:"ok"`
	Values   []configValue   `json:"values,omitempty"`
	Project  *config.Project `json:"project,omitempty"`
	Problems config.Problems `json:"problems"`
	Withheld []string        `json:"withheld"`
	Notes    []string        `json:"notes"`
	Warnings []string        `json:"warnings"`
}

// locateLenient finds the project for commands that accept a configuration with mistakes.
func (a *app) locateLenient() (*project.Project, config.Problems, error) {
	p, err := a.Locate(nil)
	var problems config.Problems
	if errors.As(err, &problems) {
		err = nil
	}
	return p, problems, err
}

func newConfigReport(c *config.Config, problems config.Problems) configReport {
	list := func(s []string) []string { return append([]string{}, s...) }
	return configReport{
		OK: len(problems) == 0, Problems: append(config.Problems{}, problems...),
		Withheld: list(c.Withheld), Notes: list(c.Notes), Warnings: list(c.Warnings),
	}
}

// configError is the error of a command that has shown a configuration with mistakes.
func configError(problems config.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	return frame.ExitUsage.With(problems)
}

func (a *app) configShow(keys []string, asJSON bool) error {
	p, problems, err := a.locateLenient()
	if err != nil {
		return err
	}
	values, err := selectValues(p.Config.Values(), keys)
	if err != nil {
		return err
	}
	if asJSON {
		r := newConfigReport(p.Config, problems)
		r.Project = &p.Config.Project
		for _, v := range values {
			r.Values = append(r.Values, configValue{v.Key, plainValue(v.Value), v.Origin})
		}
		if err := a.PrintJSON(r); err != nil {
			return err
		}
		return frame.AlreadyPrinted(configError(problems))
	}
	if err := a.Write(func(w io.Writer) error { return writeValues(w, values, a.Styles(a.Stdout)) }); err != nil {
		return err
	}
	a.NoteIgnoredSettings(p.Config)
	return configError(problems)
}

// writeValues prints the values as TOML. It does not use a grid, because a grid would change spaces in the values.
func writeValues(w io.Writer, values []config.Value, s screen.Styles) error {
	const widest = 32 // in columns; the origin after a longer value stands further to the right
	keys, literals := 0, 0
	for _, v := range values {
		keys = max(keys, len(v.Key))
		if n := runewidth.StringWidth(v.Value); n <= widest {
			literals = max(literals, n)
		}
	}
	for _, v := range values {
		line := runewidth.FillRight(v.Key, keys) + " = " + runewidth.FillRight(v.Value, literals) + "  "
		if _, err := fmt.Fprintln(w, line+s.Dim(v.Origin)); err != nil {
			return err
		}
	}
	return nil
}

// selectValues returns the values of the named keys. A key of a table selects all keys below it. If keys is empty, it
// returns all values.
func selectValues(all []config.Value, keys []string) ([]config.Value, error) {
	if len(keys) == 0 {
		return all, nil
	}
	var found []config.Value
	for _, key := range keys {
		n := len(found)
		for _, v := range all {
			if rest, ok := strings.CutPrefix(v.Key, key); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				found = append(found, v)
			}
		}
		if len(found) == n {
			return nil, frame.WithHint(fmt.Errorf("no key %q has a value", key), "'perlica config show' lists them all")
		}
	}
	return found, nil
}

// plainValue returns the JSON value of a TOML literal.
func plainValue(literal string) any {
	var v struct{ V any }
	if err := toml.Unmarshal([]byte("v = "+literal), &v); err != nil {
		return literal
	}
	return v.V
}

func (a *app) configCheckCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check", Annotations: frame.ReadOnly.Annotation(),
		Short: "Check the configuration; exit code 2 if it is broken",
		Long: `Check all files and the environment. The command prints every mistake with its file, its line
and the most similar key. Warnings name keys without effect, probable mistakes, and settings
of the project's file that do not count until you trust the file ('perlica config trust').`,
		Example: `  perlica config check && perlica run "…"`,
		Args:    frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(*cobra.Command, []string) error { return a.configCheck(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) configCheck(asJSON bool) error {
	p, problems, err := a.locateLenient()
	if err != nil {
		return err
	}
	p.Config.Warnings = append(p.Config.Warnings, p.Resolver().Warnings()...)
	if asJSON {
		if err := a.PrintJSON(newConfigReport(p.Config, problems)); err != nil {
			return err
		}
		return frame.AlreadyPrinted(configError(problems))
	}
	return errors.Join(a.Write(func(w io.Writer) error {
		for _, lines := range []struct {
			what  string
			lines []string
		}{
			{"note", p.Config.Notes}, {"warning", p.Config.Warnings}, {"not trusted yet, left aside", p.Config.Withheld},
		} {
			for _, l := range lines.lines {
				if _, err := fmt.Fprintln(w, screen.Sanitize(lines.what+": "+l)); err != nil {
					return err
				}
			}
		}
		if len(problems) > 0 {
			return nil
		}
		_, err := fmt.Fprintln(w, "The configuration is valid.")
		return err
	}), configError(problems))
}

func (a *app) completeKeys(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	p, _, err := a.locateLenient()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var keys []string
	for _, v := range p.Config.Values() {
		keys = append(keys, v.Key+"\t"+screen.Sanitize(v.Value))
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}
