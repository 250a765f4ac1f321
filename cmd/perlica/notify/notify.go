// Package notify has the commands for notifications.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/notify"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command notify with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	return frame.Group("notify", "See and test the targets of notifications",
		`The [[notify]] tables of the configuration name the targets and the causes; docs/notify.md
describes them. The processes that work on a project deliver its notifications.`,
		a.listCommand(), a.testCommand())
}

// row is a target as the command list prints it.
type row struct {
	Target string   `json:"target"` // without secrets
	When   []string `json:"when,omitempty"`
	After  string   `json:"after,omitempty"`
	// Content is true if the notifications contain words of questions and answers.
	Content bool `json:"content"`
	// Elsewhere says which process delivers to the target. It is empty if this process can deliver to it.
	Elsewhere string `json:"elsewhere,omitempty"`
	Error     string `json:"error,omitempty"` // the reason why the target cannot be used
	// Last is the newest result on record. Nil means that the record has no result.
	Last *result `json:"last,omitempty"`
}

// result is the newest attempt to notify a target.
type result struct {
	State string    `json:"state"` // "sent", "failed" or "unknown"
	At    time.Time `json:"at"`
	Error string    `json:"error,omitempty"`
}

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Annotations: frame.ReadOnly.Annotation(), Aliases: []string{"ls"},
		Short: "List the targets of notifications, with their last results", Args: frame.Exactly(),
		ValidArgsFunction: frame.NoFiles,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (a *app) list(ctx context.Context, asJSON bool) error {
	p, err := a.LocateToRead()
	if err != nil {
		return err
	}
	targets, errs := notify.Targets(ctx, p, notify.Options{Terminal: a.Terminal()})
	targets, unpaired, err := a.checkContacts(ctx, p, targets)
	if err != nil {
		return err
	}
	errs = append(errs, unpaired...)
	last, err := lastResults(ctx, p)
	if err != nil {
		return err
	}
	rows := []row{}
	for _, t := range targets {
		for _, r := range t.Rules {
			one := row{Target: t.Name, When: r.When, Content: r.Content, Elsewhere: t.Elsewhere, Last: last[t.Digest]}
			if r.After > 0 {
				one.After = r.After.String()
			}
			rows = append(rows, one)
		}
	}
	for _, err := range errs {
		rows = append(rows, row{Error: err.Error()})
	}
	if asJSON {
		return a.PrintJSON(rows)
	}
	if len(rows) == 0 {
		a.Note("no [[notify]] table counts here; docs/notify.md describes them")
		return nil
	}
	g := frame.Grid{Head: []string{"TARGET", "WHEN", "AFTER", "CONTENT", "LAST"}}
	for _, r := range rows {
		state := r.Elsewhere
		if r.Last != nil {
			state = strings.TrimSpace(r.Last.State + " " + r.Last.At.Local().Format(time.DateTime) + " " + r.Last.Error)
		}
		if r.Error != "" {
			r.Target, state = "cannot be used", r.Error
		}
		g.Add(r.Target, strings.Join(r.When, " "), r.After, map[bool]string{true: "yes", false: "no"}[r.Content], state)
	}
	return a.Table(g)
}

// checkContacts returns the targets without the contacts that are not paired, and an error for each of these contacts.
func (a *app) checkContacts(ctx context.Context, p *project.Project, targets []notify.Target) (usable []notify.Target,
	unpaired []error, err error) {
	if !slices.ContainsFunc(targets, func(t notify.Target) bool { return t.Contact != "" }) {
		return targets, nil, nil
	}
	check := func(r *service.Records) error {
		for _, t := range targets {
			if t.Contact != "" {
				_, err := r.Named(ctx, t.Contact)
				if rejected := (*channel.RejectedError)(nil); errors.As(err, &rejected) {
					unpaired = append(unpaired, fmt.Errorf("%s: %s", t.Rules[0].Origin, rejected.Why))
					continue
				}
				if err != nil {
					return err
				}
			}
			usable = append(usable, t)
		}
		return nil
	}
	log, _, err := p.OpenReader(ctx)
	if errors.As(err, &project.NoLogError{}) { // Nobody is paired before there is a log.
		return targets, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer frame.CloseShown(log, &err)
	paths, err := p.Workspace.EnsureService()
	if err != nil {
		return nil, nil, err
	}
	r, remove, err := project.OpenView(paths.Bridge, func(path string) (*service.Records, error) {
		return service.OpenRecords(ctx, log, path, p.Vouchers())
	})
	if err != nil {
		return nil, nil, err
	}
	defer remove()
	err = errors.Join(check(r), r.Close())
	return usable, unpaired, err
}

// lastResults returns the newest result for each target, by the target's digest.
func lastResults(ctx context.Context, p *project.Project) (map[string]*result, error) {
	log, _, err := p.OpenReader(ctx)
	if errors.As(err, &project.NoLogError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	last := map[string]*result{}
	for e, eerr := range log.Events(ctx, event.Query{Types: []event.Type{event.NotifySent, event.NotifyFailed},
		Newest: true, Limit: newestResults}) {
		if eerr != nil {
			err = eerr
			break
		}
		f, derr := fact.Decode[fact.Notified](e)
		if derr != nil || last[f.Target] != nil {
			continue // its payload was removed, or there is a newer result
		}
		state := "sent"
		switch {
		case f.Unknown:
			state = "unknown"
		case e.Type == event.NotifyFailed:
			state = "failed"
		}
		last[f.Target] = &result{state, e.Time, f.Error}
	}
	return last, errors.Join(err, log.Close())
}

// newestResults is the number of results that lastResults reads.
const newestResults = 1000

func (a *app) testCommand() *cobra.Command {
	return &cobra.Command{
		Use: "test [TARGET]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Send one notification to each target and print the replies",
		Long: `Send one notification to each target, or to the targets with this name, and print their
replies. 'perlica notify list' shows the names. Nothing is repeated, and nothing is recorded.`,
		Example: "  perlica notify test\n  perlica notify test desktop",
		Args:    frame.Between(0, "TARGET"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.test(cmd.Context(), strings.Join(args, ""))
		},
	}
}

// test sends one notification to each target whose name begins with the given text.
func (a *app) test(ctx context.Context, name string) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	targets, errs := notify.Targets(ctx, p, notify.Options{Terminal: a.Terminal()})
	targets, unpaired, err := a.checkContacts(ctx, p, targets)
	if err != nil {
		return err
	}
	errs = append(errs, unpaired...)
	n, failed := 0, len(errs)
	for _, err := range errs {
		a.Complain(err)
	}
	for _, t := range targets {
		if !strings.HasPrefix(t.Name, name) {
			continue
		}
		n++
		if t.Elsewhere != "" {
			if err := a.Say("%s: not tested here: %s", t.Name, t.Elsewhere); err != nil {
				return err
			}
			continue
		}
		reply, err := notify.Test(ctx, p, t)
		if err != nil {
			failed++
			a.Complain(fmt.Errorf("%s: %w", t.Name, err))
			continue
		}
		if err := a.Say("%s: sent; the reply: %s", t.Name, quoted(reply)); err != nil {
			return err
		}
	}
	switch {
	case n == 0 && len(errs) == 0:
		return frame.WithHint(frame.UsageErrorf("there is no target %q", name), "see 'perlica notify list'")
	case failed > 0:
		return frame.ExitFailure.With(nil)
	}
	return nil
}

// quoted returns a reply as one quoted line.
func quoted(reply string) string {
	b, err := json.Marshal(reply)
	if err != nil || reply == "" {
		return "none"
	}
	return string(b)
}
