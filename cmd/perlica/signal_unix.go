//go:build unix

package main

import (
	"errors"
	"os/signal"
	"syscall"
)

func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
