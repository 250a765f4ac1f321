package frame

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// SurviveBrokenPipes does nothing: Windows sends no signal for a closed pipe.
func SurviveBrokenPipes() {}

// IsClosedPipe reports whether the reader of a pipe is gone.
func IsClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, windows.ERROR_BROKEN_PIPE) ||
		errors.Is(err, windows.ERROR_NO_DATA)
}

// Suspend does nothing: Windows has no job control.
func Suspend() error { return nil }

// TerminalResizes reports nothing here. The caller reads the size after each key.
func TerminalResizes() (changes <-chan os.Signal, stop func()) { return nil, func() {} }

// BeforeFatalSignal does nothing: Windows has no such signals.
func BeforeFatalSignal(func() error) {}
