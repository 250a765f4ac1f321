// Package screen draws on a terminal and reads its keys.
//
// The parts:
//   - [Sanitize] and [SafeWriter] make an agent's text harmless: no terminal obeys it.
//   - [Styles] colour text. [TextWidth] and [TextRows] measure it.
//   - [TTY] is the terminal from which [Keys] reads keys. [TTY.Session] restores the terminal's mode at its end.
//   - [StatusLine] is the line at the bottom that shows the progress. Text that still changes may stand above it.
//   - [Editor] is the line in which a person writes to an agent. [Pick] and [ShowPages] show lists.
//   - [MarkdownStream] and [RenderMarkdown] show Markdown.
//
// The package promises:
//   - A terminal obeys nothing that an agent writes.
//   - A session ends with the terminal in its old mode, also after a panic.
//   - A key that was pressed before a question appeared does not answer the question.
//   - Only Enter at the prompt sends a line. Pasted text stays in the line.
//   - The line on the screen is the line that is sent. A large paste stands in it as a short label.
//
// The package decides nothing: the caller knows the meaning of a key and of a line. The package reads no environment
// variable and opens no standard stream. The caller passes files and the function getenv.
package screen

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// TerminalWidth returns the number of columns of the terminal f. It returns 0 if f is not a terminal or its size is
// unknown.
func TerminalWidth(f *os.File) int {
	w, _ := size(f)
	return w
}

// TerminalHeight returns the number of rows of the terminal f. It returns 0 if f is not a terminal or its size is
// unknown.
func TerminalHeight(f *os.File) int {
	_, h := size(f)
	return h
}

func size(f *os.File) (w, h int) {
	if f == nil {
		return 0, 0
	}
	w, h, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return w, h
}

// StatusWidth returns the width function of f for [NewStatusLine]. It returns nil if f cannot show a status line,
// because f is not a terminal or cannot move its cursor.
func StatusWidth(f *os.File, getenv func(string) string) func() int {
	if !IsTerminal(f) || getenv("TERM") == "dumb" {
		return nil
	}
	return func() int { return TerminalWidth(f) }
}
