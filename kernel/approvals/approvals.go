// Package approvals says which decisions were made by this user here.
//
// It promises that a decision that came with a log counts for nothing until the user's own state
// vouches for it. It decides nothing.
package approvals

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/perlica/perlica/policy"
)

// Vouchers says what was decided here: standing approvals, and contacts that were paired. A log
// can come with a cloned repository, and with it decisions that were not made here: a yes counts
// only if its hash is in a file of the user's own. Losing the file loses them, never the other
// way round.
type Vouchers struct{ path string }

// NewVouchers keeps the hashes in the file at path.
func NewVouchers(path string) Vouchers { return Vouchers{path} }

// hash identifies a decision by all that it says.
func (Vouchers) hash(decision any) string {
	b, err := json.Marshal(decision)
	if err != nil {
		panic(fmt.Sprintf("approvals: voucher: %v", err)) // plain fields
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// revoked goes ahead of the hash of a decision that does not count from that line on.
const revoked = "-"

// Add vouches for a decision, a value of plain fields. When it returns nil the voucher survives a
// power failure.
func (v Vouchers) Add(decision any) error { return v.write(v.hash(decision)) }

// Revoke takes the voucher for a decision back, with the same promise. Only a later Add gives it
// again.
func (v Vouchers) Revoke(decision any) error { return v.write(revoked + v.hash(decision)) }

// Knows reports whether a decision is vouched for.
func (v Vouchers) Knows(decision any) (bool, error) {
	known, err := v.read()
	return known[v.hash(decision)], err
}

// write appends a line: processes that write at the same moment lose nothing of each other's.
func (v Vouchers) write(line string) error {
	if err := os.MkdirAll(filepath.Dir(v.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(v.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}

// Filter returns the approvals that count: every no, and each yes that was given here.
func (v Vouchers) Filter(list []policy.Approval) ([]policy.Approval, error) {
	if len(list) == 0 {
		return nil, nil
	}
	known, err := v.read()
	var counts []policy.Approval
	for _, a := range list {
		if a.Effect != policy.Allow || known[v.hash(a)] {
			counts = append(counts, a)
		}
	}
	return counts, err
}

func (v Vouchers) read() (map[string]bool, error) {
	f, err := os.Open(v.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read from only
	known := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		hash, gone := strings.CutPrefix(lines.Text(), revoked)
		known[hash] = !gone
	}
	return known, lines.Err()
}
