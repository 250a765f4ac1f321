// Package doctor is the command that checks everything a run depends on.
package doctor

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/checkup"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/team"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Setups returns the state of the bridge's channels, and the state of the other projects that the bridge's bot
// serves.
type Setups func(ctx context.Context, p *project.Project) (channels, projects []service.Setup)

// Command returns the command doctor.
func Command(c *frame.App, setups Setups) *cobra.Command {
	a := &app{c}
	var format string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Annotations: frame.ReadOnly.Annotation(),
		Short: "Check everything that a run needs; exit code 1 if something is broken",
		Long: `Check the configuration, the project's folder, the disk, the event log and the files made
from it, unfinished runs, the agents, the messaging bridge, and the team's hub. Each result is
ok, warn or fail, with a hint for the repair.

The command changes nothing and starts no agent. To test a folder it writes one file there
and removes the file again.`,
		Example: `  perlica doctor
  perlica doctor --format json | jq '.checks[] | select(.status != "ok")'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				format = "json"
			}
			if format != "text" && format != "json" {
				return frame.UsageErrorf("--format is text or json, not %q", format)
			}
			return a.runDoctor(cmd.Context(), setups, format == "json")
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "the `format`: text or json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	cmd.MarkFlagsMutuallyExclusive("json", "format")
	frame.CompleteFlag(cmd, "format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

type doctorReport struct {
	Schema  int             `json:"schema"`
	Version string          `json:"version"`
	OK      bool            `json:"ok"`
	Failed  int             `json:"failed"`
	Warned  int             `json:"warned"`
	Checks  []checkup.Check `json:"checks"`
}

func (a *app) runDoctor(ctx context.Context, setups Setups, asJSON bool) error {
	p, err := a.Locate(nil)
	rep := doctorReport{Schema: streamjson.Schema, Version: a.Version, Checks: []checkup.Check{}}
	var failed error
	take := func(c checkup.Check) {
		rep.Checks = append(rep.Checks, c)
		switch c.Status {
		case checkup.Fail:
			rep.Failed++
		case checkup.Warn:
			rep.Warned++
		}
		if !asJSON && failed == nil {
			failed = a.Write(func(w io.Writer) error {
				return writeCheck(w, c, a.Styles(a.Stdout),
					screen.TerminalWidth(a.Stdout))
			})
		}
	}
	checkup.Checkup{
		Dirs: p.Dirs, Workspace: p.Workspace, Config: p.Config, Broken: err, Agents: p.Resolver(), Auditor: report.NewAuditor,
		Place: p.KnownLogs().Compare,
	}.Run(ctx, take)
	if err == nil {
		channels, projects := setups(ctx, p)
		a.checkBridge(ctx, p, service.Checkup{Lock: p.Workspace.Service().Lock, Setups: channels, Projects: projects}, take)
		if opt, terr := team.OptionsOf(p, "", a.Version); terr == nil { // An error means that the configuration names no hub.
			opt.Checkup(ctx, frame.HintOf, take)
		}
	}
	rep.OK = rep.Failed == 0
	if asJSON {
		failed = a.PrintJSON(rep)
	} else if failed == nil {
		failed = a.Write(func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "\n"+rep.summary())
			return err
		})
	}
	if failed == nil && !rep.OK {
		failed = frame.ExitFailure.With(nil)
	}
	return failed
}

// checkBridge checks the messaging bridge. It builds the bridge's view of the log in a temporary folder and changes
// nothing in the project.
func (a *app) checkBridge(ctx context.Context, p *project.Project, c service.Checkup, report func(checkup.Check)) {
	if log, _, err := a.Reader(ctx, p); err == nil { // The checks of the log have reported a failure.
		defer func() { _ = log.Close() }() // The log was only read, so a failed close loses no data.
		if dir, err := os.MkdirTemp("", "perlica-view-"); err == nil {
			defer func() { _ = os.RemoveAll(dir) }() // If this fails, the system removes the folder later.
			if r, err := service.OpenRecords(ctx, log, filepath.Join(dir, "service_bridge.db"), p.Vouchers()); err == nil {
				defer func() { _ = r.Close() }() // The view is in a temporary folder, so a failed close loses no data.
				c.Records = r
			}
		}
	}
	c.Run(ctx, report)
}

func (r doctorReport) summary() string {
	switch {
	case r.Failed > 0 && r.Warned > 0:
		return fmt.Sprintf("%s broken, %s.", frame.Count(r.Failed, "thing"), frame.Count(r.Warned, "warning"))
	case r.Failed > 0:
		return fmt.Sprintf("%s broken.", frame.Count(r.Failed, "thing"))
	case r.Warned > 0:
		return fmt.Sprintf("Nothing is broken, %s.", frame.Count(r.Warned, "warning"))
	}
	return "Everything is in order."
}

// writeCheck prints a result with its hint. width is the width of the terminal in columns, and 0 means no limit.
func writeCheck(w io.Writer, c checkup.Check, s screen.Styles, width int) error {
	mark := map[checkup.Status]string{checkup.OK: s.Green("ok  "), checkup.Warn: s.Yellow("warn"),
		checkup.Fail: s.Red("FAIL")}[c.Status]
	const name, indent = 20, 26
	room := math.MaxInt
	if width > 0 {
		room = max(width-indent, name)
	}
	next := "\n" + strings.Repeat(" ", indent)
	text := mark + "  " + runewidth.FillRight(c.Name, name) + strings.Join(card.Rows(frame.OneLine(c.Detail), room), next)
	if c.Hint != "" {
		for _, row := range card.Rows("hint: "+frame.OneLine(c.Hint), room) {
			text += next + s.Dim(row)
		}
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
