package main

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

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
)

// userName names who answers and who asks.
func userName(getenv func(string) string) string {
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

// piped reports whether standard input is something to read: a pipe, a socket or a file.
func (a *app) piped() bool {
	info, err := a.stdin.Stat()
	return err == nil && !term.IsTerminal(a.stdin) && info.Mode()&os.ModeCharDevice == 0
}

// confirm asks a question that one key answers. Only y is a yes.
func (a *app) confirm(ctx context.Context, question string) (yes bool, err error) {
	noTerminal := withHint(exitUsage.with(errors.New("there is no terminal to ask on")), "--yes answers in its place")
	if !term.IsTerminal(a.stderr) {
		return false, noTerminal
	}
	tty, err := term.OpenTTY()
	if err != nil {
		return false, noTerminal
	}
	defer func() { _ = tty.Close() }() // read from only
	fmt.Fprint(a.stderr, a.styles(a.stderr).Bold(question)+" [y/N] ")
	err = tty.Session(func(keys *term.Keys) error {
		key, err := keys.Next(ctx)
		yes = key.Kind == term.KeyRune && (key.Rune == 'y' || key.Rune == 'Y')
		return err
	})
	fmt.Fprintln(a.stderr, map[bool]string{true: "yes", false: "no"}[yes])
	return yes, err
}

// shownPath is a path as a person in the working directory would write it.
func shownPath(p *project.Project, path string) string {
	rel, err := filepath.Rel(p.Dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}

// printJSON prints one value, indented, for people and jq alike.
func (a *app) printJSON(v any) error {
	return a.write(func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	})
}

// say prints one line that tells what was done.
func (a *app) say(format string, args ...any) error {
	return a.write(func(w io.Writer) error {
		_, err := fmt.Fprintln(w, term.Sanitize(fmt.Sprintf(format, args...)))
		return err
	})
}

// styles is the style for what is printed to f.
func (a *app) styles(f *os.File) term.Styles { return term.NewStyles(a.getenv, term.IsTerminal(f)) }

// note prints a line on standard error that is no error.
func (a *app) note(text string) {
	_, _ = io.WriteString(a.stderr, a.styles(a.stderr).Dim("perlica: "+term.Sanitize(text))+"\n") // nobody to tell
}

// isDumb reports whether the terminal is one that cannot be drawn on.
func isDumb(a *app) bool { return a.getenv("TERM") == "dumb" }

// complain prints an error and what to do about it.
func (a *app) complain(err error) {
	styles := term.NewStyles(a.getenv, term.IsTerminal(a.stderr))
	// A log that died says so once more when it is closed.
	for i, line := range slices.Compact(strings.Split(strings.TrimRight(err.Error(), "\n"), "\n")) {
		if i == 0 {
			line = styles.Red("perlica:") + " " + term.Sanitize(line)
		} else {
			line = "  " + term.Sanitize(line)
		}
		fmt.Fprintln(a.stderr, line)
	}
	if hint := hintOf(err); hint != "" {
		fmt.Fprintln(a.stderr, styles.Dim("hint: "+term.Sanitize(hint)))
	}
}

// write is for what a command prints: an error of standard output ends it.
func (a *app) write(f func(w io.Writer) error) error {
	if err := f(a.stdout); err != nil && !isClosedPipe(err) {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// aside says on standard error what does not count as it was written.
func (a *app) aside(c *config.Config) {
	s := a.styles(a.stderr)
	for _, lines := range []struct {
		what  string
		lines []string
	}{
		{"not trusted yet, left aside: ", c.Withheld},
		{"warning: ", c.Warnings},
	} {
		for _, l := range lines.lines {
			fmt.Fprintln(a.stderr, s.Yellow("perlica: ")+term.Sanitize(lines.what+l))
		}
	}
	if len(c.Withheld) > 0 {
		fmt.Fprintln(a.stderr, s.Dim("hint: 'perlica config trust' shows what it is, and asks"))
	}
}

// maxInput is the longest text that is taken.
const maxInput = 32 << 20

// progress shows on a terminal how far into a log something is, which may be one of which
// nothing is known yet. done takes the line away; it may be called again.
func (a *app) progress(ctx context.Context, doing string, log *eventlog.Reader) (f func(int64), done func()) {
	of := ""
	if log != nil {
		if size, _, err := log.Head(ctx); err == nil {
			of = fmt.Sprintf(" of %d", size)
		}
	}
	status := term.NewStatus(a.stderr, term.StatusWidth(a.stderr, a.getenv), a.styles(a.stderr), term.SystemClock())
	return func(seq int64) { status.Set(fmt.Sprintf("%s: event %d%s", doing, seq, of)) },
		func() { _ = status.Close() } // errors of the terminal are nobody's business
}
