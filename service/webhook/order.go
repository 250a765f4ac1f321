package webhook

import (
	"time"

	"github.com/perlica/perlica/service/channel"
)

// stale is how much older than a card a message may say that it is: a gateway that was cut off may
// hand on much later what was written long before. It is no matter of seconds: clocks differ.
const stale = time.Minute

// sending is when the receiver had a message.
type sending struct {
	number int64
	at     time.Time
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
	if before, ok := c.first.Get(id); ok {
		return before
	}
	c.first.Put(id, now)
	return now
}

// landed takes note that the receiver has a message.
func (c *Channel) landed(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.sent.Put(id, sending{c.last, c.now()})
}

// After reports whether a message that waits came behind the answer of the receiver that it has
// what was sent: for the first time, however often it was repeated.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	card, ok := c.sent.Get(sent)
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
