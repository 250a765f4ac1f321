package view

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
)

// SetPortion sets the number of events in one transaction of a view. It returns the previous number.
func SetPortion(n event.Seq) (was event.Seq) {
	was, portion = portion, n
	return was
}

// ErrStale is the error of ReadTables after another program changed the view.
var ErrStale = errStale

// ReadTables is the last step of Read.
func (v *View) ReadTables(ctx context.Context, read func(tx *sqlx.Tx) error) error {
	return v.readTables(ctx, read)
}
