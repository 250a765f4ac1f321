// Package sessions is the database view of a context's sessions.
//
// It has names, first inputs, the last use, and the current session. The view follows from the log alone. The package
// does not write to the log.
package sessions

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/view"
	"github.com/perlica/perlica/kernel/fact"
)

// These are the errors of Find, Latest and Current.
var (
	ErrNoSession = message.New("sessions.no-session", "there is no such session")
	ErrAmbiguous = message.New("sessions.ambiguous", "more than one session matches")
)

// Session is a conversation with one provider, which never changes.
type Session struct {
	ID       event.SessionID `json:"id"`
	Name     string          `json:"name"`
	Provider string          `json:"provider"`
	// Ephemeral means that the lists omit the session unless a caller asks for all sessions.
	Ephemeral bool `json:"ephemeral"`
	// Title is the beginning of the session's first input.
	Title   string    `json:"title"`
	Turns   int       `json:"turns"`
	Created time.Time `json:"created"`
	// Used is the time of the session's last input.
	Used    time.Time `json:"used"`
	Current bool      `json:"current"`

	// Choice has the settings that were chosen in the session. The next conversation in the session uses them again.
	Choice fact.SessionConfigured `json:"-"`
}

// View is the open database view of the sessions. If its file is deleted, the next Open builds it from the log.
type View struct{ view *view.View }

var sessions = view.Projection{
	Name:    "sessions",
	Version: 4,
	Schema: `
		CREATE TABLE sessions (
			id        TEXT    PRIMARY KEY,
			name      TEXT    NOT NULL,
			provider  TEXT    NOT NULL,
			ephemeral INTEGER NOT NULL, -- 2: until its first input
			title     TEXT    NOT NULL DEFAULT '',
			turns     INTEGER NOT NULL DEFAULT 0,
			answered  INTEGER NOT NULL DEFAULT 0, -- of the turns
			created   INTEGER NOT NULL, -- nanoseconds since the Unix epoch, as is used
			used      INTEGER NOT NULL,
			choice    TEXT    NOT NULL DEFAULT '{}', -- session.configured
			seq       INTEGER NOT NULL  -- of the last fact about it
		) STRICT;
		CREATE TABLE current (id TEXT NOT NULL) STRICT`,
	Types:    event.Known().For(event.Sessions),
	Withheld: true, // a turn counts even if its payload is missing
	Apply:    applySession,
}

// applySession adds a fact to the view. It skips missing payloads and facts that it cannot decode, because a fact of a
// later version must not hide a session.
func applySession(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
	exec := func(query string, args ...any) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	}
	id, at, seq := string(e.Session), e.Time.UnixNano(), int64(e.Seq)
	switch e.Type {
	case event.SessionCreated:
		f, err := fact.Decode[fact.SessionCreated](e)
		if err != nil {
			return nil
		}
		return exec(`
			INSERT INTO sessions (id, name, provider, ephemeral, created, used, seq)
			VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO NOTHING`, id, f.Name, f.Provider, ephemeral(f), at, at, seq)
	case event.SessionRenamed:
		f, err := fact.Decode[fact.SessionRenamed](e)
		if err != nil {
			return nil
		}
		return exec(`UPDATE sessions SET name = ?, ephemeral = 0, seq = ? WHERE id = ?`, f.Name, seq, id)
	case event.SessionConfigured:
		if _, err := fact.Decode[fact.SessionConfigured](e); err != nil {
			return nil
		}
		return exec(`UPDATE sessions SET choice = ?, seq = ? WHERE id = ?`, string(e.Payload), seq, id)
	case event.SessionSelected:
		return errors.Join(exec(`DELETE FROM current`), exec(`INSERT INTO current (id) VALUES (?)`, id))
	case event.SessionDeleted:
		return errors.Join(exec(`DELETE FROM current WHERE id = ?`, id), exec(`DELETE FROM sessions WHERE id = ?`, id))
	case event.MessageReceived:
		m, err := fact.Decode[fact.MessageReceived](e)
		if err != nil && e.Payload != nil {
			return nil
		}
		first := title(m.Text)
		if damage := e.Damage(); damage != nil {
			first = damage.Row().Text
		}
		return exec(`
			UPDATE sessions
			SET title = CASE title WHEN '' THEN ? ELSE title END, turns = turns + 1, used = ?, seq = ?,
				ephemeral = ephemeral = 1
			WHERE id = ?`, first, at, seq, id)
	case event.Responded:
		return exec(`UPDATE sessions SET answered = answered + 1 WHERE id = ?`, id)
	}
	return nil
}

// ephemeral returns the value of the column ephemeral. 0 means that lists always show the session. 1 means that they
// show it only on request. 2 means that they show it on request, and always after its first input.
func ephemeral(f fact.SessionCreated) int {
	switch {
	case !f.Ephemeral:
		return 0
	case f.Conversation:
		return 2
	}
	return 1
}

// title returns the first nonempty line of a text, cut to 80 characters.
func title(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			r := []rune(line)
			if len(r) > 80 {
				return string(r[:79]) + "…"
			}
			return line
		}
	}
	return ""
}

// Open opens the view in the file at path, checks its seal with the key, and adds the log's newer events. The caller
// closes the view before the log.
func Open(ctx context.Context, r event.Reader, path string, key []byte) (*View, error) {
	v, err := view.Open(ctx, r, path, key, sessions)
	if err != nil {
		return nil, err
	}
	return &View{view: v}, nil
}

// Close closes the view's file.
func (s *View) Close() error { return s.view.Close() }

// Named returns the sessions with this name, except the session with the id except.
func (s *View) Named(ctx context.Context, name string, except event.SessionID) ([]Session, error) {
	return s.querySessions(ctx, selectSessions+` WHERE s.name = ? AND s.id <> ?`, name, string(except))
}

const selectSessions = `
	SELECT s.id, s.name, s.provider, s.ephemeral <> 0, s.title, s.turns, s.created, s.used, s.choice, c.id IS NOT NULL
	FROM sessions AS s
	LEFT JOIN current AS c ON c.id = s.id`

// List returns the sessions, the last used first. It omits the ephemeral sessions unless "all" is true.
func (s *View) List(ctx context.Context, all bool) ([]Session, error) {
	return s.querySessions(ctx, selectSessions+`
		WHERE ? OR NOT s.ephemeral
		ORDER BY s.used DESC, s.seq DESC`, all)
}

// Find returns the session that ref names. ref may be the id, the name, a unique beginning or end of the id, or a
// unique beginning of the id's last eight characters. The error is ErrNoSession or ErrAmbiguous.
func (s *View) Find(ctx context.Context, ref string) (Session, error) {
	found, err := s.querySessions(ctx, selectSessions+`
		WHERE s.id = ?1 OR s.name = ?1
		ORDER BY s.used DESC`, ref)
	if err == nil && len(found) == 0 && len(ref) >= 4 {
		found, err = s.querySessions(ctx, selectSessions+`
			WHERE substr(s.id, 1, length(?1)) = ?1 OR substr(s.id, -length(?1)) = ?1 OR substr(s.id, -8, length(?1)) = ?1
			ORDER BY s.used DESC`, ref)
	}
	switch {
	case err != nil:
		return Session{}, err
	case len(found) == 0:
		return Session{}, fmt.Errorf("%w: %s", ErrNoSession, ref)
	case len(found) > 1:
		return Session{}, fmt.Errorf("%w: %s", ErrAmbiguous, ref)
	}
	return found[0], nil
}

// Latest returns the session that was used last, or ErrNoSession. It skips ephemeral sessions without a turn.
func (s *View) Latest(ctx context.Context) (Session, error) {
	return s.findOne(ctx, selectSessions+`
		WHERE NOT s.ephemeral OR s.turns > 0
		ORDER BY s.used DESC, s.seq DESC
		LIMIT 1`)
}

// Current returns the selected session, or ErrNoSession.
func (s *View) Current(ctx context.Context) (Session, error) {
	return s.findOne(ctx, selectSessions+`
		WHERE c.id IS NOT NULL
		LIMIT 1`)
}

func (s *View) findOne(ctx context.Context, query string, args ...any) (Session, error) {
	found, err := s.querySessions(ctx, query, args...)
	if err == nil && len(found) == 0 {
		err = ErrNoSession
	}
	if err != nil {
		return Session{}, err
	}
	return found[0], nil
}

func (s *View) querySessions(ctx context.Context, query string, args ...any) (list []Session, err error) {
	err = s.view.Read(ctx, func(tx *sqlx.Tx) error {
		rows, err := tx.QueryxContext(ctx, query, args...)
		if err == nil {
			list, err = scanSessions(rows)
		}
		return err
	})
	return list, err
}

func scanSessions(rows *sqlx.Rows) (list []Session, err error) {
	defer func() { _ = rows.Close() }() // rows.Err reports the error
	for rows.Next() {
		var x Session
		var created, used int64
		var choice []byte
		if err := rows.Scan(&x.ID, &x.Name, &x.Provider, &x.Ephemeral, &x.Title, &x.Turns, &created, &used, &choice,
			&x.Current); err != nil {
			return nil, err
		}
		if len(choice) > len("{}") {
			if err := json.Unmarshal(choice, &x.Choice); err != nil {
				return nil, err
			}
		}
		x.Created, x.Used = time.Unix(0, created), time.Unix(0, used)
		list = append(list, x)
	}
	return list, rows.Err()
}

// Counts returns the number of inputs and of answers that a session has had. For an unknown or deleted session both are
// 0.
func (s *View) Counts(ctx context.Context, id event.SessionID) (inputs, answers int, err error) {
	err = s.view.Read(ctx, func(tx *sqlx.Tx) error {
		return tx.QueryRowxContext(ctx, `SELECT turns, answered FROM sessions WHERE id = ?`, string(id)).
			Scan(&inputs, &answers)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return inputs, answers, err
}
