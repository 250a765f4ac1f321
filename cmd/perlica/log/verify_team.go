package log

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/service/team"
)

// verifiedCopy is the result of log verify --team for one copy of a worker's log.
type verifiedCopy struct {
	Worker   string               `json:"worker"`
	Origin   string               `json:"origin"`
	OK       bool                 `json:"ok"`
	Problem  string               `json:"problem,omitempty"`
	Events   int64                `json:"events"`
	Root     string               `json:"root,omitempty"`
	Signed   int64                `json:"signed_events"`
	Cosigned []verify.Cosignature `json:"cosigned,omitempty"`
	Pruned   int64                `json:"pruned_payloads,omitempty"`
	Findings []verify.Finding     `json:"findings,omitempty"`
	More     int                  `json:"more_findings,omitempty"`
	Warnings []string             `json:"warnings,omitempty"`
}

// verifyTeam verifies the copies of all workers' logs on the hub. It uses the workers' keys that this machine has
// pinned.
func (a *app) verifyTeam(ctx context.Context, asJSON bool) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	return team.Use(ctx, p, a.Version, func(t *team.Team) error { return a.verifyCopies(ctx, t, asJSON) })
}

func (a *app) verifyCopies(ctx context.Context, t *team.Team, asJSON bool) error {
	k, err := t.Keeper(ctx, false, func() verify.Auditor { return &report.Audit{} })
	if err != nil {
		return err
	}
	list, err := k.Round(ctx, true)
	if err != nil {
		return err
	}
	found, sound := make([]verifiedCopy, 0, len(list)), true
	for _, v := range list {
		c := verifiedCopy{
			Worker: v.Worker, Origin: v.Origin, OK: v.Problem == "", Problem: v.Problem, Events: v.Events, Signed: v.Signed,
			Cosigned: v.Report.Cosigned, Pruned: v.Pruned, Findings: v.Findings, More: v.More, Warnings: v.WarningTexts(),
		}
		if v.Root != [len(v.Root)]byte{} {
			c.Root = v.Root.String()
		}
		found, sound = append(found, c), sound && c.OK
	}
	if asJSON {
		err = a.PrintJSON(found)
	} else {
		err = a.Write(func(w io.Writer) error {
			_, err := io.WriteString(w, copiesText(found, a.Styles(a.Stdout)))
			return err
		})
	}
	if err == nil && !sound {
		err = frame.ExitFailure.With(nil)
	}
	return err
}

func copiesText(list []verifiedCopy, s screen.Styles) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if len(list) == 0 {
		line("there is no copy on the hub")
	}
	for _, c := range list {
		if c.OK {
			line("%s %s: %s, signed up to event %d", s.Green("OK"), c.Worker, frame.Count(int(c.Events), "event"), c.Signed)
		} else {
			line("%s %s: %s", s.Red("DAMAGED"), c.Worker, screen.Sanitize(c.Problem))
		}
		for i, f := range c.Findings {
			if i > 0 && i < shownFindings { // The first finding was printed already, as the problem.
				line("  %s: %s", f.Kind, screen.Sanitize(f.What))
			}
		}
		writeCosigned(c.Cosigned, func(format string, args ...any) { line("  "+format, args...) })
		for _, text := range c.Warnings {
			line("  warning: %s", screen.Sanitize(text))
		}
	}
	return b.String()
}

// writeCosigned writes a line for each known witness that has cosigned the log.
func writeCosigned(list []verify.Cosignature, line func(format string, args ...any)) {
	for _, c := range list {
		line("cosigned: up to event %d by %s, %s", c.Size, screen.Sanitize(c.Name), c.Time.Format(time.RFC3339))
	}
}
