package service

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/view"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
)

//go:embed schema.sql
var schema string

// projection is service_bridge.db: the bridge's knowledge as tables.
var projection = view.Projection{
	Name:     "bridge",
	Version:  7,
	Schema:   schema,
	Types:    event.Known().For(event.Bridge),
	Withheld: true, // also apply events with a pruned payload, because their messages were received
	Apply:    apply,
}

// applier writes one event into the tables.
type applier struct {
	ctx context.Context
	tx  *sqlx.Tx
	e   event.Event
}

// execAll runs statements with all arguments.
func (a applier) execAll(query string, args ...any) error {
	_, err := a.tx.ExecContext(a.ctx, query, args...)
	return err
}

// decodePayload reports whether the payload was decoded. An unreadable fact is skipped, because a
// fact of a later version must not stop the bridge.
func (a applier) decodePayload(v any) bool { return a.e.Payload != nil && a.e.Decode(v) == nil }

// on decodes the event's fact and calls the function "do" with it. It does nothing if the fact cannot be decoded.
func on[T any](a applier, do func(f T) error) error {
	var f T
	if !a.decodePayload(&f) {
		return nil
	}
	return do(f)
}

func apply(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
	a := applier{ctx, tx, e}
	switch e.Type {
	case event.ServiceStarted, event.ServiceStopped:
		return a.bridge()
	case event.ChannelFailed, event.ChannelRestored, event.CursorMoved:
		return a.channel()
	case event.PairingOpened, event.PairingAttempted, event.StrangerIgnored:
		return a.pairing()
	case event.ContactPaired, event.ContactUnpaired, event.ContactSession, event.ContactChanged:
		return a.contact()
	case event.FilesFetched:
		return on(a, a.fetched)
	case event.BridgeReceived, event.BridgeFinished:
		return a.inbox()
	case event.BridgeQueued, event.SendStarted, event.BridgeSent, event.SendFailed:
		return a.outbox()
	case event.CardClosed:
		var f fact.CardClosed
		if !a.decodePayload(&f) || f.How == "" {
			f.How = "closed"
		}
		return a.execAll(`
			INSERT INTO questions (id, how) VALUES (?, ?)
			ON CONFLICT DO UPDATE SET how = excluded.how`, string(e.Interaction), f.How)
	}
	return nil
}

func (a applier) bridge() error {
	const set = `
		INSERT INTO bridge (id, running, pid, channels, at, why) VALUES (1, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET running = excluded.running, pid = excluded.pid, channels = excluded.channels, at = excluded.at, why = excluded.why`
	if a.e.Type == event.ServiceStopped {
		return on(a, func(f fact.ServiceStopped) error { return a.execAll(set, 0, 0, "[]", a.e.Time.UnixNano(), f.Why) })
	}
	return on(a, func(f fact.ServiceStarted) error {
		list, _ := json.Marshal(f.Channels) // strings always encode
		// The errors of an earlier bridge are deleted. If a channel still fails, this bridge reports a new error.
		return errors.Join(a.execAll(set, 1, f.PID, string(list), a.e.Time.UnixNano(), ""),
			a.execAll(`UPDATE channels SET error = ''`))
	})
}

func (a applier) channel() error {
	if a.e.Type == event.CursorMoved {
		return on(a, func(f fact.CursorMoved) error {
			return a.execAll(`
				INSERT INTO channels (name, cursor) VALUES (?, ?)
				ON CONFLICT DO UPDATE SET cursor = excluded.cursor`, f.Channel, f.Cursor)
		})
	}
	return on(a, func(f fact.ChannelState) error {
		return a.execAll(`
			INSERT INTO channels (name, error, since) VALUES (?, ?, ?)
			ON CONFLICT DO UPDATE SET error = excluded.error, since = excluded.since`, f.Channel, f.Error, a.e.Time.UnixNano())
	})
}

func (a applier) pairing() error {
	switch a.e.Type {
	case event.PairingOpened:
		return on(a, func(f fact.Pairing) error {
			return a.execAll(`
				DELETE FROM pairing;
				INSERT INTO pairing (id, salt, hash, rights, expires) VALUES (?1, ?2, ?3, ?4, ?5)`,
				f.ID, f.Salt, f.Hash, access.Rights(f.Rights).String(), f.Expires.UnixNano())
		})
	case event.PairingAttempted:
		return on(a, func(f fact.PairingAttempted) error {
			return a.execAll(`
				UPDATE pairing SET attempts = attempts + 1 WHERE id = ?1;
				INSERT INTO strangers (channel, contact, attempts, last) VALUES (?2, ?3, 1, ?4)
				ON CONFLICT DO UPDATE SET attempts = attempts + 1, last = excluded.last`,
				f.Pairing, f.Channel, f.Contact, a.e.Time.UnixNano())
		})
	}
	return on(a, func(f fact.StrangerIgnored) error {
		return a.execAll(`
			INSERT INTO strangers (channel, contact, ignored) VALUES (?, ?, ?)
			ON CONFLICT DO UPDATE SET ignored = ignored + excluded.ignored`, f.Channel, f.Contact, 1+f.Since)
	})
}

func (a applier) contact() error {
	switch a.e.Type {
	case event.ContactPaired:
		return on(a, a.paired)
	case event.ContactUnpaired:
		return on(a, func(f fact.ContactUnpaired) error {
			return a.execAll(`
				DELETE FROM contacts WHERE channel = ?1 AND contact = ?2;
				DELETE FROM sessions WHERE channel = ?1 AND contact = ?2`, f.Channel, f.Contact)
		})
	case event.ContactChanged:
		return on(a, func(f fact.ContactChanged) error {
			return a.execAll(`
				UPDATE contacts
				SET rights = coalesce(nullif(?, ''), rights), language = coalesce(nullif(?, ''), language), follows = coalesce(?, follows)
				WHERE channel = ? AND contact = ?`, access.Rights(f.Rights).String(), f.Language, f.Follows, f.Channel, f.Contact)
		})
	}
	return on(a, func(f fact.ContactSession) error {
		return a.execAll(`
			INSERT INTO sessions (channel, contact, chat, session, seq)
			SELECT channel, contact, coalesce(nullif(?3, ''), chat), ?4, ?5 FROM contacts
			WHERE channel = ?1 AND contact = ?2
			ON CONFLICT DO UPDATE SET session = excluded.session, seq = excluded.seq`,
			f.Channel, f.Contact, f.Chat, string(a.e.Session), int64(a.e.Seq))
	})
}

func (a applier) paired(f fact.ContactPaired) error {
	// A code pairs only one contact. If it arrives on several channels at the same moment, the first one on the log
	// counts.
	used, err := a.tx.ExecContext(a.ctx, `UPDATE pairing SET used = 1 WHERE id = ? AND used = 0`, f.Pairing)
	if err != nil {
		return err
	}
	if n, err := used.RowsAffected(); err != nil || n == 0 && f.Pairing != "" {
		return err
	}
	// The message with the pairing code is marked as received here, so a repetition of it is never an input.
	if f.Message != "" {
		if err := a.execAll(`
			INSERT INTO inbox (input, seq, received, fact, channel, contact, finished) VALUES (?, ?, ?, '{}', ?, ?, 'paired')
			ON CONFLICT DO NOTHING`,
			string(InputID(f.Channel, f.Message)), int64(a.e.Seq), a.e.Time.UnixNano(), f.Channel, f.Contact); err != nil {
			return err
		}
	}
	return a.execAll(`
		DELETE FROM strangers WHERE channel = ?1 AND contact = ?2;
		DELETE FROM sessions WHERE channel = ?1 AND contact = ?2;
		INSERT INTO contacts (channel, contact, chat, name, rights, paired, pairing, message) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
		ON CONFLICT DO UPDATE SET chat = excluded.chat, name = excluded.name, rights = excluded.rights, paired = excluded.paired,
			pairing = excluded.pairing, message = excluded.message, language = '', follows = 0`,
		f.Channel, f.Contact, f.Chat, f.Name, access.Rights(f.Rights).String(), a.e.Time.UnixNano(), f.Pairing, f.Message)
}

func (a applier) inbox() error {
	if a.e.Type == event.BridgeFinished {
		f := fact.BridgeFinished{}
		if !a.decodePayload(&f) || f.How == "" {
			f.How = "pruned"
		}
		return a.execAll(`UPDATE inbox SET finished = ?, run = ? WHERE input = ? AND finished = ''`, string(f.How),
			string(a.e.Run), string(a.e.Input))
	}
	var f fact.BridgeReceived
	_ = a.decodePayload(&f) // a pruned message keeps its id, so a repetition is recognised
	if f.Kind == kindSend {
		if err := a.execAll(`
			UPDATE inbox SET fact = json_remove(fact, '$.held')
			WHERE input = ? AND json_valid(fact)`, string(f.About)); err != nil {
			return err
		}
	}
	return a.execAll(`
		INSERT INTO inbox (input, seq, received, fact, channel, contact) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, string(a.e.Input), int64(a.e.Seq), a.e.Time.UnixNano(), string(a.e.Payload), f.Channel,
		f.Contact)
}

func (a applier) fetched(f fact.FilesFetched) error {
	files, _ := json.Marshal(f.Files) // strings always encode
	return a.execAll(`
		UPDATE inbox
		SET fact = json_remove(json_set(fact, '$.text', ?, '$.files', json(?)), '$.remote')
		WHERE input = ? AND json_valid(fact)`, f.Text, string(files), string(a.e.Input))
}

func (a applier) outbox() error {
	if a.e.Type == event.BridgeQueued {
		return on(a, func(f fact.BridgeQueued) error {
			if f.Kind == outCard {
				if err := a.execAll(`INSERT INTO questions (id) VALUES (?) ON CONFLICT DO NOTHING`,
					string(f.Question)); err != nil {
					return err
				}
			}
			return a.execAll(`
				INSERT INTO outbox (id, seq, fact, input, channel, contact, kind, question, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'queued')
				ON CONFLICT DO NOTHING`,
				f.ID, int64(a.e.Seq), string(a.e.Payload), string(a.e.Input), f.Channel, f.Contact, string(f.Kind),
				string(f.Question))
		})
	}
	return on(a, func(f fact.Delivery) error {
		switch {
		case a.e.Type == event.SendStarted:
			return a.execAll(`UPDATE outbox SET state = 'started', attempts = attempts + 1, started = ? WHERE id = ?`,
				a.e.Time.UnixNano(), f.ID)
		case a.e.Type == event.BridgeSent:
			return a.execAll(`UPDATE outbox SET state = 'sent', platform = ?, error = '' WHERE id = ?`, f.Platform, f.ID)
		case f.Final:
			return a.execAll(`UPDATE outbox SET state = 'failed', error = ?, repeated = max(repeated, ?) WHERE id = ?`, f.Error,
				f.Unknown, f.ID)
		}
		return a.execAll(`UPDATE outbox SET state = 'queued', error = ?, repeated = max(repeated, ?) WHERE id = ?`, f.Error,
			f.Unknown, f.ID)
	})
}
