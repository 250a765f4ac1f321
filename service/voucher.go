package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact/bridge"
)

// voucher is what this user's own state says of a contact: it was paired here, with these rights,
// for the log at this place. A log that is copied elsewhere brings no contacts along.
type voucher struct {
	Log string `json:"log"`
	bridge.Paired
}

func placeOf(r *store.Reader) string {
	if real, err := filepath.EvalSymlinks(r.Path()); err == nil {
		return real
	}
	return r.Path()
}

// byToken is how the id of a local phone ends that has a token.
var byToken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-[0-9a-f]{16}$`)
})

// nameOnly reports whether a contact was paired when a local phone was anybody who used its name.
func nameOnly(c Contact) bool { return c.Channel == "local" && !byToken().MatchString(c.ID) }

// ErrNameOnly says that a contact cannot be confirmed: it is no one in particular.
var ErrNameOnly = errors.New("that phone was paired by its name alone, which anyone can use")

// Confirm vouches for a contact that Unconfirmed has returned. When it returns nil the contact
// counts, with the rights that it has on record. The error may be ErrNameOnly.
func (r *Records) Confirm(ctx context.Context, c Contact) error {
	if nameOnly(c) {
		return ErrNameOnly
	}
	return r.vouchers.Add(ctx, voucher{r.place, c.fact})
}

// Confirming says how a contact that Unconfirmed has returned comes to count.
func Confirming(c Contact) string {
	ref := c.Channel + ":" + c.ID
	if nameOnly(c) {
		return fmt.Sprintf("'perlica service unpair %s', and pair that phone anew", ref)
	}
	return fmt.Sprintf("'perlica service pair %s' if you know it, 'perlica service unpair %s' if not", ref, ref)
}

// Unpair takes a contact's rights away, whether it counts or not.
func (r *Records) Unpair(ctx context.Context, log *eventlog.Log, c Contact, by string) error {
	// First what counts: if we die between, the contact has no rights, and is still listed.
	if err := r.vouchers.Revoke(ctx, voucher{r.place, c.fact}); err != nil {
		return err
	}
	_, err := log.Append(ctx, event.NewFact(event.ContactUnpaired, "user", event.Refs{}, bridge.Unpaired{Peer: c.key(), By: by}))
	return err
}
