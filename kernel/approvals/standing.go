package approvals

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/view"
	"github.com/perlica/perlica/policy"
)

// Standing is the database view of the standing approvals. If its file is deleted, the next OpenStanding builds it from
// the log.
type Standing struct{ view *view.View }

var projection = view.Projection{
	Name:    "approvals",
	Version: 1,
	Schema: `
		CREATE TABLE approvals (
			id       TEXT PRIMARY KEY,
			seq      INTEGER NOT NULL,
			approval TEXT NOT NULL
		) STRICT`,
	Types: event.Known().For(event.Approvals),
	Apply: applyApproval,
}

func applyApproval(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
	if e.Type == event.ApprovalRevoked {
		var r policy.Revocation
		if err := e.Decode(&r); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM approvals WHERE id = ?`, r.ID)
		return err
	}
	var a policy.Approval
	if err := e.Decode(&a); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO approvals (id, seq, approval)
		VALUES (?, ?, ?)
		ON CONFLICT DO NOTHING`, a.ID, int64(e.Seq), string(e.Payload))
	return err
}

// OpenStanding opens the view at path, checks its seal with the key, and adds the log's newer events. The caller closes
// the view before the log.
func OpenStanding(ctx context.Context, r *store.Reader, path string, key []byte) (*Standing, error) {
	v, err := view.Open(ctx, r, path, key, projection)
	if err != nil {
		return nil, err
	}
	return &Standing{view: v}, nil
}

// List returns the standing approvals, oldest first, including the expired ones.
func (s *Standing) List(ctx context.Context) ([]policy.Approval, error) {
	var rows []string
	if err := s.view.Read(ctx, func(tx *sqlx.Tx) error {
		return tx.SelectContext(ctx, &rows, `SELECT approval FROM approvals ORDER BY seq`)
	}); err != nil {
		return nil, err
	}
	list := make([]policy.Approval, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal([]byte(row), &list[i]); err != nil {
			return nil, fmt.Errorf("policy: approvals view: %w", err)
		}
	}
	return list, nil
}

// Close closes the view's file.
func (s *Standing) Close() error { return s.view.Close() }
