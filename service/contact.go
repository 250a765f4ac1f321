package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/bot"
)

// Contact is a person on a channel who may use the bridge.
type Contact struct {
	Channel string          `json:"channel"`
	ID      string          `json:"contact"` // the platform's
	Chat    string          `json:"chat"`    // where it was paired
	Name    string          `json:"name"`
	Rights  access.Rights   `json:"rights"`
	Paired  time.Time       `json:"paired"`
	Session event.SessionID `json:"session"` // in which it talks; empty: in none yet
	// Language is the one that it has chosen; empty: none.
	Language language.Language `json:"language,omitempty"`
	Follows  bool              `json:"follows,omitempty"` // it is told what happens in the sessions of others

	fact fact.ContactPaired // as it is vouched for
}

// literal is Markdown that shows words as they are, in one line.
func literal(s string) string { return escaper.Replace(access.Visible(s)) }

var escaper = strings.NewReplacer(`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`)

// Label names the contact on the record: its name may be anybody's, its id is not.
func (c Contact) Label() string {
	if c.Name == "" || c.Name == c.ID {
		return c.Channel + ":" + c.ID
	}
	return c.Name + " (" + c.Channel + ":" + c.ID + ")"
}

func (c Contact) key() fact.Peer { return fact.Peer{Channel: c.Channel, Contact: c.ID} }

// say returns the sentences in which a contact is spoken to; somebody who is not paired, and one who has
// chosen none, in the language that is configured.
func (b *Bridge) say(who fact.Peer) *language.Sentences {
	b.mu.Lock()
	l, known := b.spoken[who]
	configured := b.settings.Language
	b.mu.Unlock()
	if !known {
		c, paired, err := b.records.contact(b.hard, who.Channel, who.Contact)
		if l = c.Language; err == nil && paired {
			b.mu.Lock()
			b.spoken[who] = l
			b.mu.Unlock()
		}
	}
	return cmp.Or(l, configured).Sentences()
}

// DefaultRights are those of a contact of which nothing else was said.
func DefaultRights() access.Rights { return access.Rights{access.Ask, access.Approve} }

// voucher is what this user's own state says of a contact: it was paired here, with these rights,
// for the log at this place. A log that is copied elsewhere brings no contacts along.
type voucher struct {
	Log string `json:"log"`
	fact.ContactPaired
}

func placeOf(r *store.Reader) string { return bot.Place(r.Path()) }

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

// Grant gives a contact that Contacts has returned other rights, which count at once.
func (r *Records) Grant(ctx context.Context, log *eventlog.Log, c Contact, rights access.Rights, by string) error {
	if rights.String() == c.Rights.String() {
		return nil
	}
	now := c.fact
	now.Rights = rights
	// If we die behind this, it vouches for nothing that is on record; behind the next step, both sets of
	// rights are vouched for, and the new one is on record.
	if err := r.vouchers.Add(ctx, voucher{r.place, now}); err != nil {
		return err
	}
	f := fact.ContactChanged{Peer: c.key(), Rights: rights, By: by}
	if _, err := log.Append(ctx, event.NewFact(event.ContactChanged, "user", event.Refs{}, f)); err != nil {
		return err
	}
	return r.vouchers.Revoke(ctx, voucher{r.place, c.fact})
}

// Unpair takes a contact's rights away, whether it counts or not.
func (r *Records) Unpair(ctx context.Context, log *eventlog.Log, c Contact, by string) error {
	// First what counts: if we die between, the contact has no rights, and is still listed.
	if err := r.vouchers.Revoke(ctx, voucher{r.place, c.fact}); err != nil {
		return err
	}
	_, err := log.Append(ctx, event.NewFact(event.ContactUnpaired, "user", event.Refs{}, fact.ContactUnpaired{Peer: c.key(), By: by}))
	return err
}
