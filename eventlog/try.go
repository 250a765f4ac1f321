package eventlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/store"
)

// TryWrite makes a log in a temporary folder within dir, appends to it, asks its
// connection for the Settings, and removes it. The error says why a log in dir could not
// be written as it must be: ErrFull, ErrReadOnly, a *SettingError.
func TryWrite(ctx context.Context, dir string) (err error) {
	tmp, err := os.MkdirTemp(dir, ".perlica-try-")
	if err != nil {
		kind := fault.ErrReadOnly
		if fault.IsNoSpace(err) {
			kind = fault.ErrFull
		}
		return fmt.Errorf("%w: %w", kind, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	log, err := Open(ctx, filepath.Join(tmp, "eventlog.db"), Options{Context: "try"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	w, err := store.OpenWritable(ctx, log.Path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := store.CheckSettings(ctx, w.DB, slices.Collect(maps.Keys(store.Settings()))...); err != nil {
		return err
	}
	_, err = log.Append(ctx, event.NewFact(event.MessageReceived, "doctor", event.Refs{}, struct{}{}))
	return err
}
