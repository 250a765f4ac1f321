//go:build unix

package chat

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/perlica/perlica/cmd/perlica/frame"
)

const canSuspend = true

// handleSignals makes a signal such as SIGTERM end the chat in order. When the shell continues the stopped process,
// it sets the terminal's mode again.
func (c *chat) handleSignals() (release func()) {
	frame.SurviveBrokenPipes()
	ch := make(chan os.Signal, 8)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
	signal.Notify(ch, syscall.SIGCONT, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-ch:
				c.handleSignal(sig)
			case <-done:
				signal.Stop(ch)
				return
			}
		}
	}()
	return func() { close(done) }
}

func (c *chat) handleSignal(sig os.Signal) {
	switch sig {
	case os.Interrupt:
		if !c.cancelTurn(frame.StopOfSignal(sig)) {
			c.quitChat(frame.StopOfSignal(sig))
		}
	case syscall.SIGCONT:
		if c.endSuspension() {
			return
		}
		_ = c.tty.Again() // The shell that continued the process may have changed the mode.
		c.setBracketedPaste(true)
		c.redrawLine()
	case syscall.SIGWINCH:
		c.handleResize()
	default:
		c.quitChat(frame.StopOfSignal(sig))
	}
}

// suspendProcess stops the process until the shell continues it. It restores the terminal's mode first.
func (c *chat) suspendProcess() {
	c.mu.Lock()
	line := c.line
	c.mu.Unlock()
	if line == nil {
		c.restoreAfterStop()
		return
	}
	line.Aside(c.restoreAfterStop)
}

func (c *chat) restoreAfterStop() {
	c.setBracketedPaste(false)
	_ = c.tty.Aside(func() error { // If the terminal is closed, reading the next key fails, too.
		again := make(chan struct{})
		c.mu.Lock()
		c.suspended = again
		c.mu.Unlock()
		frame.StopProcess(again)
		c.endSuspension() // If the system did not stop the process, this call ends the suspension.
		return nil
	})
	c.setBracketedPaste(true)
}

// endSuspension ends a suspension and reports whether there was one.
func (c *chat) endSuspension() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.suspended
	c.suspended = nil
	if again != nil {
		close(again)
	}
	return again != nil
}
