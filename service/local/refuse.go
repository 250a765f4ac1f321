package local

import (
	"reflect"
	"slices"

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
	var refused []numbered
	c.waiting = slices.DeleteFunc(c.waiting, func(w numbered) bool {
		same := reflect.DeepEqual(w.inbound(), m)
		if same {
			refused = append(refused, w)
		}
		return same
	})
	c.mu.Unlock()
	for _, w := range refused {
		_ = w.from.write(line{Refused: &Refusal{w.ID, why.Error()}}) // if it is lost the phone says it again
	}
}
