package telegram

import "time"

// SetNow replaces the clock of a channel.
func (c *Channel) SetNow(now func() time.Time) { c.now = now }
