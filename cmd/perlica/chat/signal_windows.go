package chat

import (
	"os"
	"os/signal"

	"github.com/perlica/perlica/cmd/perlica/frame"
)

const canSuspend = false

// signals makes signals end the chat in order.
func (c *chat) signals() (release func()) {
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-ch:
				if !c.cancelTurn(frame.StopOfSignal(sig)) {
					c.quit(frame.StopOfSignal(sig))
				}
			case <-done:
				signal.Stop(ch)
				return
			}
		}
	}()
	return func() { close(done) }
}

func (c *chat) suspend() {}
