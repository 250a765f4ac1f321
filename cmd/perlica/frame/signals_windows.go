package frame

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// SurviveBrokenPipes does nothing: Windows sends no signal for a closed pipe.
func SurviveBrokenPipes() {}

// IsClosedPipe reports whether err means that nobody reads the pipe.
func IsClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, windows.ERROR_BROKEN_PIPE) ||
		errors.Is(err, windows.ERROR_NO_DATA)
}

// Suspend does nothing: Windows has no job control.
func Suspend() error { return nil }

// TerminalResizes returns no changes on Windows. The caller reads the terminal's size after each key.
func TerminalResizes() (changes <-chan os.Signal, stop func()) { return nil, func() {} }

// BeforeFatalSignal does nothing: Windows has no such signals.
func BeforeFatalSignal(func() error) {}
