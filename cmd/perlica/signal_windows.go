package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

func surviveBrokenPipes() {}

func isClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}

// suspend does nothing: there is no job control.
func suspend() error { return nil }
