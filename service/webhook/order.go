package webhook

import (
	"time"

	"github.com/perlica/perlica/service/channel"
)

// maxRecent is how many messages the order is known of.
const maxRecent = 4096

// stale is how much older than a card a message may say that it is: a gateway that was cut off may
// hand on much later what was written long before. It is no matter of seconds: clocks differ.
const stale = time.Minute

// sending is when the receiver had a message.
type sending struct {
	number int64
	at     time.Time
}

// recent keeps what was put in last.
type recent[T any] struct {
	values map[string]T
	keys   []string // the oldest first
}

func newRecent[T any]() recent[T] { return recent[T]{values: map[string]T{}} }

func (r *recent[T]) put(key string, value T) {
	if _, known := r.values[key]; !known {
		r.keys = append(r.keys, key)
	}
	r.values[key] = value
	if len(r.keys) > maxRecent {
		delete(r.values, r.keys[0])
		r.keys = r.keys[1:]
	}
}

// tick numbers what happens.
func (c *Channel) tick() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return c.last
}

// cameFirst returns when a message came for the first time, if it was not accepted then. The
// caller holds mu.
func (c *Channel) cameFirst(id string, now int64) int64 {
	if before, ok := c.first.values[id]; ok {
		return before
	}
	c.first.put(id, now)
	return now
}

// landed takes note that the receiver has a message.
func (c *Channel) landed(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.sent.put(id, sending{c.last, c.now()})
}

// After reports whether a message that waits came behind the answer of the receiver that it has
// what was sent: for the first time, however often it was repeated.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	card, ok := c.sent.values[sent]
	if !ok || m.Sent.Before(card.at.Add(-stale)) {
		return false
	}
	for _, h := range c.waiting {
		if h.message.ID == m.ID {
			return h.came > card.number
		}
	}
	return false
}
