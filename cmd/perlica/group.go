package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/agext/levenshtein"
	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
)

// group is a command that only holds others: without a word it shows its help, and an
// unknown word is an error with a suggestion.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Annotations: reads.on(), Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			err := usageErr("there is no command '%s %s'", cmd.CommandPath(), args[0])
			if near := nearestCommand(cmd, args[0]); near != "" {
				return withHint(err, "did you mean '%s %s'?", cmd.CommandPath(), near)
			}
			return withHint(err, "see '%s --help'", cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// nearestCommand is the command below cmd that word most likely meant, or "".
func nearestCommand(cmd *cobra.Command, word string) string {
	best, at := "", 3
	for _, c := range cmd.Commands() {
		for _, name := range append([]string{c.Name()}, c.Aliases...) {
			d := levenshtein.Distance(word, name, nil)
			if d == 2 && len(word) < 5 && (word == "" || word[0] != name[0]) {
				continue // in a short word two other letters make another word
			}
			if d < at {
				best, at = name, d
			}
		}
	}
	return best
}

// exactly is cobra.ExactArgs with the arguments' names in the error.
func exactly(names ...string) cobra.PositionalArgs {
	return between(len(names), names...)
}

// between wants at least least of the named arguments, and no more than all.
func between(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return withHint(usageErr("'%s' needs %s", cmd.CommandPath(), strings.Join(names[len(args):least], " and ")), "%s", cmd.UseLine())
		case len(args) > len(names):
			return withHint(usageErr("'%s' takes no argument %q", cmd.CommandPath(), args[len(names)]), "%s", cmd.UseLine())
		}
		return nil
	}
}

// complete gives a shell the values of a command's first argument.
func completeFirst(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, word)
	}
}

// completeFlag gives a shell the values of a flag, which must exist.
func completeFlag(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(fmt.Sprintf("completion of --%s: %v", flag, err))
	}
}

// noFiles is the completion of a command without arguments.
var noFiles = cobra.NoFileCompletions

// printJSON prints one value, indented, for people and jq alike.
func (a *app) printJSON(v any) error {
	return a.write(func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	})
}

// say prints one line that tells what was done.
func (a *app) say(format string, args ...any) error {
	return a.write(func(w io.Writer) error {
		_, err := fmt.Fprintln(w, term.Sanitize(fmt.Sprintf(format, args...)))
		return err
	})
}

// hush is the style for what is printed to f.
func (a *app) styles(f *os.File) term.Styles { return term.NewStyles(a.getenv, term.IsTerminal(f)) }

// grid is a table: columns that are as wide as their widest cell, the last one as wide as
// the terminal allows. Its cells are made harmless.
type grid struct {
	head []string
	rows [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// write prints the table. width is the terminal's, or 0 for no limit.
func (g *grid) write(w io.Writer, s term.Styles, width int) error {
	all := append([][]string{g.head}, g.rows...)
	widths := make([]int, len(g.head))
	for _, row := range all {
		for i := range row {
			row[i] = oneLine(row[i])
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	for r, row := range all {
		var line strings.Builder
		used := 0
		for i, cell := range row {
			if i == len(row)-1 {
				if width > 0 {
					cell = runewidth.Truncate(cell, max(width-used, 10), "…")
				}
				line.WriteString(cell)
				continue
			}
			line.WriteString(runewidth.FillRight(cell, widths[i]) + "  ")
			used += widths[i] + 2
		}
		text := strings.TrimRight(line.String(), " ")
		if r == 0 {
			text = s.Dim(text)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// ago says how long ago something was, in the largest unit that fits.
func ago(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return count(int(d.Hours()), "hour") + " ago"
	case d < 60*24*time.Hour:
		return count(int(d.Hours()/24), "day") + " ago"
	}
	return at.Local().Format(time.DateOnly)
}

// short is the end of an id: enough to name it, and random, where its beginning is a time.
func short[T ~string](id T) string {
	s := string(id)
	return s[max(0, len(s)-8):]
}
