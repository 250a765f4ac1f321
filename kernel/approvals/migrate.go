package approvals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/durable"
	"github.com/perlica/perlica/eventlog/event"
)

// migrate appends to the log what earlier versions kept in a file and the log does not say yet, and
// removes the file. Of a decision that the two judge differently the no counts.
func (v Vouchers) migrate(ctx context.Context, log *eventlog.Log) error {
	for {
		old, err := v.readOld()
		if err != nil || old == nil {
			return err
		}
		known, last, err := read(ctx, &log.Reader)
		if err != nil {
			return err
		}
		var events []event.Event
		for _, hash := range slices.Sorted(maps.Keys(old)) {
			if now, ok := known[hash]; old[hash] && !ok || !old[hash] && now {
				events = append(events, voucher(hash, old[hash]))
			}
		}
		if len(events) > 0 {
			_, err = log.AppendUnless(ctx, event.Query{Types: types, After: last}, events...)
		}
		if conflict := (*eventlog.ConflictError)(nil); errors.As(err, &conflict) {
			continue // another process was faster
		}
		if err != nil {
			return err
		}
		if err := os.Remove(v.old()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return durable.SyncDir(v.dirs.State)
	}
}

// readOld returns what the file says; nil if there is none.
func (v Vouchers) readOld() (Known, error) {
	text, err := os.ReadFile(v.old())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	known := Known{}
	for line := range strings.Lines(string(text)) {
		hash, revoked := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-")
		if len(hash) == hex.EncodedLen(sha256.Size) { // else the line was not written to its end
			known[hash] = !revoked
		}
	}
	return known, err
}
