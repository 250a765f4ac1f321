package frame

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
)

// UserName returns the name of the user who asks or answers.
func UserName(getenv func(string) string) string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if s := getenv(name); s != "" {
			return s
		}
	}
	return "user"
}

// Piped reports whether standard input is a pipe, a socket or a file.
func (a *App) Piped() bool {
	info, err := a.Stdin.Stat()
	return err == nil && !screen.IsTerminal(a.Stdin) && info.Mode()&os.ModeCharDevice == 0
}

// OpenTTY opens the controlling terminal. If a signal ends the process, it first restores the terminal's mode.
func OpenTTY() (*screen.TTY, error) {
	tty, err := screen.OpenTTY()
	if err == nil {
		BeforeFatalSignal(tty.Restore)
	}
	return tty, err
}

// Confirm asks a question at the terminal and reads one key. Only the key y means yes.
func (a *App) Confirm(ctx context.Context, question string) (yes bool, err error) {
	noTerminal := WithHint(ExitUsage.With(errors.New("there is no terminal to ask on")), "--yes answers in its place")
	if !screen.IsTerminal(a.Stderr) {
		return false, noTerminal
	}
	tty, err := OpenTTY()
	if err != nil {
		return false, noTerminal
	}
	defer func() { _ = tty.Close() }() // A failed close of a terminal loses no data.
	// A session stops the echo of keys. The question follows, so no early key appears next to the answer.
	err = tty.Session(func(keys *screen.Keys) error {
		fmt.Fprint(a.Stderr, a.Styles(a.Stderr).Bold(question)+" [y/N] ")
		key, err := keys.Next(ctx)
		yes = key.Kind == screen.KeyRune && (key.Rune == 'y' || key.Rune == 'Y')
		fmt.Fprint(a.Stderr, map[bool]string{true: "yes", false: "no"}[yes])
		return err
	})
	fmt.Fprintln(a.Stderr)
	return yes, err
}

// ShownPath returns a path relative to the working directory. If it lies outside, ShownPath returns the path itself.
func ShownPath(p *project.Project, path string) string {
	rel, err := filepath.Rel(p.Dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}

// PrintJSON prints v as one indented JSON value. Copies of PrintJSON at its many uses would make the program larger.
//
//go:noinline
func (a *App) PrintJSON(v any) error {
	return a.Write(func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	})
}

// Show prints the value v as JSON, or calls f to print it for people.
func (a *App) Show(asJSON bool, v any, f func(w io.Writer, s screen.Styles) error) error {
	if asJSON {
		return a.PrintJSON(v)
	}
	return a.Write(func(w io.Writer) error { return f(w, a.Styles(a.Stdout)) })
}

// Table prints a table that is at most as wide as the terminal.
func (a *App) Table(g Grid) error {
	return a.Write(func(w io.Writer) error { return g.Write(w, a.Styles(a.Stdout), screen.TerminalWidth(a.Stdout)) })
}

// Say prints one line about an action that was completed. Copies of Say at its many uses would make the program larger.
//
//go:noinline
func (a *App) Say(format string, args ...any) error {
	return a.Write(func(w io.Writer) error {
		_, err := fmt.Fprintln(w, screen.Sanitize(fmt.Sprintf(format, args...)))
		return err
	})
}

// Styles returns the styles for text on f.
func (a *App) Styles(f *os.File) screen.Styles {
	return screen.NewStyles(a.Getenv, screen.IsTerminal(f))
}

// Note prints a line on standard error. The line is no error.
func (a *App) Note(text string) {
	text = a.Styles(a.Stderr).Dim(a.wrapped("perlica: " + text))
	_, _ = io.WriteString(a.Stderr, text+"\n") // A failed write to standard error cannot be reported elsewhere.
}

// HasDumbTerminal reports whether TERM says that the terminal can only print lines.
func (a *App) HasDumbTerminal() bool { return a.Getenv("TERM") == "dumb" }

// wrapped wraps a text at words for a terminal. A text for a file is not wrapped.
func (a *App) wrapped(text string) string {
	if width := screen.TerminalWidth(a.Stderr); width > 0 {
		return card.Marked(text, width)
	}
	return screen.Sanitize(text)
}

// Complain prints an error and its hint.
func (a *App) Complain(err error) {
	styles := screen.NewStyles(a.Getenv, screen.IsTerminal(a.Stderr))
	// A log that failed returns its error a second time from Close, so equal lines are printed once.
	lines := slices.Compact(strings.Split(strings.TrimRight(err.Error(), "\n"), "\n"))
	for i, line := range lines {
		if i == 0 {
			const name = "perlica:"
			fmt.Fprintln(a.Stderr, styles.Red(name)+strings.TrimPrefix(a.wrapped(name+" "+line), name))
			continue
		}
		fmt.Fprintln(a.Stderr, a.wrapped("  "+line))
	}
	if hint := HintOf(err); hint != "" {
		fmt.Fprintln(a.Stderr, styles.Dim(a.wrapped("hint: "+hint)))
	}
}

// Write calls f with standard output. It ignores the error of a closed pipe and returns any other error.
func (a *App) Write(f func(w io.Writer) error) error {
	if err := f(a.Stdout); err != nil && !IsClosedPipe(err) {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// NoteIgnoredSettings lists the settings that are not trusted yet, and the warnings. It prints them on standard
// error.
func (a *App) NoteIgnoredSettings(c *config.Config) {
	s := a.Styles(a.Stderr)
	for _, lines := range []struct {
		what  string
		lines []string
	}{
		{"not trusted yet, left aside: ", c.Withheld},
		{"warning: ", c.Warnings},
	} {
		for _, l := range lines.lines {
			fmt.Fprintln(a.Stderr, s.Yellow("perlica: ")+screen.Sanitize(lines.what+l))
		}
	}
	if len(c.Withheld) > 0 {
		fmt.Fprintln(a.Stderr, s.Dim("hint: 'perlica config trust' shows what it is, and asks"))
	}
}

// ByteOrderMark stands at the beginning of texts from some editors and shells. It is not a part of the text.
const ByteOrderMark = "\ufeff"

// MaxInput is the size of the longest input text in bytes.
const MaxInput = 32 << 20

// Progress shows on a terminal how many events of a log were handled. The caller passes the number to f. If log is nil,
// the total is unknown. The function "done" removes the line from the screen and may be called more than once.
func (a *App) Progress(ctx context.Context, doing string, log *store.Reader) (f func(int64), done func()) {
	of := ""
	if log != nil {
		if size, _, err := log.Head(ctx); err == nil {
			of = fmt.Sprintf(" of %d", size)
		}
	}
	status := screen.NewStatusLine(a.Stderr, screen.StatusWidth(a.Stderr, a.Getenv), a.Styles(a.Stderr),
		screen.SystemClock())
	return func(seq int64) { status.Set(fmt.Sprintf("%s: event %d%s", doing, seq, of)) },
		func() { _ = status.Close() } // If the terminal is closed, there is no line to remove.
}
