package service

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/view"
	"github.com/perlica/perlica/kernel/approvals"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/channel"
)

// Records reads the bridge's view. Its methods may be called from several goroutines.
type Records struct {
	view     *view.View
	place    string // the place of the log
	vouchers approvals.Vouchers
}

// OpenRecords opens the view in the file at path and brings it up to date. Only contacts in the parameter "vouchers"
// count, because this user has paired them. The caller must Close the records before the log.
func OpenRecords(ctx context.Context, r *store.Reader, path string, vouchers approvals.Vouchers) (*Records, error) {
	v, err := view.Open(ctx, r, path, nil, projection)
	if err != nil {
		return nil, err
	}
	return &Records{v, placeOf(r), vouchers}, nil
}

// Close releases the view's file.
func (r *Records) Close() error { return r.view.Close() }

// Contacts returns the paired contacts in the order of their pairing.
func (r *Records) Contacts(ctx context.Context) ([]Contact, error) {
	return r.counting(ctx, true, "")
}

// Named returns the paired contact with this name, or with this CHANNEL:ID. If no contact or several contacts have it,
// the error is a *channel.RejectedError that names the paired contacts.
func (r *Records) Named(ctx context.Context, name string) (Contact, error) {
	list, err := r.Contacts(ctx)
	if err != nil {
		return Contact{}, err
	}
	var named []Contact
	var there []string
	for _, c := range list {
		there = append(there, c.Name+" ("+c.Channel+":"+c.ID+")")
		if c.Name == name || c.Channel+":"+c.ID == name {
			named = append(named, c)
		}
	}
	if len(named) == 1 {
		return named[0], nil
	}
	why := fmt.Sprintf("no paired contact is named %q", name)
	if len(named) > 1 {
		why = fmt.Sprintf("several paired contacts are named %q", name)
	}
	if len(there) == 0 {
		return Contact{}, &channel.RejectedError{Why: why + ", because none is paired; see perlica service pair"}
	}
	return Contact{}, &channel.RejectedError{Why: why + "; the contacts are: " + strings.Join(there, ", ")}
}

// Unconfirmed returns the contacts on the log without a voucher of this user. They came with a
// copied log, or lost their voucher. They have no rights.
func (r *Records) Unconfirmed(ctx context.Context) ([]Contact, error) {
	return r.counting(ctx, false, "")
}

// counting returns the contacts with a voucher, or the contacts without a voucher if the parameter "vouched" is false.
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
		SELECT channel, contact, chat, name, rights, paired, pairing, message, language, follows,
			coalesce((SELECT session FROM sessions AS s
				WHERE s.channel = contacts.channel AND s.contact = contacts.contact
				ORDER BY seq DESC LIMIT 1), '') AS session
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
				Channel: f.Channel, ID: f.Contact, Chat: f.Chat, Name: access.Name(f.Name), Rights: f.Rights,
				Paired:  time.Unix(0, row.Paired),
				Session: row.Session, Language: row.Language, Follows: row.Follows, fact: f,
			})
		}
	}
	return list, nil
}

// contact returns one contact. ok is false if it is not paired.
func (r *Records) contact(ctx context.Context, channel, id string) (c Contact, ok bool, err error) {
	list, err := r.counting(ctx, true, `WHERE channel = ? AND contact = ?`, channel, id)
	if err != nil || len(list) == 0 {
		return Contact{}, false, err
	}
	return list[0], true, nil
}

// session returns the current session of a contact in a chat. It is empty if none was chosen yet.
func (r *Records) session(ctx context.Context, who fact.Peer, chat string) (event.SessionID, error) {
	if err := r.view.CatchUp(ctx); err != nil {
		return "", err
	}
	var session event.SessionID
	err := r.view.DB().GetContext(ctx, &session, `
		SELECT session FROM sessions
		WHERE channel = ? AND contact = ? AND chat = ?`, who.Channel, who.Contact, chat)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return session, err
}

// sessions returns the current sessions of a contact in all chats.
func (r *Records) sessions(ctx context.Context, who fact.Peer) (list []event.SessionID, err error) {
	if err := r.view.CatchUp(ctx); err != nil {
		return nil, err
	}
	err = r.view.DB().SelectContext(ctx, &list, `
		SELECT session FROM sessions
		WHERE channel = ? AND contact = ?`, who.Channel, who.Contact)
	return list, err
}

// Paired reports whether a contact is paired.
func (r *Records) Paired(ctx context.Context, channel, id string) (bool, error) {
	_, ok, err := r.contact(ctx, channel, id)
	return ok, err
}

// cursor returns a channel's cursor.
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

// known reports whether the bridge has received a message before, and whether it has sent this message itself. The
// result "digest" is the digest of the received message. It is empty if the record has none.
func (r *Records) known(ctx context.Context, input event.InputID, channel,
	platform string) (received, sent bool, digest string, err error) {
	err = r.view.DB().QueryRowxContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM inbox WHERE input = ?1), EXISTS (SELECT 1 FROM outbox WHERE channel = ?2 AND platform = ?3),
			coalesce((SELECT iif(json_valid(fact), fact ->> 'input_sha256', NULL) FROM inbox WHERE input = ?1), '')`,
		string(input), channel, platform).Scan(&received, &sent, &digest)
	return received, sent, digest, err
}

// cardOf returns the question of a sent message. It needs the chat, because a platform may number
// the messages of each chat separately.
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

// has reports whether the bridge has received or sent a message of a chat.
func (r *Records) has(ctx context.Context, channel, chat, platform string) (has bool, err error) {
	err = r.view.DB().GetContext(ctx, &has, `
		SELECT EXISTS (SELECT 1 FROM inbox WHERE input = ?)
			OR EXISTS (SELECT 1 FROM outbox WHERE channel = ? AND platform = ? AND fact ->> 'chat' = ?)`,
		string(InputID(channel, platform)), channel, platform, chat)
	return has, err
}

// askedBySuffix reports whether a question with this end of its id ever had a card.
func (r *Records) askedBySuffix(ctx context.Context, id string) (asked bool, err error) {
	err = r.view.DB().GetContext(ctx, &asked, `SELECT EXISTS (SELECT 1 FROM questions WHERE substr(id, -length(?1)) = ?1)`,
		strings.ToLower(id))
	return asked, err
}

// wasAsked reports whether a question ever had a card.
func (r *Records) wasAsked(ctx context.Context, id event.InteractionID) (asked bool, err error) {
	if err := r.view.CatchUp(ctx); err != nil {
		return false, err
	}
	err = r.view.DB().GetContext(ctx, &asked, `SELECT EXISTS (SELECT 1 FROM questions WHERE id = ?)`, string(id))
	return asked, err
}

// aboutOf returns the person's message that a sent message is about.
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

// received is a waiting message.
type received struct {
	fact.BridgeReceived
	input event.InputID
	// statusEnd is the change that ends the turn's status message. It is nil without a status
	// message.
	statusEnd *fact.BridgeQueued
}

// waiting returns the unfinished messages in the order of their arrival.
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
		if json.Unmarshal([]byte(row.Fact), &m.BridgeReceived) == nil { // otherwise its text was pruned
			list = append(list, m)
		}
	}
	return list, err
}

// queued is a message to send.
type queued struct {
	fact.BridgeQueued
	input    event.InputID
	state    string
	attempts int
	faults   int     // attempts of this bridge with an unknown result
	repeated bool    // the platform may have received it before
	platform string  // the platform's id after sending
	plain    bool    // the platform has refused its formatting or buttons
	instead  *queued // a short message that tells the contact that this message could not be sent
	probed   bool    // the message in the field "instead" has arrived, or is given up
}

const selectQueued = `SELECT fact, input, state, attempts, repeated, platform FROM outbox `

// unsent returns the messages that are neither sent nor given up, in order.
func (r *Records) unsent(ctx context.Context) ([]*queued, error) {
	return r.outbox(ctx, selectQueued+`WHERE state IN ('queued', 'started') ORDER BY seq`)
}

// orphans returns the cards of the questions for which no contact was told an end.
func (r *Records) orphans(ctx context.Context) ([]*queued, error) {
	return r.outbox(ctx, selectQueued+`
		WHERE kind = 'card' AND question IN (SELECT id FROM questions WHERE how = '')
		ORDER BY seq`)
}

// statuses returns the sent status messages of turns without a recorded end.
func (r *Records) statuses(ctx context.Context) ([]*queued, error) {
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
		q := &queued{input: row.Input, state: row.State, attempts: row.Attempts, repeated: row.Repeated,
			platform: row.Platform}
		if err := json.Unmarshal([]byte(row.Fact), &q.BridgeQueued); err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

// These are the kinds of a contact's message.
const (
	kindInput   fact.MessageKind = "input"    // one call
	kindCommand fact.MessageKind = "command"  // a slash command
	kindAnswer  fact.MessageKind = "answer"   // to a question
	kindRefused fact.MessageKind = "refused"  // the bridge only replies with the reason in Word
	kindSend    fact.MessageKind = "send"     // releases a held message
	kindBack    fact.MessageKind = "withdraw" // takes a waiting message back
)

// These are the endings of a message.
const (
	endAnswered fact.MessageEnding = "answered"
	endFailed   fact.MessageEnding = "failed"
	endUnknown  fact.MessageEnding = "unknown" // the outcome of its call is unknown
	endDone     fact.MessageEnding = "done"    // a command was carried out, or an answer was accepted
	endRefused  fact.MessageEnding = "refused"
	endBack     fact.MessageEnding = "withdrawn" // taken back before a call was made for it
)

// These are the kinds of messages to a contact.
const (
	outAck    fact.OutKind = "ack"
	outReply  fact.OutKind = "reply"
	outCard   fact.OutKind = "card"
	outNotice fact.OutKind = "note"
	outStatus fact.OutKind = "status"
	outEnd    fact.OutKind = "status_end" // changes a status message to its end, or deletes it if the text is empty
	outEdit   fact.OutKind = "edit"       // changes a sent message

	outRefusal fact.OutKind = "refusal" // tells a stranger that a code was refused
)

// once reports whether a message of this kind must not be sent twice. Such a message may be lost.
func once(k fact.OutKind) bool { return k == outAck || k == outStatus }

// optionalFaults limits the platform's failures at an optional message before the bridge gives it
// up. Attempts that certainly did not arrive, and attempts that a crash interrupted, do not count:
// they show no fault of the message.
const optionalFaults = 3

// optional reports whether a message has no information of its own: another record or message has its content. A file,
// an edit and a message of a kind in once are optional. They delay later messages only a short time.
func optional(q *queued) bool { return q.File != "" || edits(q.Kind) || once(q.Kind) }

// edits reports whether a message of this kind changes a sent message. A repeated edit changes
// nothing.
func edits(k fact.OutKind) bool { return k == outEdit || k == outEnd }
