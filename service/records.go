package service

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/view"
	"github.com/perlica/perlica/kernel/approvals"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
)

// Records is what the bridge knows, read from its view. Its methods may be called from several
// goroutines.
type Records struct {
	view     *view.View
	place    string // where the log lies
	vouchers approvals.Vouchers
}

// OpenRecords opens the view in the file at path and brings it up to date. vouchers say which of its
// contacts were paired by this user: no others count. The caller must Close it, before the log.
func OpenRecords(ctx context.Context, r *store.Reader, path string, vouchers approvals.Vouchers) (*Records, error) {
	v, err := view.Open(ctx, r, path, nil, projection)
	if err != nil {
		return nil, err
	}
	return &Records{v, placeOf(r), vouchers}, nil
}

// Close releases the view's file.
func (r *Records) Close() error { return r.view.Close() }

// Contacts returns the contacts that are paired, in the order in which they were.
func (r *Records) Contacts(ctx context.Context) ([]Contact, error) {
	return r.counting(ctx, true, "")
}

// Unconfirmed returns the contacts that the log names, and that this user's own state does not vouch
// for: they came with the log, or were paired by an earlier version. They have no rights.
func (r *Records) Unconfirmed(ctx context.Context) ([]Contact, error) {
	return r.counting(ctx, false, "")
}

// counting returns the contacts that are vouched for, or those that are not.
func (r *Records) counting(ctx context.Context, vouched bool, where string, args ...any) ([]Contact, error) {
	if err := r.view.CatchUp(ctx); err != nil {
		return nil, err
	}
	var rows []struct {
		Channel, Contact, Chat, Name, Rights, Pairing, Message string
		Paired                                                 int64
		Session                                                event.SessionID
		Language                                               language.Language
		Follows                                                bool
	}
	err := r.view.DB().SelectContext(ctx, &rows, `
		SELECT channel, contact, chat, name, rights, paired, session, pairing, message, language, follows
		FROM contacts `+where+`
		ORDER BY paired, channel, contact`, args...)
	if err != nil {
		return nil, err
	}
	var list []Contact
	var known approvals.Known
	for _, row := range rows {
		f := fact.ContactPaired{
			Peer: fact.Peer{Channel: row.Channel, Contact: row.Contact}, Chat: row.Chat, Name: row.Name,
			Rights: access.Recorded(row.Rights), Pairing: row.Pairing, Message: row.Message,
		}
		if known == nil {
			if known, err = r.vouchers.Known(ctx); err != nil {
				return nil, err
			}
		}
		if known.Has(voucher{r.place, f}) == vouched {
			list = append(list, Contact{
				Channel: f.Channel, ID: f.Contact, Chat: f.Chat, Name: access.Name(f.Name), Rights: f.Rights, Paired: time.Unix(0, row.Paired),
				Session: row.Session, Language: row.Language, Follows: row.Follows, fact: f,
			})
		}
	}
	return list, nil
}

// contact returns one contact; ok is false if it is not paired.
func (r *Records) contact(ctx context.Context, channel, id string) (c Contact, ok bool, err error) {
	list, err := r.counting(ctx, true, `WHERE channel = ? AND contact = ?`, channel, id)
	if err != nil || len(list) == 0 {
		return Contact{}, false, err
	}
	return list[0], true, nil
}

// Paired reports whether a contact is paired.
func (r *Records) Paired(ctx context.Context, channel, id string) (bool, error) {
	_, ok, err := r.contact(ctx, channel, id)
	return ok, err
}

// cursor returns how far a channel has been read.
func (r *Records) cursor(ctx context.Context, channel string) (string, error) {
	if err := r.view.CatchUp(ctx); err != nil {
		return "", err
	}
	var cursor string
	err := r.view.DB().GetContext(ctx, &cursor, `SELECT cursor FROM channels WHERE name = ?`, channel)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return cursor, err
}

// known reports whether a message was received before, or is one that was sent; of one that was
// received it returns the digest, empty where none is on record.
func (r *Records) known(ctx context.Context, input event.InputID, channel, platform string) (received, sent bool, digest string, err error) {
	err = r.view.DB().QueryRowxContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM inbox WHERE input = ?1), EXISTS (SELECT 1 FROM outbox WHERE channel = ?2 AND platform = ?3),
			coalesce((SELECT iif(json_valid(fact), fact ->> 'input_sha256', NULL) FROM inbox WHERE input = ?1), '')`,
		string(input), channel, platform).Scan(&received, &sent, &digest)
	return received, sent, digest, err
}

// cardOf returns the question to which a message that was sent into a chat belongs: platforms may
// number messages in each chat anew.
func (r *Records) cardOf(ctx context.Context, channel, chat, platform string) (event.InteractionID, error) {
	var q string
	err := r.view.DB().GetContext(ctx, &q, `
		SELECT question FROM outbox
		WHERE channel = ? AND platform = ? AND kind = 'card' AND fact ->> 'chat' = ?`, channel, platform, chat)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return event.InteractionID(q), err
}

// has reports whether a message of a chat is one that was received or sent here.
func (r *Records) has(ctx context.Context, channel, chat, platform string) (has bool, err error) {
	err = r.view.DB().GetContext(ctx, &has, `
		SELECT EXISTS (SELECT 1 FROM inbox WHERE input = ?)
			OR EXISTS (SELECT 1 FROM outbox WHERE channel = ? AND platform = ? AND fact ->> 'chat' = ?)`,
		string(InputID(channel, platform)), channel, platform, chat)
	return has, err
}

// asked reports whether there was a card of a question whose id ends so.
func (r *Records) asked(ctx context.Context, id string) (asked bool, err error) {
	err = r.view.DB().GetContext(ctx, &asked, `SELECT EXISTS (SELECT 1 FROM questions WHERE substr(id, -length(?1)) = ?1)`, strings.ToLower(id))
	return asked, err
}

// wasAsked reports whether there was ever a card of a question.
func (r *Records) wasAsked(ctx context.Context, id event.InteractionID) (asked bool, err error) {
	if err := r.view.CatchUp(ctx); err != nil {
		return false, err
	}
	err = r.view.DB().GetContext(ctx, &asked, `SELECT EXISTS (SELECT 1 FROM questions WHERE id = ?)`, string(id))
	return asked, err
}

// aboutOf returns the message of a person that one that was sent into a chat is about.
func (r *Records) aboutOf(ctx context.Context, channel, chat, platform string) (event.InputID, error) {
	var input event.InputID
	err := r.view.DB().GetContext(ctx, &input, `
		SELECT input FROM outbox
		WHERE channel = ? AND platform = ? AND fact ->> 'chat' = ?`, channel, platform, chat)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return input, err
}

// received is a message that waits.
type received struct {
	fact.BridgeReceived
	input event.InputID
	sign  *fact.BridgeQueued // the end of its turn's sign of progress; nil: there is none
}

// waiting returns the messages that are not finished, in the order in which they came.
func (r *Records) waiting(ctx context.Context) (list []received, err error) {
	if err := r.view.CatchUp(ctx); err != nil {
		return nil, err
	}
	var rows []struct {
		Input event.InputID
		Fact  string
	}
	err = r.view.DB().SelectContext(ctx, &rows, `SELECT input, fact FROM inbox WHERE finished = '' ORDER BY seq`)
	for _, row := range rows {
		m := received{input: row.Input}
		if json.Unmarshal([]byte(row.Fact), &m.BridgeReceived) == nil { // else its text was removed from the log
			list = append(list, m)
		}
	}
	return list, err
}

// queued is a message that is to be sent.
type queued struct {
	fact.BridgeQueued
	input    event.InputID
	state    string
	attempts int
	faults   int     // attempts of this bridge whose end the platform left open
	repeated bool    // the platform may have taken it before
	platform string  // its id there, once it is sent
	plain    bool    // it goes without formatting and buttons, which the platform refused
	instead  *queued // says that it could not be sent
	probed   bool    // the platform took, or refused, what is sent in its place
}

const selectQueued = `SELECT fact, input, state, attempts, repeated, platform FROM outbox `

// unsent returns the messages that are not known to be sent or given up, in order.
func (r *Records) unsent(ctx context.Context) ([]*queued, error) {
	return r.outbox(ctx, selectQueued+`WHERE state IN ('queued', 'started') ORDER BY seq`)
}

// orphans returns the cards of questions whose end no contact was told.
func (r *Records) orphans(ctx context.Context) ([]*queued, error) {
	return r.outbox(ctx, selectQueued+`
		WHERE kind = 'card' AND question IN (SELECT id FROM questions WHERE how = '')
		ORDER BY seq`)
}

// signs returns the signs of progress that were sent of turns whose end is not on record.
func (r *Records) signs(ctx context.Context) ([]*queued, error) {
	return r.outbox(ctx, selectQueued+`
		WHERE kind = 'status' AND state = 'sent' AND input IN (SELECT input FROM inbox WHERE finished = '')
			AND id NOT IN (SELECT fact ->> 'target' FROM outbox WHERE kind = 'status_end')
		ORDER BY seq`)
}

// byID returns one message.
func (r *Records) byID(ctx context.Context, id string) (*queued, error) {
	list, err := r.outbox(ctx, selectQueued+`WHERE id = ?`, id)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

func (r *Records) outbox(ctx context.Context, query string, args ...any) (list []*queued, err error) {
	if err := r.view.CatchUp(ctx); err != nil {
		return nil, err
	}
	var rows []struct {
		Fact, State, Platform string
		Input                 event.InputID
		Attempts              int
		Repeated              bool
	}
	if err := r.view.DB().SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, err
	}
	for _, row := range rows {
		q := &queued{input: row.Input, state: row.State, attempts: row.Attempts, repeated: row.Repeated, platform: row.Platform}
		if err := json.Unmarshal([]byte(row.Fact), &q.BridgeQueued); err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

// What a message of a contact is.
const (
	kindInput   fact.MessageKind = "input"    // one call
	kindCommand fact.MessageKind = "command"  // a slash command
	kindAnswer  fact.MessageKind = "answer"   // of a question
	kindRefused fact.MessageKind = "refused"  // nothing is done but saying why; Word holds it
	kindSend    fact.MessageKind = "send"     // confirms a message that is held
	kindBack    fact.MessageKind = "withdraw" // takes a message that waits back
)

// What became of it.
const (
	endAnswered fact.MessageEnding = "answered"
	endFailed   fact.MessageEnding = "failed"
	endUnknown  fact.MessageEnding = "unknown" // no one knows what became of its call
	endDone     fact.MessageEnding = "done"    // of a command, of an answer that counts
	endRefused  fact.MessageEnding = "refused"
	endBack     fact.MessageEnding = "withdrawn" // before it was called
)

// What a message to a contact is.
const (
	outAck    fact.OutKind = "ack"
	outReply  fact.OutKind = "reply"
	outCard   fact.OutKind = "card"
	outNotice fact.OutKind = "note"
	outStatus fact.OutKind = "status"
	outEnd    fact.OutKind = "status_end" // changes a status to its end, or takes it back if it has no text
	outEdit   fact.OutKind = "edit"       // of a message that was sent

	outRefusal fact.OutKind = "refusal" // of a code, to somebody who is not paired
)

// once reports whether a message of this kind is better lost than sent twice.
func once(k fact.OutKind) bool { return k == outAck || k == outStatus }

// optionalFaults is how often the platform may fail at an optional message before it is given up.
// Neither an attempt that certainly did not arrive counts nor one that a crash of the bridge broke off:
// they say nothing of the message.
const optionalFaults = 3

// optional reports whether all that a message says is on record elsewhere, or in a message of its
// own: a file, an edit, or one that is better lost than sent twice. Nothing waits for it for long.
func optional(q *queued) bool { return q.File != "" || edits(q.Kind) || once(q.Kind) }

// edits reports whether a message of this kind changes one that was sent: once more changes nothing.
func edits(k fact.OutKind) bool { return k == outEdit || k == outEnd }
