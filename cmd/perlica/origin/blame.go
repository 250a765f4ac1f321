package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/origin"
	"github.com/perlica/perlica/kernel/project"
)

// BlameCommand returns the command blame.
func BlameCommand(c *frame.App) *cobra.Command {
	a := &app{c}
	var asJSON, porcelain bool
	cmd := &cobra.Command{
		Use: "blame FILE[:LINE]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Say for each line of a file which run wrote it, and who allowed it",
		Long: `Print the lines of a file as it is now, each with the run that wrote it, the person or the rule
that allowed it, and the time. The record decides: the command goes back from the present
file over the recorded changes of tool calls. A line without a recorded origin is unknown.
So is a line whose place was changed without a record, if the origin is not certain. See
docs/changes.md.

--porcelain prints the format of 'git blame --porcelain'. The author is the person or the
rule that allowed the line, the committer sent the input, and the summary is its text.

Exit codes: 0 printed; 1 the file or the log cannot be read; 2 usage.`,
		Example: `  perlica blame main.go
  perlica blame main.go:12
  perlica blame --json main.go | jq -r '.lines[] | select(.change < 0) | .text'`,
		Args: frame.Exactly("FILE"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.blame(cmd.Context(), args[0], asJSON, porcelain)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object with the changes and the lines")
	cmd.Flags().BoolVar(&porcelain, "porcelain", false, "print the format of 'git blame --porcelain'")
	cmd.MarkFlagsMutuallyExclusive("json", "porcelain")
	return cmd
}

func (a *app) blame(ctx context.Context, arg string, asJSON, porcelain bool) error {
	return a.reading(ctx, func(view *origin.View, _ *store.Reader, p *project.Project) error {
		name, line, err := fileAndLine(p, arg)
		if err != nil {
			return err
		}
		paths := pathsOf(p, name)
		content, err := readPresent(paths[0])
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", name, err)
		}
		f, err := view.Blame(ctx, paths, string(content))
		if err != nil {
			return err
		}
		from, to := 0, len(f.Lines)
		if line > 0 {
			if line > len(f.Lines) {
				return frame.UsageErrorf("%s has %s, so there is no line %d", name, frame.Count(len(f.Lines), "line"), line)
			}
			from, to = line-1, line
		}
		switch {
		case asJSON:
			f.Lines = f.Lines[from:to]
			return a.PrintJSON(f)
		case porcelain:
			return a.Write(func(w io.Writer) error { return writePorcelain(w, f, from, to, frame.ShownPath(p, f.Path)) })
		}
		return a.Write(func(w io.Writer) error { return writeLines(w, a.Styles(a.Stdout), f, from, to) })
	})
}

// fileAndLine splits the argument FILE:LINE. line is 0 if the argument names no line, or if a file has the whole
// argument as its name.
func fileAndLine(p *project.Project, arg string) (name string, line int, err error) {
	at := strings.LastIndexByte(arg, ':')
	if at < 0 {
		return arg, 0, nil
	}
	if _, err := os.Lstat(pathsOf(p, arg)[0]); !errors.Is(err, os.ErrNotExist) {
		return arg, 0, nil
	}
	line, err = strconv.Atoi(arg[at+1:])
	if err != nil || line < 1 {
		return "", 0, frame.UsageErrorf("%q: write the number of a line after the colon", arg)
	}
	return arg[:at], line, nil
}

// maxCell is the maximum width of the columns with the input's text and with the person or rule, in terminal cells.
const maxCell = 20

// writeLines writes the lines of a file, each after its run, its input, the person or rule, and the time.
func writeLines(w io.Writer, s screen.Styles, f origin.File, from, to int) error {
	rows, widths := make([][]string, to-from), make([]int, 4)
	for i, l := range f.Lines[from:to] {
		row := []string{"unknown", "", "", ""}
		if l.Change >= 0 {
			c := f.Changes[l.Change]
			row = []string{frame.ShortID(c.Run), runewidth.Truncate(frame.OneLine(c.Text), maxCell, "…"),
				runewidth.Truncate(frame.OneLine(allowedBy(c.Decision)), maxCell, "…"), c.At.Local().Format(shortTime)}
		}
		for k, cell := range row {
			widths[k] = max(widths[k], runewidth.StringWidth(cell))
		}
		rows[i] = row
	}
	var b strings.Builder
	number := len(strconv.Itoa(to))
	for i, row := range rows {
		for k, cell := range row {
			if widths[k] == 0 {
				continue
			}
			text := cell + strings.Repeat(" ", widths[k]-runewidth.StringWidth(cell)+1)
			if strings.HasPrefix(cell, unasked) && k == 2 {
				text = s.Red(text)
			}
			b.WriteString(text)
		}
		fmt.Fprintf(&b, "%*d) %s\n", number, from+i+1, screen.Sanitize(f.Lines[from+i].Text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// unasked is the result of allowedBy for a change that is on record as unasked.
const unasked = "UNASKED"

// writePorcelain writes the format of git blame --porcelain. The id of a commit is the id of the run, padded with
// zeros. A line of unknown origin has an id of zeros and the author "Unknown".
func writePorcelain(w io.Writer, f origin.File, from, to int, name string) error {
	var b strings.Builder
	told := map[string]bool{}
	for i := from; i < to; i++ {
		l := f.Lines[i]
		id := commitID(f, l)
		fmt.Fprintf(&b, "%s %d %d", id, i+1, i+1)
		if i == from || commitID(f, f.Lines[i-1]) != id {
			n := 1
			for i+n < to && commitID(f, f.Lines[i+n]) == id {
				n++
			}
			fmt.Fprintf(&b, " %d", n)
		}
		b.WriteString("\n")
		if !told[id] {
			told[id] = true
			b.WriteString(commitLines(f, l, name))
		}
		b.WriteString("\t" + l.Text + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// commitID returns the id of a line's run as git would write the id of a commit.
func commitID(f origin.File, l origin.Line) string {
	id := ""
	if l.Change >= 0 {
		id = strings.ReplaceAll(string(f.Changes[l.Change].Run), "-", "")
	}
	return id + strings.Repeat("0", max(0, 40-len(id)))
}

// commitLines returns the header lines that git blame --porcelain prints for a commit, here for the run of a line.
func commitLines(f origin.File, l origin.Line, name string) string {
	allowed, sender, summary, at := "Unknown", "Unknown", "Origin not on record", int64(0)
	if l.Change >= 0 {
		c := f.Changes[l.Change]
		allowed, sender, summary, at = allowedBy(c.Decision), c.By, c.Text, c.At.Unix()
	}
	var b strings.Builder
	for _, p := range [][2]string{{"author", allowed}, {"committer", sender}} {
		fmt.Fprintf(&b, "%s %s\n%s-mail <>\n%s-time %d\n%s-tz +0000\n", p[0], frame.OneLine(p[1]), p[0], p[0], at, p[0])
	}
	fmt.Fprintf(&b, "summary %s\nfilename %s\n", frame.OneLine(summary), frame.OneLine(name))
	return b.String()
}
