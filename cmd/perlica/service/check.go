package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/service/channel"
)

func (a *app) serviceCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check NAME", Annotations: frame.ReadOnly.Annotation(),
		Short: "Check the settings of a channel on its platform; exit code 1 if something is missing",
		Long: `Open a channel and ask its platform about the account of the bridge: the token, the rights,
and the settings of the app. Each result is ok, warn or fail, with the next step. The command
reads no message and sends none.`,
		Example: "  perlica service check matrix",
		Args:    frame.Exactly("NAME"), ValidArgsFunction: completeChannel(),
		RunE: func(cmd *cobra.Command, args []string) error { return a.checkSettings(cmd.Context(), args[0]) },
	}
}

// checkTime limits all questions to the platform.
const checkTime = time.Minute

// checkSettings prints the findings of a channel.
func (a *app) checkSettings(ctx context.Context, name string) error {
	c, err := a.openAlone(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	findings := findingsOf(ctx, c)
	if closer, ok := c.(io.Closer); ok {
		err = closer.Close()
	}
	failed := false
	for _, f := range findings {
		failed = failed || f.Fails
		if werr := a.Write(func(w io.Writer) error { return writeFinding(w, f) }); werr != nil {
			return errors.Join(err, werr)
		}
	}
	if err == nil && failed {
		err = frame.ExitFailure.With(nil)
	}
	return err
}

// findingsOf returns the findings of a channel. A channel that is no Checker has at most the name of its account.
func findingsOf(ctx context.Context, c channel.Channel) []channel.Finding {
	if checker, ok := c.(channel.Checker); ok {
		return checker.Check(ctx)
	}
	p, ok := c.(prober)
	if !ok {
		return []channel.Finding{{Name: "setup", Detail: "complete"}}
	}
	name, err := p.Probe(ctx)
	if err != nil {
		return []channel.Finding{{Name: "account", Detail: err.Error(), Fails: true,
			Next: "compare the settings with docs/channel-" + c.Name() + ".md"}}
	}
	return []channel.Finding{{Name: "account", Detail: name}}
}

func writeFinding(w io.Writer, f channel.Finding) error {
	mark := "ok  "
	switch {
	case f.Fails:
		mark = "FAIL"
	case f.Next != "":
		mark = "warn"
	}
	detail := strings.ReplaceAll(f.Detail, channel.ErrNotSent.Error()+": ", "") // a check sends no message
	text := fmt.Sprintf("%s  %-12s  %s", mark, f.Name, frame.OneLine(detail))
	if f.Next != "" {
		text += "\n      next: " + frame.OneLine(f.Next)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
