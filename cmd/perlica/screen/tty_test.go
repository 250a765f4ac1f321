//go:build linux || darwin || freebsd

package screen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminal returns a TTY and the other end of its pseudo-terminal, which has the keyboard and the screen.
func terminal(t *testing.T) (*TTY, *os.File) {
	t.Helper()
	screen, file, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	tty, err := openTTY(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tty.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		file.Close()
		screen.Close()
	})
	return tty, screen
}

func typed(t *testing.T, screen io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(screen, s); err != nil {
		t.Fatal(err)
	}
}

func mode(t *testing.T, tty *TTY) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(tty.dev.fd, ioctlGet)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

func TestSessionReadsKeys(t *testing.T) {
	tty, screen := terminal(t)
	before := mode(t, tty)
	err := tty.Session(func(k *Keys) error {
		if mode(t, tty) == before {
			t.Error("the terminal is not in raw mode")
		}
		typed(t, screen, "y１中\x1b[A\x03\x1b")
		for _, want := range []Key{r('y'), r('１'), r('中'), controlKey(CtrlC), {Kind: KeyEsc}} {
			if got, err := k.Next(t.Context()); got != want || err != nil {
				t.Errorf("%v, %v, want %v", got, err, want)
			}
		}
		if err := tty.Session(nil); !errors.Is(err, errBusy) {
			t.Errorf("a second Session: %v", err)
		}
		return io.ErrNoProgress
	})
	if !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("Session: %v", err)
	}
	if mode(t, tty) != before {
		t.Error("the mode was not restored")
	}
}

func TestSessionRestoresAfterPanic(t *testing.T) {
	tty, _ := terminal(t)
	before := mode(t, tty)
	func() {
		defer func() { recover() }()
		tty.Session(func(*Keys) error { panic("boom") })
	}()
	if mode(t, tty) != before {
		t.Error("the mode was not restored")
	}
	if err := tty.Session(func(*Keys) error { return nil }); err != nil {
		t.Errorf("the next Session: %v", err)
	}
}

func TestRestoreFromOutside(t *testing.T) {
	tty, _ := terminal(t)
	before := mode(t, tty)
	err := tty.Session(func(*Keys) error {
		err := tty.Restore()
		if mode(t, tty) != before {
			t.Error("the mode was not restored")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTypeAheadAnswersNothing(t *testing.T) {
	for _, when := range []string{"before the session", "before the question"} {
		t.Run(when, func(t *testing.T) {
			tty, screen := terminal(t)
			if when == "before the session" {
				typed(t, screen, "y\n")
				arrived(t, tty)
			}
			err := tty.Session(func(k *Keys) error {
				if when == "before the question" {
					typed(t, screen, "y")
					arrived(t, tty)
					if err := k.Discard(); err != nil {
						return err
					}
				}
				typed(t, screen, "n")
				if got, err := k.Next(t.Context()); got != r('n') || err != nil {
					t.Errorf("%v, %v, want n", got, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAhead checks that Ahead first reads the bytes that were typed before, even from an unfinished line.
func TestAhead(t *testing.T) {
	tty, screen := terminal(t)
	typed(t, screen, "a\nb")
	arrived(t, tty)
	err := tty.Ahead(func(k *Keys) error {
		for _, want := range []Key{r('a'), controlKey('\n'), r('b')} {
			if got, err := k.Next(t.Context()); got != want || err != nil {
				t.Errorf("%v, %v, want %v", got, err, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// arrived waits until a typed byte can be read.
func arrived(t *testing.T, tty *TTY) {
	t.Helper()
	if ready, err := tty.dev.waitInput(10_000); !ready || err != nil {
		t.Fatalf("nothing arrived: %v", err)
	}
}

func TestNextIsCancelled(t *testing.T) {
	tty, screen := terminal(t)
	err := tty.Session(func(k *Keys) error {
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(cancel)
			if _, err := k.Next(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Next: %v", err)
			}
			wg.Wait()
		}
		typed(t, screen, "a") // The cancelled calls have left nothing that ends this call or takes its key.
		if got, err := k.Next(t.Context()); got != r('a') || err != nil {
			t.Errorf("%v, %v, want a", got, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLineIsShown(t *testing.T) {
	tty, screen := terminal(t)
	out := bufio.NewReader(screen)
	err := tty.Session(func(k *Keys) error {
		if _, err := unix.Write(tty.dev.fd, []byte("type it\n")); err != nil {
			t.Error(err)
		}
		typed(t, screen, "dx\x7f中\r")
		if got, err := k.Line(t.Context()); got != "d中" || err != nil {
			t.Errorf(`got %q, %v; want got == "d中" && err == nil`, got, err)
		}
		_, err := unix.Write(tty.dev.fd, []byte("\n"))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{"type it\r\n", "dx\b \b中\r"} {
		if got, err := out.ReadString('\n'); !strings.HasPrefix(got, want) || err != nil {
			t.Errorf("on the screen: %q, %v, want %q", got, err, want)
		}
	}
}

func TestHangUp(t *testing.T) {
	screen, file, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tty, err := openTTY(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	_ = tty.Session(func(k *Keys) error { // A closed terminal cannot be restored.
		screen.Close()
		if _, err := k.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Next: %v", err)
		}
		return nil
	})
}

func TestCloseDuringSession(t *testing.T) {
	tty, screen := terminal(t)
	err := tty.Session(func(k *Keys) error {
		if err := tty.Close(); err != nil {
			t.Error(err)
		}
		typed(t, screen, "y\n")
		_, err := k.Next(t.Context())
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := tty.Session(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Session after Close: %v", err)
	}
}

func TestOpenWhatIsNoTerminal(t *testing.T) {
	for _, path := range []string{os.DevNull, "/nowhere"} {
		if _, err := openTTY(path); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
}

func TestWidth(t *testing.T) {
	screen, file, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	defer file.Close()
	if err := pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: 97}); err != nil {
		t.Fatal(err)
	}
	if !IsTerminal(file) || TerminalWidth(file) != 97 {
		t.Errorf("terminal %v, width %d", IsTerminal(file), TerminalWidth(file))
	}
	if StatusWidth(file, env("TERM", "dumb")) != nil {
		t.Error("a status line on a dumb terminal")
	}
	if w := StatusWidth(file, env()); w == nil || w() != 97 {
		t.Error("no status line on a terminal")
	}
}

// TestOpenTTY checks that OpenTTY finds the controlling terminal although standard input is another file.
func TestOpenTTY(t *testing.T) {
	if os.Getenv("TERM_TEST_CHILD") != "" {
		askOnTTY(t)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestOpenTTY$")
	cmd.Env = append(os.Environ(), "TERM_TEST_CHILD=1")
	cmd.Stdin = null
	cmd.SysProcAttr = &syscall.SysProcAttr{Ctty: 1}
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	out := bufio.NewScanner(screen)
	var last string
	for out.Scan() && !strings.HasPrefix(last, "got") {
		if last = out.Text(); last == "ready" {
			typed(t, screen, "３")
		}
	}
	if last != "got 3" {
		t.Errorf("the child said %q", last)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func askOnTTY(t *testing.T) {
	tty, err := OpenTTY()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	err = tty.Session(func(k *Keys) error {
		fmt.Println("ready")
		key, err := k.Next(t.Context())
		n, _ := key.Digit()
		fmt.Println("got", n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
