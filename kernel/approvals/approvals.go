// Package approvals knows the standing approvals of a log and the decisions that this user made on this machine.
//
// A decision that came with a foreign log is not valid until the user's own log vouches for it. The package decides
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

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
)

// Vouchers knows the decisions of this user on this machine: standing approvals and paired contacts. A cloned
// repository can bring a log with foreign decisions. So a yes is valid only if its hash is in the user's own log. If
// the user's log is lost, all these decisions become invalid. The zero Vouchers knows no decision.
type Vouchers struct{ dirs config.Dirs }

// NewVouchers returns Vouchers that store the hashes in the user's own log. The first Add creates that log.
func NewVouchers(dirs config.Dirs) Vouchers { return Vouchers{dirs} }

// Known maps the hash of a decision to true if the user's log vouches for the decision.
type Known map[string]bool

// Has reports whether the user's log vouches for a decision. The decision is a struct of plain fields.
func (k Known) Has(decision any) bool { return k[hash(decision)] }

// hash identifies a decision by the values of all its fields.
func hash(decision any) string {
	b, err := json.Marshal(decision)
	if err != nil {
		panic(fmt.Sprintf("approvals: voucher: %v", err)) // cannot happen for plain fields
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Add vouches for a decision, which is a struct of plain fields. When Add returns nil, the voucher survives a power
// failure.
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
	log, err := eventlog.Open(ctx, paths.EventLog, eventlog.Options{Context: name,
		Keys: evidence.UseKeys(v.dirs.KeyDir())})
	if err != nil {
		return err
	}
	if _, err = log.Append(ctx, e); err == nil {
		_, _ = log.Checkpoint(ctx) // the voucher is valid without a checkpoint, and the next one covers it
	}
	_ = log.Close() // the events are already on disk, so the error does not matter
	return err
}

// Filter returns the valid approvals of the list: every no, and each yes for which the user's log vouches.
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

// Known returns the decisions for which the user's log vouches. After an error, no decision is valid.
func (v Vouchers) Known(ctx context.Context) (Known, error) {
	if v.dirs.State == "" {
		return nil, nil
	}
	ws, name := v.dirs.Own()
	paths, err := ws.Context(name)
	if err != nil {
		return nil, err
	}
	log, err := store.OpenReader(ctx, paths.EventLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // only read, so the error does not matter
	known := Known{}
	q := event.Query{Types: []event.Type{event.VoucherGiven, event.VoucherRevoked}}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return nil, err
		}
		f, err := fact.Decode[fact.Voucher](e)
		if err != nil {
			return nil, err
		}
		known[f.Decision] = e.Type == event.VoucherGiven
	}
	return known, nil
}
