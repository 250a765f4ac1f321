package chat

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/project"
)

func (c *chat) newEditor(keys *screen.Keys) (*screen.Editor, error) {
	history := screen.LineHistory{Path: filepath.Join(c.p.Dirs.State, "history", workspaceKey(c.p))}
	past, err := history.Load()
	if err != nil {
		c.printNote("warning: the history of this project cannot be read: " + err.Error())
	}
	warned := false
	o := screen.EditorOptions{
		Out: c.a.Stderr, Dumb: c.dumb, Styles: c.styles, Past: past,
		Size: func() (int, int) { return screen.TerminalWidth(c.a.Stderr), screen.TerminalHeight(c.a.Stderr) },
		Keep: func(entry string) {
			if err := history.Add(entry); err != nil && !warned {
				warned = true
				c.printNote("warning: the history of this project cannot be written: " + err.Error())
			}
		},
		Complete: c.completeWord,
		Pasted:   c.pastedText,
		Edit:     c.editElsewhere,
		Cycle:    c.cycleMode,
	}
	if canSuspend {
		o.Suspend = c.suspendProcess
	}
	return screen.NewEditor(keys, o)
}

// workspaceKey returns a short hash of the workspace's path. The file with the typed lines of this workspace has this
// name in the user's own folder.
func workspaceKey(p *project.Project) string {
	sum := sha256.Sum256([]byte(p.Workspace.Root))
	return hex.EncodeToString(sum[:8])
}

// setBracketedPaste tells the terminal whether to mark the beginning and the end of pasted text.
func (c *chat) setBracketedPaste(on bool) {
	switch {
	case c.dumb:
	case on:
		_, _ = io.WriteString(c.a.Stderr, "\x1b[?2004h")
	default:
		_, _ = io.WriteString(c.a.Stderr, "\x1b[?2004l")
	}
}

// editElsewhere lets the user's own editor change a text.
func (c *chat) editElsewhere(text string) (edited string, err error) {
	program := cmp.Or(c.a.Getenv("VISUAL"), c.a.Getenv("EDITOR"))
	if program == "" {
		return text, errors.New("VISUAL and EDITOR are not set")
	}
	f, err := os.CreateTemp("", "perlica-*.md")
	if err != nil {
		return text, err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return text, err
	}
	c.setBracketedPaste(false)
	defer c.setBracketedPaste(true)
	err = c.tty.Aside(func() error {
		// VISUAL or EDITOR contains a shell command, which may have arguments, as for git.
		cmd := exec.Command("sh", "-c", program+` "$@"`, program, f.Name())
		if runtime.GOOS == "windows" {
			words := append(strings.Fields(program), f.Name())
			cmd = exec.Command(words[0], words[1:]...)
		}
		cmd.Env = c.a.ProgramEnv()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = c.a.Stdin, c.a.Stderr, c.a.Stderr
		return cmd.Run()
	})
	if err != nil {
		return text, err
	}
	b, err := os.ReadFile(f.Name())
	if err == nil && len(b) > frame.MaxInput {
		err = errors.New("the text is too long")
	}
	if err != nil {
		return text, err
	}
	return strings.ToValidUTF8(string(b), "\ufffd"), nil
}

// chatKeys shares the terminal during a turn. Typed text belongs to the next line, until a question needs the keys.
type chatKeys struct {
	keys *screen.Keys
	edit *screen.Editor

	mu     sync.Mutex // guards the fields below
	on     screen.AheadEvents
	gone   func() // called when the terminal is gone
	cancel context.CancelFunc
	done   chan struct{}
}

func (k *chatKeys) beginTurn(on screen.AheadEvents, gone func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on, k.gone = on, gone
	k.readAhead()
}

func (k *chatKeys) readAhead() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	k.cancel, k.done = cancel, done
	on, gone := k.on, k.gone
	go func() {
		defer close(done)
		_ = k.edit.Ahead(ctx, on) // Ahead fails only if ctx has ended or the terminal is gone.
		if ctx.Err() == nil {
			gone()
		}
	}()
}

func (k *chatKeys) endTurn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pauseReading()
}

func (k *chatKeys) pauseReading() {
	if k.cancel != nil {
		k.cancel()
		<-k.done
		k.cancel = nil
	}
}

// CalmAfter is the shortest pause in typing before a question may read the keys. Without this pause, a letter of the
// next line or of a paste could answer the question.
const CalmAfter = time.Second

// waitForCalm waits until nothing has been typed for CalmAfter.
func (k *chatKeys) waitForCalm(ctx context.Context) {
	for ctx.Err() == nil {
		rest := CalmAfter - k.edit.Quiet()
		if rest <= 0 {
			return
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
}

// Session lets a question read the keys. Text that was typed before stays in the next line. Unread keys are dropped.
func (k *chatKeys) Session(f func(*screen.Keys) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel == nil {
		return screen.ErrClosed
	}
	k.pauseReading()
	defer k.readAhead()
	if err := k.keys.Discard(); err != nil {
		return err
	}
	return f(k.keys)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// absolutePath returns a path relative to the agent's directory as an absolute path.
func (c *chat) absolutePath(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(c.p.Dirs.Home, rest)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.dir(), path)
}

// relativePath returns a path in the form that a person would write.
func (c *chat) relativePath(path string) string {
	if rel, err := filepath.Rel(c.dir(), path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

func (c *chat) dir() string {
	if c.f.Cwd == "" {
		return c.p.Dir
	}
	if filepath.IsAbs(c.f.Cwd) {
		return c.f.Cwd
	}
	return filepath.Join(c.p.Dir, c.f.Cwd)
}
