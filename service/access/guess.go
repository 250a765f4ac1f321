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

// Limits are how long a pairing code counts, and how many guesses it stands.
type Limits struct {
	Time     time.Duration
	Attempts int
}

// LimitsOfContacts returns those of a code of six digits, which is typed into a message.
func LimitsOfContacts() Limits { return Limits{5 * time.Minute, 10} }

// LimitsOfDevices returns those of a code in an address, which is opened in a browser.
func LimitsOfDevices() Limits { return Limits{2 * time.Minute, 5} }

// NewPairing is a code as it goes on record: its salted hash, which keeps it from being read there at
// a glance, and the rights of who sends it in time.
func NewPairing(code string, rights Rights, by string, expires time.Time) (fact.Pairing, error) {
	f := fact.Pairing{ID: uuid.Must(uuid.NewV7()).String(), Salt: make([]byte, 16), Rights: rights, Expires: expires, By: by}
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

// IsCode reports whether code is the one of which the salt and the hash are on record.
func IsCode(salt, hash []byte, code string) bool {
	return subtle.ConstantTimeCompare(hashCode(salt, code), hash) == 1
}

// firstDelay is how long somebody waits who guessed wrong once; it doubles each time.
const firstDelay = 2 * time.Second

// MayGuess reports whether enough time has passed since the last of so many wrong guesses.
func MayGuess(attempts int, last, now time.Time) bool {
	return attempts == 0 || now.Sub(last) >= firstDelay<<min(attempts-1, 16)
}

// How many refusals are recorded in a while; the rest are counted.
const (
	refusalsRecorded = 5
	refusalsWindow   = time.Minute
)

// Refusals keeps strangers from filling a log: it says which of their attempts are recorded. The zero
// Refusals has seen none.
type Refusals struct {
	mu       sync.Mutex // guards what follows
	since    time.Time
	recorded int
	left     int // refused without an event since the last one with one
}

// Record reports whether a refusal is recorded now, and how many were not since the last that was.
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
