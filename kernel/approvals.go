package kernel

import (
	"context"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/policy"
)

// RevokeApprovals ends standing approvals, all or none. When it returns nil they answer
// nothing any more, in runs that are under way, too.
func (r *Runner) RevokeApprovals(ctx context.Context, list []policy.Approval, by string) error {
	var events []event.Event
	for _, a := range list {
		refs := event.Refs{Session: event.SessionID(a.Session)}
		events = append(events, event.NewFact(event.ApprovalRevoked, "user", refs, policy.Revocation{
			ID: a.ID, By: by, At: r.opt.Now().UTC(),
		}))
	}
	if len(events) == 0 {
		return nil
	}
	_, err := r.log.Append(ctx, events...)
	return err
}
