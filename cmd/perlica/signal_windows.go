package main

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

func surviveBrokenPipes() {}

func isClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}

// suspend does nothing: there is no job control.
func suspend() error { return nil }

// resizes tells nothing here: the size is looked at with each key.
func resizes() (changes <-chan os.Signal, stop func()) { return nil, func() {} }
