package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/kernel/fact"
)

// Limits holds the lifetime of a pairing code and the number of allowed guesses.
type Limits struct {
	Time     time.Duration
	Attempts int
}

// LimitsOfContacts returns the limits of a code of six digits that a person types into a message.
func LimitsOfContacts() Limits { return Limits{5 * time.Minute, 10} }

// LimitsOfDevices returns the limits of a code in an address that a browser opens.
func LimitsOfDevices() Limits { return Limits{2 * time.Minute, 5} }

// NewPairing returns the recorded form of a code. It has the rights that the sender of the code gets. It has only a
// salted hash of the code, so that a glance at the record does not reveal the code.
func NewPairing(code string, rights Rights, by string, expires time.Time) (fact.Pairing, error) {
	f := fact.Pairing{ID: uuid.Must(uuid.NewV7()).String(), Salt: make([]byte, 16), Rights: rights, Expires: expires,
		By: by}
	if _, err := rand.Read(f.Salt); err != nil {
		return f, err
	}
	f.Hash = hashCode(f.Salt, code)
	return f, nil
}

func hashCode(salt []byte, code string) []byte {
	sum := sha256.Sum256(append(append([]byte(nil), salt...), code...))
	return sum[:]
}

// IsCode reports whether the recorded salt and hash belong to the code.
func IsCode(salt, hash []byte, code string) bool {
	return subtle.ConstantTimeCompare(hashCode(salt, code), hash) == 1
}

// firstDelay is the wait after the first wrong guess. It doubles with each further one.
const firstDelay = 2 * time.Second

// MayGuess reports whether the wait after this number of wrong guesses is over.
func MayGuess(attempts int, last, now time.Time) bool {
	return attempts == 0 || now.Sub(last) >= firstDelay<<min(attempts-1, 16)
}

// refusalsRecorded is the number of refusals that are recorded in refusalsWindow. Further ones are
// only counted.
const (
	refusalsRecorded = 5
	refusalsWindow   = time.Minute
)

// Refusals limits the recorded refusals, so that strangers cannot fill a log. The zero value is
// ready for use.
type Refusals struct {
	mu       sync.Mutex // guards the fields below
	since    time.Time
	recorded int
	left     int // refusals since the last recorded one
}

// Record reports whether a refusal must be recorded now. The result "unrecorded" is the number of refusals since the
// last recorded one.
func (r *Refusals) Record(now time.Time) (unrecorded int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= refusalsWindow {
		r.since, r.recorded = now, 0
	}
	if r.recorded >= refusalsRecorded {
		r.left++
		return 0, false
	}
	r.recorded++
	unrecorded, r.left = r.left, 0
	return unrecorded, true
}
