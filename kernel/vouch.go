package kernel

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

	"github.com/perlica/perlica/policy"
)

// Vouchers says which standing approvals were given here. A log can come with a cloned
// repository, and with it approvals that nobody here gave: a yes counts only if its hash
// is in a file of the user's own. Losing the file loses the approvals, never the other way
// round.
type Vouchers struct{ path string }

// NewVouchers keeps the hashes in the file at path.
func NewVouchers(path string) Vouchers { return Vouchers{path} }

// hash identifies an approval by all that it says.
func (Vouchers) hash(a policy.Approval) string {
	b, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("kernel: approval: %v", err)) // plain fields
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Add vouches for an approval. When it returns nil the voucher survives a power failure.
func (v Vouchers) Add(a policy.Approval) error {
	if err := os.MkdirAll(filepath.Dir(v.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(v.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(v.hash(a) + "\n")
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
		known[lines.Text()] = true
	}
	return known, lines.Err()
}
