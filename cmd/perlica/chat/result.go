package chat

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/report"
)

// result is a tool call with a result that was shown only in part. The record has the whole result.
type result struct {
	run  event.RunID
	tool string
}

// showWholeResult shows the whole result of a tool call. number names the call. Without a number it is the last one.
func (c *chat) showWholeResult(number string) error {
	n, err := strconv.Atoi(number)
	switch {
	case len(c.results) == 0:
		return errors.New("no result was folded in this chat yet; perlica log show tells a run")
	case number == "last":
		n = len(c.results)
	case err != nil, n < 1, n > len(c.results):
		return fmt.Errorf("%q is no number of a folded result: they go from 1 to %d", frame.OneLine(number), len(c.results))
	}
	rows, err := c.wholeResult(c.results[n-1])
	if err != nil {
		return err
	}
	if pager := c.a.Getenv("PAGER"); pager != "" && !c.dumb {
		return c.pageElsewhere(pager, rows)
	}
	text := strings.Split(strings.TrimSuffix(frame.RenderRows(rows, c.styles), "\n"), "\n")
	err = screen.ShowPages(c.ctx, c.keys.keys, c.a.Stderr, func() int { return max(screen.TerminalHeight(c.a.Stderr), 2) },
		text)
	if errors.Is(err, io.EOF) {
		return nil // The chat notices the closed terminal when it reads the next line.
	}
	return err
}

// wholeResult reads the result of a tool call from the record.
func (c *chat) wholeResult(of result) ([]card.Row, error) {
	var last *report.StepTool
	for step, err := range report.Story(c.ctx, &c.r.Log().Reader, of.run, event.Query{}) {
		if err != nil {
			return nil, err
		}
		if t, ok := step.What.(report.StepTool); ok && t.ID == of.tool {
			last = &t
		}
	}
	if last == nil {
		return nil, errors.New("it is no longer on record")
	}
	width := max(screen.TerminalWidth(c.a.Stderr), card.MinWidth)
	rows := card.Text("tool", last.Title, width)
	if input := string(last.Call.RawInput); input != "" && input != "{}" {
		rows = append(rows, card.Text("input", input, width)...)
	}
	whole, _ := frame.ToolResultRows(last.Call, width, false)
	return append(rows, whole...), nil
}

// pageElsewhere shows rows in the user's own pager.
func (c *chat) pageElsewhere(pager string, rows []card.Row) error {
	var text strings.Builder
	for _, r := range rows {
		text.WriteString(r.String() + "\n")
	}
	c.setBracketedPaste(false)
	defer c.setBracketedPaste(true)
	return c.tty.Aside(func() error {
		cmd := exec.Command("sh", "-c", pager) // The variable PAGER contains a shell command, as for git.
		if runtime.GOOS == "windows" {
			words := strings.Fields(pager)
			cmd = exec.Command(words[0], words[1:]...)
		}
		cmd.Env = c.a.ProgramEnv()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text.String()), c.a.Stderr, c.a.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("PAGER: %w", err)
		}
		return nil
	})
}
