package view

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/folder"
	"github.com/perlica/perlica/eventlog/store"
)

// Check looks at the file of a view without changing it and returns the last event
// that was applied. The error wraps ErrCorrupt if Open would build the file anew, and
// fs.ErrNotExist if there is none.
func Check(ctx context.Context, path string) (at event.Seq, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	if err := folder.CheckDatabase(path); err != nil {
		return 0, err
	}
	if info, err := os.Stat(path); err != nil {
		return 0, err
	} else if info.Size() == 0 {
		return 0, nil // Open was about to fill it
	}
	db, err := sqlx.Open("sqlite", store.ReaderDSN(path, false))
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }() // read from only
	if err = store.PragmaCheck(ctx, db, `PRAGMA quick_check(1)`); err == nil {
		err = fault.Explain(db.GetContext(ctx, &at, `SELECT seq FROM position WHERE id = 1`))
	}
	switch {
	case err == nil, errors.Is(err, fault.ErrCorrupt), errors.Is(err, fault.ErrBusy), errors.Is(err, fault.ErrReadOnly):
		return at, err
	}
	return 0, fmt.Errorf("%w: %w", fault.ErrCorrupt, err)
}
