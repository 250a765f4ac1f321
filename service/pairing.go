package service

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact/bridge"
	"github.com/perlica/perlica/service/channel"
)

// How long a code counts, and how many guesses it stands.
const (
	PairingTime     = 5 * time.Minute
	pairingAttempts = 10
	firstDelay      = 2 * time.Second // of a sender that guessed wrong; doubled each time
)

// OpenPairing makes a new code, which replaces the one before. Anyone who sends it to a channel
// within PairingTime is paired with the given rights. The code itself is not on the log.
func OpenPairing(ctx context.Context, log *eventlog.Log, rights Rights, by string, now time.Time) (code string, err error) {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return "", err
	}
	code = fmt.Sprintf("%06d", n)
	f := bridge.Pairing{ID: uuid.Must(uuid.NewV7()).String(), Salt: make([]byte, 16), Rights: rights, Expires: now.Add(PairingTime), By: by}
	if _, err := rand.Read(f.Salt); err != nil {
		return "", err
	}
	f.Hash = hashCode(f.Salt, code)
	_, err = log.Append(ctx, event.NewFact(event.PairingOpened, "user", event.Refs{}, f))
	return code, err
}

// hashCode keeps a code from being read off the log by a glance. Anyone who has the log and some
// seconds finds it; it counts for five minutes.
func hashCode(salt []byte, code string) []byte {
	sum := sha256.Sum256(append(append([]byte(nil), salt...), code...))
	return sum[:]
}

// isCode reports whether a text has the form of a code.
func isCode(text string) bool {
	return len(text) == 6 && strings.Trim(text, "0123456789") == ""
}

// pairing is the code that is open.
type pairing struct {
	id         string
	salt, hash []byte
	rights     Rights
}

// Pairing reports whether a code can be used now, and whether this one can.
func (r *Records) Pairing(ctx context.Context, code string, now time.Time) (open, this bool, err error) {
	if err := r.view.CatchUp(ctx); err != nil {
		return false, false, err
	}
	p, open, err := r.openPairing(ctx, now)
	return open, open && subtle.ConstantTimeCompare(hashCode(p.salt, code), p.hash) == 1, err
}

// openPairing returns the code that counts now, if there is one.
func (r *Records) openPairing(ctx context.Context, now time.Time) (p pairing, ok bool, err error) {
	var rights string
	err = r.view.DB().QueryRowxContext(ctx, `
		SELECT id, salt, hash, rights FROM pairing
		WHERE used = 0 AND attempts < ? AND expires > ?`, pairingAttempts, now.UnixNano()).Scan(&p.id, &p.salt, &p.hash, &rights)
	if errors.Is(err, sql.ErrNoRows) {
		return p, false, nil
	}
	p.rights = readRights(rights)
	return p, err == nil, err
}

// mayTry reports whether a sender has waited long enough since its last guess.
func (r *Records) mayTry(ctx context.Context, who bridge.Peer, now time.Time) (bool, error) {
	var attempts int
	var last int64
	err := r.view.DB().QueryRowxContext(ctx, `
		SELECT attempts, last FROM strangers WHERE channel = ? AND contact = ?`, who.Channel, who.Contact).Scan(&attempts, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	if attempts == 0 {
		return err == nil, err
	}
	delay := firstDelay << min(attempts-1, 16)
	return now.Sub(time.Unix(0, last)) >= delay, err
}

// stranger takes in what somebody says who is not paired: the code, or nothing. No one else
// gets an answer. The caller appends the events.
func (b *Bridge) stranger(ctx context.Context, channel string, m channel.Inbound) ([]event.Event, error) {
	who, now := bridge.Peer{Channel: channel, Contact: m.Contact}, b.opt.Now()
	code := strings.Join(strings.Fields(m.Text), "") // it is shown in two groups
	p, open, err := b.records.openPairing(ctx, now)
	if err != nil || !open || m.Quoted || !isCode(code) {
		return b.ignore(who, now), err
	}
	if may, err := b.records.mayTry(ctx, who, now); err != nil || !may {
		return b.ignore(who, now), err
	}
	// The attempt is counted before it is judged: a crash between gives no one another one.
	if _, err := b.log().Append(ctx, event.NewFact(event.PairingAttempted, "user", event.Refs{}, bridge.Attempt{Pairing: p.id, Peer: who})); err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(hashCode(p.salt, code), p.hash) != 1 {
		return nil, nil
	}
	paired := bridge.Paired{Peer: who, Chat: m.Chat, Name: tidy(m.Name), Rights: p.rights, Pairing: p.id, Message: m.ID}
	// If we die behind this it vouches for nothing that is on record.
	if err := b.records.vouchers.Add(ctx, voucher{b.records.place, paired}); err != nil {
		b.warn("no one can be paired: the user's own state cannot be written", "error", err.Error())
		return nil, nil
	}
	b.info("paired", "contact", who.Channel+":"+who.Contact, "name", paired.Name, "rights", p.rights.text())
	return []event.Event{
		event.NewFact(event.ContactPaired, "user", event.Refs{}, paired),
		b.queueEvent("", bridge.Queued{Peer: who, Chat: m.Chat, Kind: outNotice,
			Text: b.render(channel, "You are paired. Write to the agent; `/help` says what else can be said here.")}),
	}, nil
}

// How many strangers are recorded in a while; the rest are counted.
const (
	strangerEvents = 5
	strangerWindow = time.Minute
)

// ignore records that a stranger was ignored, unless there were too many of late.
func (b *Bridge) ignore(who bridge.Peer, now time.Time) []event.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.strangersSince) >= strangerWindow {
		b.strangersSince, b.strangersRecorded = now, 0
	}
	if b.strangersRecorded >= strangerEvents {
		b.strangersLeft++
		return nil
	}
	b.strangersRecorded++
	f := bridge.Stranger{Peer: who, Since: b.strangersLeft}
	b.strangersLeft = 0
	return []event.Event{event.NewFact(event.StrangerIgnored, "user", event.Refs{}, f)}
}
