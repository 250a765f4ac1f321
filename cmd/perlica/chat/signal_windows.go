package chat

import (
	"os"
	"os/signal"

	"github.com/perlica/perlica/cmd/perlica/frame"
)

const canSuspend = false

// handleSignals ends the chat in order on a signal.
func (c *chat) handleSignals() (release func()) {
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-ch:
				if !c.cancelTurn(frame.StopOfSignal(sig)) {
					c.quitChat(frame.StopOfSignal(sig))
				}
			case <-done:
				signal.Stop(ch)
				return
			}
		}
	}()
	return func() { close(done) }
}

func (c *chat) suspendProcess() {}
