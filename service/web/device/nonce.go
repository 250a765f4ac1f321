package device

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"
)

// nonceTime is the time in which a nonce can be signed.
const nonceTime = 5 * time.Minute

// nonces makes and recognises nonces by a key of this process. It stores none.
type nonces struct{ key []byte }

func newNonces() nonces {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // rand.Read never fails
	return nonces{key}
}

// nonceMAC is the number of bytes of the HMAC in a nonce, after 8 bytes of time.
const nonceMAC = 16

func (n nonces) at(nanos uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, nanos)
	mac := hmac.New(sha256.New, n.key)
	_, _ = mac.Write(b) // a hash never fails
	return mac.Sum(b)[:len(b)+nonceMAC]
}

func (n nonces) fresh(now time.Time) string {
	return base64.RawURLEncoding.EncodeToString(n.at(uint64(now.UnixNano())))
}

// lives reports whether this process made the nonce less than nonceTime ago.
func (n nonces) lives(nonce string, now time.Time) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(nonce)
	if err != nil || len(b) != 8+nonceMAC {
		return false
	}
	nanos := binary.BigEndian.Uint64(b)
	if !hmac.Equal(b, n.at(nanos)) {
		return false
	}
	age := now.Sub(time.Unix(0, int64(nanos)))
	return age >= 0 && age < nonceTime // a negative age means that the clock was set back
}

// Nonce returns a nonce that a browser may sign during the next five minutes. The header
// Perlica-Nonce of every answer has one.
func (d *Devices) Nonce() string { return d.nonces.fresh(d.opt.Now()) }

// mostSigned limits the requests of one device in five minutes. Further requests are refused.
const mostSigned = 10_000

// replays remembers each signed nonce for the nonce's lifetime. The zero value is empty.
type replays struct {
	// mu guards the fields below.
	mu    sync.Mutex
	began time.Time
	// now holds the nonces since the time in the field "began", by the device's id.
	now map[string]map[[16]byte]bool
	// past holds the nonces of the period before, by the device's id.
	past map[string]map[[16]byte]bool
}

// first reports whether a device uses this nonce for the first time. The result "full" reports that the device has
// signed too many requests.
func (r *replays) first(id, nonce string, now time.Time) (first, full bool) {
	sum := sha256.Sum256([]byte(nonce))
	key := [16]byte(sum[:])
	r.mu.Lock()
	defer r.mu.Unlock()
	// A nonce stays in now or past for at least nonceTime, so it is invalid before it is forgotten.
	if r.now == nil || now.Sub(r.began) >= nonceTime {
		r.began, r.past, r.now = now, r.now, map[string]map[[16]byte]bool{}
	}
	if r.now[id][key] || r.past[id][key] {
		return false, false
	}
	if len(r.now[id]) >= mostSigned {
		return true, true
	}
	if r.now[id] == nil {
		r.now[id] = map[[16]byte]bool{}
	}
	r.now[id][key] = true
	return true, false
}
