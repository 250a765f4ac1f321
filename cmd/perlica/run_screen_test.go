//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/perlica/perlica/cmd/perlica/screen/screentest"
)

// terminal is a terminal and the perlica that runs on it.
type terminal struct {
	*job
	pty   *os.File
	name  string        // name of the terminal's device
	ended chan struct{} // closed when no process uses the terminal any more
	size  [2]int        // columns and rows when the terminal starts

	mu   sync.Mutex // guards seen
	seen []byte
	from int // position after the text that expect has found
}

// terminal runs perlica on a new terminal. The function prepare may set other standard streams.
func (w *world) terminal(prepare func(*exec.Cmd), args ...string) *terminal {
	w.t.Helper()
	return w.terminalOf(200, 50, prepare, args...)
}

// terminalOf works like terminal, with a terminal of the given size.
func (w *world) terminalOf(columns, rows uint16, prepare func(*exec.Cmd), args ...string) *terminal {
	w.t.Helper()
	p, tty, err := pty.Open()
	if err != nil {
		w.t.Skip("no pseudo terminal: ", err)
	}
	if err := pty.Setsize(p, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
		w.t.Fatal(err)
	}
	cmd := w.command(args...)
	if prepare != nil {
		prepare(cmd)
	}
	if cmd.Stdin == nil {
		cmd.Stdin = tty
	}
	if cmd.Stdout == nil {
		cmd.Stdout = tty
	}
	cmd.Stderr = tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	s := &terminal{pty: p, name: tty.Name(), ended: make(chan struct{}), size: [2]int{int(columns), int(rows)}}
	s.job = w.startCmd(cmd)
	_ = tty.Close() // The child has its own copy.
	go func() {
		defer close(s.ended)
		buf := make([]byte, 4096)
		for {
			n, err := p.Read(buf)
			s.mu.Lock()
			s.seen = append(s.seen, buf[:n]...)
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill() // The process has ended, unless the test failed.
		_ = p.Close()          // No process uses the terminal any more.
		<-s.ended
	})
	return s
}

// exits waits for the end of the job and checks its exit code. All output has arrived when it returns.
func (s *terminal) exits(code int) {
	s.w.t.Helper()
	s.job.exits(code)
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.w.t.Error("somebody still has the terminal")
	}
}

// text returns the whole output so far.
func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.seen)
}

var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// expect waits until the terminal shows the text, in any colour. The text must come after the text of the last
// expect.
func (s *terminal) expect(text string) {
	s.w.t.Helper()
	s.w.eventually(fmt.Sprintf("the terminal shows %q", text), func() error {
		all := sgr.ReplaceAllString(s.text(), "")
		i := strings.Index(all[s.from:], text)
		if i < 0 {
			return fmt.Errorf("it shows %q", all[s.from:])
		}
		s.from += i + len(text)
		return nil
	})
}

// finds waits for output that matches the pattern. Otherwise it works like expect.
func (s *terminal) finds(pattern string) (groups []string) {
	s.w.t.Helper()
	re := regexp.MustCompile(pattern)
	s.w.eventually(fmt.Sprintf("the terminal shows %q", pattern), func() error {
		all := sgr.ReplaceAllString(s.text(), "")
		at := re.FindStringIndex(all[s.from:])
		if at == nil {
			return fmt.Errorf("it shows %q", all[s.from:])
		}
		groups = re.FindStringSubmatch(all[s.from:])
		s.from += at[1]
		return nil
	})
	return groups
}

// drawn returns the terminal's screen with its history. It assumes that its size has not changed.
func (s *terminal) drawn() *screentest.Terminal {
	t := screentest.New(s.size[0], s.size[1])
	_, _ = t.Write([]byte(s.text())) // Write of this screen never fails.
	return t
}

// sees waits until the text is visible on the screen or in its history.
func (s *terminal) sees(text string) {
	s.w.t.Helper()
	s.w.eventually(fmt.Sprintf("somebody sees %q", text), func() error {
		if all := s.drawn().All(); !strings.Contains(all, text) {
			return fmt.Errorf("there is\n%s", all)
		}
		return nil
	})
}

// press types keys on the terminal.
func (s *terminal) press(keys string) {
	s.w.t.Helper()
	if _, err := s.pty.WriteString(keys); err != nil {
		s.w.t.Fatal(err)
	}
}

// pressNow types keys. The next expect looks only at output after them.
func (s *terminal) pressNow(keys string) {
	s.w.t.Helper()
	s.from = len(sgr.ReplaceAllString(s.text(), ""))
	s.press(keys)
}

// ask waits until a question with these texts is shown. Perlica discards earlier keys before the last line ends, so
// keys that the test types after ask are not lost.
func (s *terminal) ask(parts ...string) {
	s.w.t.Helper()
	for _, p := range parts {
		s.expect(p)
	}
	s.expect("from elsewhere")
	s.expect("\n")
}

// taken types keys and waits until perlica has read them.
func (s *terminal) taken(keys string) {
	s.w.t.Helper()
	s.press(keys)
	tty, err := os.OpenFile(s.name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.w.t.Fatal(err)
	}
	defer tty.Close()
	s.w.eventually("keys are taken", func() error {
		n, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCINQ)
		if err == nil && n > 0 {
			err = errors.New("they are not")
		}
		return err
	})
}

// shows fails if the output so far does not contain the text.
func (s *terminal) shows(text string) {
	s.w.t.Helper()
	if !strings.Contains(s.text(), text) {
		s.w.t.Errorf("the terminal does not show %q: %q", text, s.text())
	}
}
