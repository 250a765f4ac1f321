package service

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/bot"
)

// Contact is a person on a channel with the right to use the bridge.
type Contact struct {
	Channel string          `json:"channel"`
	ID      string          `json:"contact"` // the platform's id
	Chat    string          `json:"chat"`    // the chat of the pairing
	Name    string          `json:"name"`
	Rights  access.Rights   `json:"rights"`
	Paired  time.Time       `json:"paired"`
	Session event.SessionID `json:"session"` // the session that was chosen last, in any chat; empty means none
	// Language is the contact's chosen language. It is empty if the contact has not chosen one.
	Language language.Language `json:"language,omitempty"`
	Follows  bool              `json:"follows,omitempty"` // the contact is told about the turns of other front ends

	fact fact.ContactPaired // the recorded pairing; the contact's voucher must contain an equal one
}

// literal returns Markdown that shows a text unchanged in one line.
func literal(s string) string { return escaper.Replace(access.Visible(s)) }

var escaper = strings.NewReplacer(`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`)

// Label names the contact on the record. Several contacts may share a name, but not an id.
func (c Contact) Label() string {
	if c.Name == "" || c.Name == c.ID {
		return c.Channel + ":" + c.ID
	}
	return c.Name + " (" + c.Channel + ":" + c.ID + ")"
}

func (c Contact) key() fact.Peer { return fact.Peer{Channel: c.Channel, Contact: c.ID} }

// sentencesFor returns the sentences in a contact's language. An unpaired contact, and one without
// a chosen language, get the configured language.
func (b *Bridge) sentencesFor(who fact.Peer) *language.Sentences {
	b.mu.Lock()
	l, known := b.spoken[who]
	configured := b.current.Language
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

// DefaultRights returns the rights of a contact if the pairing names no others.
func DefaultRights() access.Rights { return access.Rights{access.Ask, access.Approve} }

// voucher is the user's own statement that this user paired the contact, with these rights, for the log at this path.
// Vouchers are stored outside the log, so the contacts of a copied log have no rights.
type voucher struct {
	Log string `json:"log"`
	fact.ContactPaired
}

func placeOf(r *store.Reader) string { return bot.Place(r.Path()) }

// Confirm vouches for a contact that Unconfirmed has returned. After a nil error the contact has its recorded rights.
func (r *Records) Confirm(ctx context.Context, c Contact) error {
	return r.vouchers.Add(ctx, voucher{r.place, c.fact})
}

// Confirming returns the command with which a person confirms a contact that Unconfirmed returned.
func Confirming(c Contact) string {
	ref := c.Channel + ":" + c.ID
	return fmt.Sprintf("'perlica service pair %s' if you know it, 'perlica service unpair %s' if not", ref, ref)
}

// Grant changes the rights of a contact that Contacts has returned. The new rights apply at once.
func (r *Records) Grant(ctx context.Context, log *eventlog.Log, c Contact, rights access.Rights, by string) error {
	if rights.String() == c.Rights.String() {
		return nil
	}
	now := c.fact
	now.Rights = rights
	// If the process dies after this step, the new voucher has no effect, because no such rights are on record. If it
	// dies after the next step, the recorded new rights are vouched for, and the old voucher remains without effect.
	if err := r.vouchers.Add(ctx, voucher{r.place, now}); err != nil {
		return err
	}
	f := fact.ContactChanged{Peer: c.key(), Rights: rights, By: by}
	if _, err := log.Append(ctx, event.NewFact(event.ContactChanged, "user", event.Refs{}, f)); err != nil {
		return err
	}
	return r.vouchers.Revoke(ctx, voucher{r.place, c.fact})
}

// Unpair ends a contact's rights. The contact need not be vouched for.
func (r *Records) Unpair(ctx context.Context, log *eventlog.Log, c Contact, by string) error {
	// The voucher is removed first. If the process dies before the next step, the contact has no rights but is still
	// listed, so a person can unpair it again.
	if err := r.vouchers.Revoke(ctx, voucher{r.place, c.fact}); err != nil {
		return err
	}
	_, err := log.Append(ctx, event.NewFact(event.ContactUnpaired, "user", event.Refs{},
		fact.ContactUnpaired{Peer: c.key(), By: by}))
	return err
}
