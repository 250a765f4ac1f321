package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/kernel"
)

const (
	// silentInput is how long standard input may say nothing before the user learns
	// that it is being waited for.
	silentInput = 2 * time.Second
)

// text gathers the input's text from the arguments, a file and standard input.
// A stop ends the reading with a kernel.StoppedError.
func (a *app) text(f dialog.Flags, args []string, stop <-chan kernel.Stop) (string, error) {
	dash := len(args) == 1 && args[0] == "-" || f.File == "-" && len(args) == 0
	text := ""
	switch {
	case f.File != "" && len(args) > 0:
		return "", errors.New("the text comes from --file or from the arguments, not from both")
	case f.File != "" && !dash:
		b, err := os.ReadFile(f.File)
		if err != nil {
			return "", err
		}
		text = string(b)
	case !dash:
		text = strings.Join(args, " ")
	}
	if dash || a.Piped() {
		piped, err := a.readStdin(stop)
		if err != nil {
			return "", err
		}
		if text != "" && piped != "" {
			text += "\n\n"
		}
		text += piped
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", exitcode.WithHint(errors.New("there is no text to send"), `perlica run "your question", or pipe it in`)
	case !utf8.ValidString(text):
		return "", exitcode.WithHint(errors.New("the text is not valid UTF-8, so it cannot be sent as it is"), "add binary files with --attach")
	case len(text) > cli.MaxInput:
		return "", fmt.Errorf("the text has %d bytes; the limit is %d", len(text), cli.MaxInput)
	}
	return text, nil
}

// readStdin reads all of standard input. A pipe that is never closed looks like a hang,
// so it is said when it takes a while.
func (a *app) readStdin(stop <-chan kernel.Stop) (string, error) {
	notice := time.AfterFunc(silentInput, func() {
		fmt.Fprintln(a.Stderr, "perlica: reading standard input (end it with Ctrl-D, or give </dev/null)")
	})
	defer notice.Stop()
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // ends with the process, if the input never ends
		b, err := io.ReadAll(io.LimitReader(a.Stdin, cli.MaxInput+1))
		done <- read{b, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return "", fmt.Errorf("standard input: %w", r.err)
		}
		return string(r.text), nil
	case s := <-stop:
		return "", &kernel.StoppedError{Stop: s}
	}
}
