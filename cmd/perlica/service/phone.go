package service

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/local"
)

func (a *app) phoneCommand() *cobra.Command {
	var name string
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "phone", Annotations: frame.PersonOnly.Annotation(),
		Short: "Play a phone in this terminal, to try 'perlica service'",
		Long: `Play a phone in this terminal. Each line that you type is a message to the messaging bridge of
this project ('perlica service'), and the terminal prints each message of the bridge. You need
no account and no network.

A backslash at the end of a line continues it in the next line. "@N text" answers the Nth
printed message. Ctrl-D ends the command.

The bridge recognises a phone by a token and not by its name. Perlica keeps one token for each
project and NAME in your own state folder.`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				name = frame.UserName(a.Getenv)
			}
			if strings.TrimSpace(name) == "" || strings.ContainsFunc(name,
				func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }) {
				return frame.UsageErrorf("--as %q: a name in one line and without slashes is needed", name)
			}
			return a.runPhone(cmd.Context(), name, wait)
		},
	}
	cmd.Flags().StringVar(&name, "as", "", "the `name` of the phone's owner (default: you)")
	cmd.Flags().DurationVar(&wait, "wait", 2*time.Second,
		"after the end of the input, leave when no message has come for this time")
	return cmd
}

// handset prints the messages that arrive at the phone.
type handset struct {
	a *app

	mu   sync.Mutex // guards the fields below
	keys []string
	last time.Time
}

func (h *handset) showMessage(m local.Arrived) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = time.Now()
	h.keys = append(h.keys, m.Key)
	styles := h.a.Styles(h.a.Stdout)
	head := fmt.Sprintf("@%d", len(h.keys))
	if m.Edits != "" {
		for i, key := range h.keys {
			if key == m.Edits {
				head += fmt.Sprintf(" (now instead of @%d)", i+1)
			}
		}
	}
	text := screen.Sanitize(m.Text)
	if m.File != "" {
		text += fmt.Sprintf("\n[file %s, %d bytes]", screen.Sanitize(m.File), len(m.Content))
	}
	fmt.Fprintf(h.a.Stdout, "%s %s\n", styles.Dim(head), strings.ReplaceAll(text, "\n", "\n   "))
}

// parseLine turns a typed line into a message.
func (h *handset) parseLine(line string) local.Message {
	m := local.Message{Text: line}
	var n int
	if at, text, ok := strings.Cut(line, " "); ok && strings.HasPrefix(at, "@") {
		if _, err := fmt.Sscanf(at, "@%d", &n); err == nil && fmt.Sprintf("@%d", n) == at {
			h.mu.Lock()
			if n >= 1 && n <= len(h.keys) {
				m.Text, m.ReplyTo = text, h.keys[n-1]
			}
			h.mu.Unlock()
		}
	}
	return m
}

func (a *app) runPhone(ctx context.Context, name string, wait time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	file := phoneFile(p, name)
	token, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	h := &handset{a: a, last: time.Now()}
	online, off := context.WithCancel(ctx)
	connected := make(chan struct{})
	var once sync.Once
	phone := &local.Phone{
		Path: local.Path(p.Dirs.Runtime, p.Workspace.Root), Name: name, Token: strings.TrimSpace(
			string(token)), Show: h.showMessage,
		Keep: func(token string) {
			if err := keepToken(file, token); err != nil {
				a.Note("the token of this phone could not be kept; once it has left, it is a stranger: " + err.Error())
			}
		},
		Refused: func(r local.Refusal) { a.Note(r.Error) },
		Online: func(on bool) {
			if on {
				once.Do(func() { close(connected); a.Note("connected as " + name + "; Ctrl-D leaves") })
			} else if online.Err() == nil {
				a.Note("the bridge is gone; what you write is kept until it is back")
			}
		},
	}
	var running sync.WaitGroup
	running.Go(func() { phone.Run(online) })
	defer running.Wait()
	defer off()
	if err := a.findBridge(ctx, p, connected); err != nil {
		return err
	}
	lines := make(chan string)
	go func() { // The goroutine ends with standard input, or with the process.
		defer close(lines)
		in := bufio.NewScanner(a.Stdin)
		in.Buffer(nil, frame.MaxInput)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	text := ""
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				if err := a.waitDelivered(ctx, p, phone); err != nil {
					return err
				}
				h.waitForQuiet(ctx, wait)
				return nil
			}
			if rest, more := strings.CutSuffix(line, "\\"); more {
				text += rest + "\n"
				continue
			}
			if text += line; strings.TrimSpace(text) != "" {
				phone.Say(h.parseLine(text))
			}
			text = ""
		case <-ctx.Done():
			return nil
		}
	}
}

// phoneFile returns the path of the file with a phone's token.
func phoneFile(p *project.Project, name string) string {
	sum := sha256.Sum256([]byte(p.Workspace.Root + "\x00" + name))
	return filepath.Join(p.Dirs.State, "phones", hex.EncodeToString(sum[:]))
}

// keepToken writes a token to a file that only the user can read. If the file exists, another process has written a
// token first, and this token stays.
func keepToken(path, token string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*") // CreateTemp makes the file with mode 0600.
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // The file was renamed, or it is useless.
	_, err = f.WriteString(token + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

// These are the times to wait for a bridge that is starting: until it exists, until it listens, and between two
// looks.
const (
	startTime  = 2 * time.Second
	listenTime = 10 * time.Second
	lookForIt  = 250 * time.Millisecond
)

// findBridge waits until the phone is connected to the bridge. It fails if no bridge runs, or if the bridge does not
// listen.
func (a *app) findBridge(ctx context.Context, p *project.Project, connected <-chan struct{}) error {
	for begun := time.Now(); ; {
		select {
		case <-connected:
			return nil
		case <-ctx.Done():
			return nil
		case <-time.After(lookForIt):
		}
		held, err := service.Holder(p.Workspace.Service().Lock)
		switch {
		case err != nil:
			return err
		case held == nil && time.Since(begun) > startTime:
			return frame.WithHint(errors.New("no bridge runs for this project"),
				"start it in another terminal: 'perlica service'")
		case held != nil && time.Since(begun) > listenTime:
			return frame.WithHint(errors.New("the bridge of this project does not serve the channel local"),
				"'perlica service channel enable local', and restart the bridge")
		}
	}
}

// waitDelivered waits until the bridge has received all messages that were typed. It fails if the bridge ends.
func (a *app) waitDelivered(ctx context.Context, p *project.Project, phone *local.Phone) error {
	for {
		moment, cancel := context.WithTimeout(ctx, lookForIt)
		err := phone.Flush(moment)
		cancel()
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if held, err := service.Holder(p.Workspace.Service().Lock); err != nil || held == nil {
			return errors.Join(err, frame.WithHint(errors.New("the bridge is gone, and does not have all that was typed"),
				"start it in another terminal, 'perlica service', and type it again"))
		}
	}
}

// waitForQuiet waits until no message has arrived for the time in the parameter "wait".
func (h *handset) waitForQuiet(ctx context.Context, wait time.Duration) {
	h.mu.Lock()
	h.last = time.Now() // No answer can arrive before this call.
	h.mu.Unlock()
	for {
		h.mu.Lock()
		left := wait - time.Since(h.last)
		h.mu.Unlock()
		if left <= 0 {
			return
		}
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return
		}
	}
}
