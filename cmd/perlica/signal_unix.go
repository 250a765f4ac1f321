//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// surviveBrokenPipes makes writing to a closed pipe an error. The signal is caught, not
// ignored: agents would inherit that.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
