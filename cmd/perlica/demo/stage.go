package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/agents"
)

// stage is the place of the demonstration: its folder, its streams and the way to run a command.
type stage struct {
	*frame.App
	styles   screen.Styles
	attended bool // true if a person sits at the terminal
	program  string
	dir      string // the new folder, which contains all other folders
	project  string
	stranger string // a folder without a log
	env      []string
	failed   error // the first error of standard output
}

// columns is the width of the demonstration's own lines.
const columns = 78

// tell prints lines of the demonstration itself.
func (s *stage) tell(lines ...string) { s.print(strings.Join(lines, "\n") + "\n") }

func (s *stage) print(text string) {
	if err := s.App.Write(func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}); s.failed == nil {
		s.failed = err
	}
}

// act prints a sentence and a command, and runs the command in the project. It fails if the command ends with another
// exit code.
func (s *stage) act(ctx context.Context, sentence string, code int, args ...string) error {
	s.announce(sentence, args)
	cmd := s.command(ctx, args)
	cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
	var out *output
	if !s.attended {
		// The child must not see a terminal. Otherwise the child would wait for a person's answer.
		out = &output{to: s.Stdout}
		cmd.Stdout, cmd.Stderr = out, out
	}
	err := s.check(ctx, cmd, cmd.Run(), code)
	out.endLine()
	return err
}

// announce prints a sentence and a command.
func (s *stage) announce(sentence string, args []string) {
	s.tell("", sentence, "", s.styles.Bold(commandLine(args)))
}

// command returns a command of this program in the project. If ctx ends, the command stops as after Ctrl-C.
func (s *stage) command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Dir, cmd.Env = s.project, s.env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// check compares the exit code of a command with the expected one. The parameter "err" is the error of exec.Cmd.
func (s *stage) check(ctx context.Context, cmd *exec.Cmd, err error, code int) error {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.As(err, &exit):
		return err
	case cmd.ProcessState.ExitCode() == int(frame.ExitInterrupted): // The person pressed Ctrl-C at the question.
		return frame.ExitInterrupted.With(nil)
	case cmd.ProcessState.ExitCode() != code:
		return frame.WithHint(fmt.Errorf("the demonstration ends here: a command ended with exit code %d, not %d",
			cmd.ProcessState.ExitCode(), code),
			"see the message of that command; 'TMPDIR=FOLDER perlica demo' plays in another folder")
	}
	return nil
}

// read runs a command that the demonstration does not show, and returns its standard output.
func (s *stage) read(ctx context.Context, args ...string) ([]byte, error) {
	cmd := s.command(ctx, args)
	var out bytes.Buffer
	cmd.Stdout = &out
	err := s.check(ctx, cmd, cmd.Run(), 0)
	return out.Bytes(), err
}

// wait waits for the key Enter. Without a person it does nothing.
func (s *stage) wait(ctx context.Context) error {
	if !s.attended || s.failed != nil {
		return s.failed
	}
	tty, err := frame.OpenTTY()
	if err != nil {
		return err
	}
	defer func() { _ = tty.Close() }() // A failed close of a terminal loses no data.
	err = tty.Session(func(keys *screen.Keys) error {
		s.print("\n" + s.styles.Dim("Enter goes on, Ctrl-C ends the demonstration."))
		for {
			_, err := keys.Line(ctx)
			if !errors.Is(err, screen.ErrEscaped) && !errors.Is(err, screen.ErrSuspended) {
				return err
			}
		}
	})
	s.print("\n")
	if errors.Is(err, screen.ErrInterrupted) || errors.Is(err, io.EOF) {
		return frame.ExitInterrupted.With(nil)
	}
	return err
}

// output passes on the output of a command. It closes the channel "found" when the text "want" has arrived.
type output struct {
	to    io.Writer
	want  string
	found chan struct{}

	mu   sync.Mutex // guards the fields below
	seen []byte
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.want != "" && bytes.Contains(o.seen, []byte(o.want))
	o.seen = append(o.seen, b...)
	n, err := o.to.Write(b)
	if o.want != "" && !before && bytes.Contains(o.seen, []byte(o.want)) {
		close(o.found)
	}
	return n, err
}

// endLine ends the last line of the output.
func (o *output) endLine() {
	if o != nil && len(o.seen) > 0 && !bytes.HasSuffix(o.seen, []byte("\n")) {
		_, _ = io.WriteString(o.to, "\n") // A failed write of the next line is reported.
	}
}

// commandLine returns a command as a person types it in a shell. It breaks lines that are too long.
func commandLine(args []string) string {
	text, width := "$ perlica", len("$ perlica")
	for _, a := range args {
		word := agents.CommandLine([]string{a})
		if width+1+len(word) > columns-2 {
			text, width = text+" \\\n   ", 3
		}
		text += " " + word
		width += 1 + len(word)
	}
	return text
}

// logFile returns the path of the project's log.
func (s *stage) logFile() string {
	return filepath.Join(s.project, ".perlica_config", "contexts", "default", "eventlog.db")
}
