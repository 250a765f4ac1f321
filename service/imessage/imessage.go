// Package imessage is a channel over Messages on macOS, through the imsg command.
//
// It runs imsg at most once at a time and for a limited time. No message is on its command line:
// texts go to the standard input of "imsg rpc". A cursor never passes a message that was not
// returned. The package refuses systems other than macOS. By default it also refuses SMS, because
// their senders can be forged.
//
// Messages numbers all stored messages of all chats by one growing row id, which is the cursor. The channel lists the
// chats until one changes. It then reads the new messages of all active chats twice. From the second reading it returns
// only rows up to the newest row of the first reading. This range of rows is complete and no longer changes.
//
// The package was tested only with a stand-in, not on macOS.
package imessage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// ErrSystem says that this system is not macOS.
var ErrSystem = errors.New("imessage: Messages exists on macOS only")

// ErrNoCommand says that imsg is not installed.
var ErrNoCommand = errors.New("imessage: there is no command imsg")

const (
	defaultCommand = "imsg"
	defaultEvery   = 2 * time.Second
	defaultTimeout = 30 * time.Second
	defaultSettle  = 500 * time.Millisecond
	maxText        = 10_000 // Messages has no documented limit, and a longer bubble is unreadable
	maxMine        = 256
)

// Options configures the channel.
type Options struct {
	Command string        // the program; empty means imsg from PATH
	SMS     bool          // also accept messages that are not iMessages
	Every   time.Duration // interval of the looks for new messages; 0 means 2 s
	Timeout time.Duration // time limit of one run of imsg; 0 means 30 s
	Settle  time.Duration // wait until a new message no longer changes; 0 means 500 ms
	System  string        // replaces runtime.GOOS in tests; empty means this system
}

// Channel is the account with which a person is signed in to Messages. Its methods may be called from several
// goroutines, except Poll, which one goroutine calls at a time.
type Channel struct {
	opt Options
	env []string      // the environment of imsg
	sem chan struct{} // capacity 1: held while imsg runs

	// Only Poll uses seen.
	seen map[int64]time.Time // time of the last message of each chat, as last listed

	mu   sync.Mutex
	mine []string              // ids of the last sent messages
	rows channel.Recent[int64] // the rows of the last seen or sent messages
}

var _ channel.Channel = (*Channel)(nil)

// New returns the channel. It looks for imsg but does not run it yet.
func New(opt Options) (*Channel, error) {
	if system := cmp.Or(opt.System, runtime.GOOS); system != "darwin" {
		return nil, fmt.Errorf("%w; this is %s", ErrSystem, system)
	}
	return prepare(opt, environment())
}

func prepare(opt Options, env []string) (*Channel, error) {
	path, err := exec.LookPath(cmp.Or(opt.Command, defaultCommand))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCommand, err)
	}
	opt.Command = path
	opt.Every = cmp.Or(max(opt.Every, 0), defaultEvery)
	opt.Timeout = cmp.Or(max(opt.Timeout, 0), defaultTimeout)
	opt.Settle = cmp.Or(max(opt.Settle, 0), defaultSettle)
	return &Channel{opt: opt, env: env, sem: make(chan struct{}, 1), seen: map[int64]time.Time{}}, nil
}

// Name returns "imessage".
func (c *Channel) Name() string { return "imessage" }

// Probe runs imsg once.
func (c *Channel) Probe(ctx context.Context) (string, error) {
	out, err := c.runCommand(ctx, nil, "chats", "--limit", "1", "--json")
	if err == nil {
		_, err = lines[chat](out)
	}
	if err != nil {
		return "", fmt.Errorf("imessage: %w", err)
	}
	return "Messages", nil
}

// Limits returns the limits of Messages, which has no buttons and no formatting.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: maxText, Files: true, Format: channel.Plain}
}

const (
	maxOutput = 64 << 20
	maxWords  = 200             // longest error message of imsg
	grace     = 2 * time.Second // time for reading the output after imsg was ended
)

// environment returns the environment of imsg. It does not contain the secrets of other channels.
func environment() (env []string) {
	for _, name := range []string{"HOME", "PATH", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "SHELL",
		"__CF_USER_TEXT_ENCODING"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// runCommand waits for its turn, runs imsg and returns its output. An error wraps
// channel.ErrNotSent if imsg was not started.
func (c *Channel) runCommand(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	select {
	case c.sem <- struct{}{}:
		defer func() { <-c.sem }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", channel.ErrNotSent, ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	out, words := &capped{max: maxOutput}, &capped{max: 16 << 10, drop: true}
	cmd := exec.CommandContext(ctx, c.opt.Command, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.env, bytes.NewReader(input), out, words, grace
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: imsg does not start: %w", channel.ErrNotSent, err)
	}
	err := cmd.Wait()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return out.Bytes(), fmt.Errorf("imsg %s was ended: %w", args[0], ctx.Err())
	}
	said, _, _ := strings.Cut(strings.TrimSpace(words.String()), "\n")
	return out.Bytes(), fmt.Errorf("imsg %s: %w: %.*q", args[0], err, maxWords, said)
}

// capped is a buffer with a limit.
type capped struct {
	bytes.Buffer
	max  int
	drop bool // drop further bytes; otherwise they are an error
}

var errTooMuch = errors.New("imsg prints too much")

func (b *capped) Write(p []byte) (int, error) {
	if b.Len()+len(p) <= b.max {
		return b.Buffer.Write(p)
	}
	if b.drop {
		return len(p), nil
	}
	return 0, errTooMuch
}

// lines decodes the output of imsg with --json: one object in each line.
func lines[T any](out []byte) (list []T, err error) {
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var one T
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("imsg prints something else than JSON: %w", err)
		}
		list = append(list, one)
	}
}
