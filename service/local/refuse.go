package local

import (
	"reflect"

	"github.com/perlica/perlica/service/channel"
)

// Refusal says that a message was not taken: its id was received before, with another text or with one
// that is not on record any more, and it is of no use to say it again.
type Refusal struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// Refuse tells the phone why the message is not taken.
func (c *Channel) Refuse(m channel.Inbound, why *channel.ConflictError) {
	c.mu.Lock()
	var refused, rest []numbered
	for _, w := range c.waiting {
		if reflect.DeepEqual(w.inbound(), m) {
			refused = append(refused, w)
		} else {
			rest = append(rest, w)
		}
	}
	c.waiting = rest
	c.mu.Unlock()
	for _, w := range refused {
		_ = w.from.write(line{Refused: &Refusal{w.ID, why.Error()}}) // if it is lost the phone says it again
	}
}
