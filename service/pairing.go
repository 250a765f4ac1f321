package service

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// OpenPairing makes a new code, which replaces the earlier one. A sender of the code on any channel
// is paired with the given rights, within the time of access.LimitsOfContacts. The log does not
// contain the code.
func OpenPairing(ctx context.Context, log *eventlog.Log, rights access.Rights, by string,
	now time.Time) (code string, err error) {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return "", err
	}
	code = fmt.Sprintf("%06d", n)
	f, err := access.NewPairing(code, rights, by, now.Add(access.LimitsOfContacts().Time))
	if err != nil {
		return "", err
	}
	_, err = log.Append(ctx, event.NewFact(event.PairingOpened, "user", event.Refs{}, f))
	return code, err
}

// isCode reports whether a text has the form of a code.
func isCode(text string) bool {
	return len(text) == 6 && strings.Trim(text, "0123456789") == ""
}

// codeIn returns the code in a message, or "".
func codeIn(m channel.Inbound) string {
	code := strings.Join(strings.Fields(strings.TrimPrefix(m.Text, "/start ")), "") // people see the code in two groups
	if m.Quoted || !isCode(code) {
		return ""
	}
	return code
}

// pairing is the open code.
type pairing struct {
	id         string
	salt, hash []byte
	rights     access.Rights
}

// Pairing reports whether a pairing is open now, and whether the given code is its code.
func (r *Records) Pairing(ctx context.Context, code string, now time.Time) (open, this bool, err error) {
	if err := r.view.CatchUp(ctx); err != nil {
		return false, false, err
	}
	p, open, err := r.openPairing(ctx, now)
	return open, open && access.IsCode(p.salt, p.hash, code), err
}

// openPairing returns the currently valid code, if it exists.
func (r *Records) openPairing(ctx context.Context, now time.Time) (p pairing, ok bool, err error) {
	var rights string
	err = r.view.DB().QueryRowxContext(ctx, `
		SELECT id, salt, hash, rights FROM pairing
		WHERE used = 0 AND attempts < ? AND expires > ?`, access.LimitsOfContacts().Attempts, now.UnixNano()).
		Scan(&p.id, &p.salt, &p.hash, &rights)
	if errors.Is(err, sql.ErrNoRows) {
		return p, false, nil
	}
	p.rights = access.Recorded(rights)
	return p, err == nil, err
}

// mayTry reports whether a sender may guess now. It is false if the sender has just guessed. The result "first" is true
// for the sender's first guess.
func (r *Records) mayTry(ctx context.Context, who fact.Peer, now time.Time) (may, first bool, err error) {
	var attempts int
	var last int64
	err = r.view.DB().QueryRowxContext(ctx, `
		SELECT attempts, last FROM strangers WHERE channel = ? AND contact = ?`, who.Channel, who.Contact).
		Scan(&attempts, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return true, true, nil
	}
	return err == nil && access.MayGuess(attempts, time.Unix(0, last), now), attempts == 0, err
}

// stranger handles a message of an unpaired sender. It replies only if a pairing is open and the message has a code. A
// sender gets one reply about wrong codes, and none about further ones. The caller appends the events.
func (b *Bridge) stranger(ctx context.Context, channel string, m channel.Inbound) ([]event.Event, error) {
	who, now := fact.Peer{Channel: channel, Contact: m.Contact}, b.opt.Now()
	code := codeIn(m)
	p, open, err := b.records.openPairing(ctx, now)
	if err != nil || !open || code == "" {
		return b.ignoreStranger(who, now), err
	}
	may, first, err := b.records.mayTry(ctx, who, now)
	if err != nil || !may {
		return b.ignoreStranger(who, now), err
	}
	// The attempt is recorded before the code is compared, so a crash gives nobody a further attempt.
	if _, err := b.log().Append(ctx, event.NewFact(event.PairingAttempted, "user", event.Refs{},
		fact.PairingAttempted{Pairing: p.id, Peer: who})); err != nil {
		return nil, err
	}
	if !access.IsCode(p.salt, p.hash, code) {
		if !first { // further guesses get no reply
			return nil, nil
		}
		return []event.Event{queueEvent("", fact.BridgeQueued{Peer: who, Chat: m.Chat, Kind: outRefusal,
			Text: b.renderShort(channel, b.sentencesFor(who).WrongCode)})}, nil
	}
	if (m.Shared || m.Unproven) && p.rights.Has(access.Admin) {
		b.warn("a contact with the right admin is paired only in a private chat with a proven sender", "contact",
			who.Channel+":"+who.Contact)
		word := b.sentencesFor(who).AdminAlone
		if m.Unproven {
			word = b.sentencesFor(who).AdminProven
		}
		return []event.Event{queueEvent("", fact.BridgeQueued{Peer: who, Chat: m.Chat, Kind: outRefusal,
			Text: b.renderShort(channel, word)})}, nil
	}
	paired := fact.ContactPaired{Peer: who, Chat: m.Chat, Name: access.Name(m.Name), Rights: p.rights, Pairing: p.id,
		Message: m.ID}
	// If the process dies after this step, the voucher has no effect, because no contact with this pairing is on
	// record.
	if err := b.records.vouchers.Add(ctx, voucher{b.records.place, paired}); err != nil {
		b.warn("no one can be paired: the user's own state cannot be written", "error", err.Error())
		return nil, nil
	}
	b.mu.Lock()
	delete(b.spoken, who) // a contact that was paired before starts again without a chosen language
	b.mu.Unlock()
	b.info("paired", "contact", who.Channel+":"+who.Contact, "name", paired.Name, "rights", p.rights.String())
	return []event.Event{
		event.NewFact(event.ContactPaired, "user", event.Refs{}, paired),
		queueEvent("", fact.BridgeQueued{Peer: who, Chat: m.Chat, Kind: outNotice,
			Text: b.renderShort(channel, b.heading()+b.sentencesFor(who).Paired)}),
	}, nil
}

// ignoreStranger records that a stranger was ignored, unless too many were recorded recently.
func (b *Bridge) ignoreStranger(who fact.Peer, now time.Time) []event.Event {
	unrecorded, ok := b.strangers.Record(now)
	if !ok {
		return nil
	}
	return []event.Event{event.NewFact(event.StrangerIgnored, "user", event.Refs{},
		fact.StrangerIgnored{Peer: who, Since: unrecorded})}
}
