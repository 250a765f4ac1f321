// Package approvals knows the standing approvals of a log and the decisions that this user made on this machine.
//
// A decision that came with a log counts for nothing until the user's own log vouches for it. The package decides
// nothing.
package approvals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
)

// Vouchers knows the decisions of this user on this machine: standing approvals and paired contacts. A cloned
// repository can bring a log with foreign decisions. So a yes counts only if its hash is in the user's own log. If
// the user's log is lost, these decisions are lost too, and no foreign decision starts to count. The zero Vouchers
// knows no decision.
type Vouchers struct{ dirs config.Dirs }

// NewVouchers keeps the hashes in the user's own log. The first Add creates that log.
func NewVouchers(dirs config.Dirs) Vouchers { return Vouchers{dirs} }

// Known maps the hash of a decision to true if the decision counts.
type Known map[string]bool

// Has reports whether the user's log vouches for a decision. The decision is a value of plain fields.
func (k Known) Has(decision any) bool { return k[hash(decision)] }

// hash identifies a decision by all its fields.
func hash(decision any) string {
	b, err := json.Marshal(decision)
	if err != nil {
		panic(fmt.Sprintf("approvals: voucher: %v", err)) // cannot happen for plain fields
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Add vouches for a decision, a value of plain fields. When Add returns nil, the voucher survives a power failure.
func (v Vouchers) Add(ctx context.Context, decision any) error {
	return v.appendVoucher(ctx, voucher(hash(decision), true))
}

// Revoke withdraws the voucher of a decision. When Revoke returns nil, the withdrawal survives a power failure.
// Only a later Add vouches again.
func (v Vouchers) Revoke(ctx context.Context, decision any) error {
	return v.appendVoucher(ctx, voucher(hash(decision), false))
}

func voucher(hash string, counts bool) event.Event {
	t := event.VoucherRevoked
	if counts {
		t = event.VoucherGiven
	}
	return event.NewFact(t, "user", event.Refs{}, fact.Voucher{Decision: hash})
}

func (v Vouchers) appendVoucher(ctx context.Context, e event.Event) error {
	paths, err := v.dirs.EnsureOwn()
	if err != nil {
		return err
	}
	_, name := v.dirs.Own()
	log, err := eventlog.Open(ctx, paths.EventLog, eventlog.Options{Context: name, Keys: evidence.UseKeys(v.dirs.KeyDir())})
	if err != nil {
		return err
	}
	if err = v.migrateFile(ctx, log); err == nil {
		_, err = log.Append(ctx, e)
	}
	if err == nil {
		_, _ = log.Checkpoint(ctx) // the voucher counts without a checkpoint, and the next checkpoint covers both
	}
	_ = log.Close() // the appended events are already on disk
	return err
}

// Filter returns the approvals that count: every no, and each yes of this user on this machine.
func (v Vouchers) Filter(ctx context.Context, list []policy.Approval) ([]policy.Approval, error) {
	if len(list) == 0 {
		return nil, nil
	}
	known, err := v.Known(ctx)
	var counts []policy.Approval
	for _, a := range list {
		if a.Effect != policy.Allow || known.Has(a) {
			counts = append(counts, a)
		}
	}
	return counts, err
}

// Known returns the decisions for which the log vouches. With an error it returns no decision.
func (v Vouchers) Known(ctx context.Context) (Known, error) {
	if v.dirs.State == "" {
		return nil, nil
	}
	old, err := v.readOld() // Read the file before the log: another process may move its content to the log in between.
	if err != nil {
		return nil, err
	}
	ws, name := v.dirs.Own()
	paths, err := ws.Context(name)
	if err != nil {
		return nil, err
	}
	known := Known{}
	log, err := store.OpenReader(ctx, paths.EventLog)
	if err == nil {
		known, _, err = read(ctx, log)
		_ = log.Close() // only read
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for hash, counts := range old {
		now, ok := known[hash]
		known[hash] = counts && (now || !ok)
	}
	return known, nil
}

// types are the event types of vouchers.
var types = []event.Type{event.VoucherGiven, event.VoucherRevoked}

// read returns the decisions in the log and the number of the last event.
func read(ctx context.Context, log *store.Reader) (known Known, last event.Seq, err error) {
	known = Known{}
	for e, err := range log.Events(ctx, event.Query{Types: types}) {
		if err != nil {
			return nil, 0, err
		}
		f, err := fact.Decode[fact.Voucher](e)
		if err != nil {
			return nil, 0, err
		}
		known[f.Decision], last = e.Type == event.VoucherGiven, e.Seq
	}
	return known, last, nil
}

// old returns the path of the file in which earlier versions kept the hashes, one per line. A dash before a hash
// means revoked.
func (v Vouchers) old() string { return filepath.Join(v.dirs.State, "approvals") }

// migrateFile appends the hashes of an earlier version's file that the log does not have, and removes the file. If the
// file and the log disagree about a decision, the no counts.
func (v Vouchers) migrateFile(ctx context.Context, log *eventlog.Log) error {
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
			continue // another process has migrated the file
		}
		if err != nil {
			return err
		}
		if err := os.Remove(v.old()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return disk.SyncDir(v.dirs.State)
	}
}

// readOld returns the content of the file. It returns nil if the file does not exist.
func (v Vouchers) readOld() (Known, error) {
	text, err := os.ReadFile(v.old())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	known := Known{}
	for line := range strings.Lines(string(text)) {
		hash, revoked := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-")
		if len(hash) == hex.EncodedLen(sha256.Size) { // a shorter line was not written completely
			known[hash] = !revoked
		}
	}
	return known, err
}
