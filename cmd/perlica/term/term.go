// Package term is what the commands need of a terminal: text that cannot command it
// ([Writer]), styles, a status line, and single keys.
//
// It promises that nothing an agent says is obeyed by the terminal, that the
// terminal's mode is restored when a question ends, however it ends, and that a key
// pressed before a question was shown answers nothing. It decides nothing: which
// key means what is the caller's. It looks at no environment and no standard stream
// of its own accord; files and getenv are handed in.
package term

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// Width returns the columns of the terminal f, 0 if it is none or does not say.
func Width(f *os.File) int {
	if f == nil {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// Height returns the rows of the terminal f, 0 if it is none or does not say.
func Height(f *os.File) int {
	if f == nil {
		return 0
	}
	_, h, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return h
}

// StatusWidth returns the function that [NewStatus] takes for a status line on f: nil,
// which means no line, if f is no terminal or cannot move its cursor.
func StatusWidth(f *os.File, getenv func(string) string) func() int {
	if !IsTerminal(f) || getenv("TERM") == "dumb" {
		return nil
	}
	return func() int { return Width(f) }
}
