package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/policy"
)

func (a *app) policyApprovalsCommand() *cobra.Command {
	return frame.Group("approvals", "List and revoke the answers that Perlica remembers",
		`An approval is a yes or no that a person told Perlica to remember. It holds for exactly one
command or path, in one session or in the whole context. The rules of the configuration have
precedence over approvals.`,
		a.approvalsListCommand(), a.approvalsRevokeCommand())
}

// listedApproval is an approval as the command prints it in a list.
type listedApproval struct {
	policy.Approval
	Expired bool `json:"expired"`
	// Counts is false if this user account has not given the approval. The log may come from another machine.
	Counts bool `json:"counts"`
}

func (a *app) listApprovals(ctx context.Context, expired bool) ([]listedApproval, error) {
	p, err := a.Locate(nil)
	if err != nil {
		return nil, err
	}
	count, all, err := a.readApprovals(ctx, p)
	if err = a.EmptyIfNoLog(err); err != nil {
		return nil, err
	}
	now := time.Now()
	list := []listedApproval{}
	for _, x := range all {
		l := listedApproval{Approval: x, Expired: !x.Expires.IsZero() && !now.Before(x.Expires)}
		l.Counts = !l.Expired && slices.ContainsFunc(count, func(c policy.Approval) bool { return c.ID == x.ID })
		if expired || !l.Expired {
			list = append(list, l)
		}
	}
	return list, nil
}

func (a *app) approvalsListCommand() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "list", Annotations: frame.ReadOnly.Annotation(),
		Aliases: []string{"ls"},
		Short:   "List the remembered answers, oldest first",
		Example: `  perlica policy approvals list
  perlica policy approvals list --all --json`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := a.listApprovals(cmd.Context(), all)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			if len(list) == 0 {
				a.Note("nothing is remembered")
				return nil
			}
			now := time.Now()
			g := frame.Grid{Head: []string{"APPROVAL", "EFFECT", "PROVIDER", "BY", "MADE", "UNTIL", "WHAT"}}
			for _, l := range list {
				g.Add(frame.ShortID(l.ID), string(l.Effect), cmp.Or(l.Provider, "any"), l.By, frame.FormatAge(l.Made, now),
					l.validUntil(), l.scopeText())
			}
			return a.Table(g)
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list expired answers, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (l listedApproval) validUntil() string {
	switch {
	case l.Expires.IsZero():
		return "for good"
	case l.Expired:
		return "expired"
	}
	return l.Expires.Local().Format(time.DateTime)
}

func (l listedApproval) scopeText() string {
	what := l.String()
	if l.Dir != "" {
		what += ", started in " + l.Dir
	}
	if !l.Counts && !l.Expired {
		what += " (does not count: it was not given on this account)"
	}
	return what
}

func (a *app) approvalsRevokeCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "revoke ID | --all", Annotations: frame.PersonOnly.Annotation(),
		Short: "End a remembered answer, or all of them",
		Long: `End a remembered answer. It then answers no question any longer, even in runs that are under
way. ID is its id, or a unique beginning or end of the id. The answer and its end stay on the
log.`,
		Example: `  perlica policy approvals revoke 1a2b3c4d
  perlica policy approvals revoke --all`,
		Args: frame.Between(0, "ID"), ValidArgsFunction: frame.CompleteFirst(a.completeApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return frame.WithHint(frame.UsageErrorf("either an ID or --all"), "see 'perlica policy approvals list'")
			}
			return a.revokeApprovals(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "end all remembered answers, including expired ones")
	return cmd
}

// revokeApprovals revokes the named approval or all approvals.
func (a *app) revokeApprovals(ctx context.Context, args []string) error {
	listed, err := a.listApprovals(ctx, true)
	if err != nil {
		return err
	}
	var list []policy.Approval
	for _, l := range listed {
		list = append(list, l.Approval)
	}
	if len(args) > 0 {
		one, err := report.FindApproval(list, args[0])
		if errors.Is(err, report.ErrNoApproval) || errors.Is(err, report.ErrAmbiguousApproval) {
			err = frame.WithHint(err, "see 'perlica policy approvals list --all'")
		}
		if err != nil {
			return err
		}
		list = []policy.Approval{one}
	}
	if len(list) == 0 {
		a.Note("nothing is remembered")
		return nil
	}
	err = a.Writing(ctx, func(r *kernel.Runner, _ *project.Project) error {
		return r.RevokeApprovals(ctx, list, frame.UserName(a.Getenv))
	})
	if err != nil {
		return err
	}
	return a.Write(func(w io.Writer) error {
		for _, x := range list {
			if _, err := fmt.Fprintln(w, frame.OneLine(fmt.Sprintf("revoked %s: %s %s", frame.ShortID(x.ID), x.Effect,
				x))); err != nil {
				return err
			}
		}
		return nil
	})
}

// completeApprovals completes the ids of standing approvals.
func (a *app) completeApprovals(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	list, err := a.listApprovals(cmd.Context(), false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, l := range list {
		ids = append(ids, frame.ShortID(l.ID)+"\t"+frame.OneLine(l.scopeText()))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
