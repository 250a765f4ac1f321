//go:build unix

package chat

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/perlica/perlica/cmd/perlica/frame"
)

const canSuspend = true

// signals makes signals end the chat in order, and keeps the terminal right across a stop.
func (c *chat) signals() (release func()) {
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
				c.signal(sig)
			case <-done:
				signal.Stop(ch)
				return
			}
		}
	}()
	return func() { close(done) }
}

func (c *chat) signal(sig os.Signal) {
	switch sig {
	case os.Interrupt:
		if !c.cancelTurn(frame.StopOfSignal(sig)) {
			c.quit(frame.StopOfSignal(sig))
		}
	case syscall.SIGCONT:
		if c.resumed() {
			return
		}
		_ = c.tty.Again() // the shell that continued the process may have changed the mode
		c.paste(true)
		c.redraw()
	case syscall.SIGWINCH:
		c.resized()
	default:
		c.quit(frame.StopOfSignal(sig))
	}
}

// suspend stops the process, with the terminal as it was, until somebody continues it.
func (c *chat) suspend() {
	c.mu.Lock()
	line := c.line
	c.mu.Unlock()
	if line == nil {
		c.stopped()
		return
	}
	line.Aside(c.stopped)
}

func (c *chat) stopped() {
	c.paste(false)
	_ = c.tty.Aside(func() error { // a terminal that is gone says so to its reader
		again := make(chan struct{})
		c.mu.Lock()
		c.suspended = again
		c.mu.Unlock()
		frame.StopProcess(again)
		c.resumed() // also if the system did not stop it
		return nil
	})
	c.paste(true)
}

// resumed ends a suspend and reports whether there was one.
func (c *chat) resumed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.suspended
	c.suspended = nil
	if again != nil {
		close(again)
	}
	return again != nil
}
