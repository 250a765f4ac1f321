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

// nonceTime is how long a nonce of the server's can be signed.
const nonceTime = 5 * time.Minute

// nonces are made and known again by a key of this process: none is stored.
type nonces struct{ key []byte }

func newNonces() nonces {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return nonces{key}
}

// nonceMAC is how many bytes of the HMAC a nonce has, behind its 8 bytes of time.
const nonceMAC = 16

func (n nonces) at(nanos uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, nanos)
	mac := hmac.New(sha256.New, n.key)
	_, _ = mac.Write(b) // a hash takes all
	return mac.Sum(b)[:len(b)+nonceMAC]
}

func (n nonces) fresh(now time.Time) string {
	return base64.RawURLEncoding.EncodeToString(n.at(uint64(now.UnixNano())))
}

// lives reports whether a nonce was made here, less than nonceTime ago.
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
	return age >= 0 && age < nonceTime // one of the future: the clock was set back
}

// Nonce is one that a browser may sign from now on, for five minutes. Every answer has one in its
// header Perlica-Nonce.
func (d *Devices) Nonce() string { return d.nonces.fresh(d.opt.Now()) }

// mostSigned is how many requests of one device are remembered in five minutes: more are refused.
const mostSigned = 10_000

// replays remembers what was signed, for as long as its nonce lives. The zero value remembers nothing.
type replays struct {
	mu    sync.Mutex // guards what follows
	began time.Time
	now   map[string]map[[16]byte]bool // by the device's id: since began
	past  map[string]map[[16]byte]bool // before that
}

// first reports whether a device has not used this nonce before; full that it has signed too much.
func (r *replays) first(id, nonce string, now time.Time) (first, full bool) {
	sum := sha256.Sum256([]byte(nonce))
	key := [16]byte(sum[:])
	r.mu.Lock()
	defer r.mu.Unlock()
	// What was remembered stays so for at least nonceTime: its nonce does not live longer.
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
