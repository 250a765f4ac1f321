// Package imessage carries messages over Messages on macOS, through the imsg command.
//
// It promises that imsg runs at most once at a time and for a limited time, that no message is on
// its command line (texts go to the standard input of "imsg rpc"), and that a cursor never passes
// a message that was not returned. It refuses systems other than macOS, and, unless told
// otherwise, SMS, whose senders can be forged.
//
// The one idea: Messages numbers what it stores, in whatever chat, by one growing row id. That is
// the cursor. Its chats are listed until one changes; then what is new in all that are active is
// read twice, and of the second reading only what is as old as the first is returned: anything
// between is complete, and has come to rest.
//
// It was tried against a stand-in only, not on macOS.
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

// ErrSystem says that this is not macOS.
var ErrSystem = errors.New("imessage: Messages exists on macOS only")

// ErrNoCommand says that imsg is not installed.
var ErrNoCommand = errors.New("imessage: there is no command imsg")

const (
	defaultCommand = "imsg"
	defaultEvery   = 2 * time.Second
	defaultTimeout = 30 * time.Second
	defaultSettle  = 500 * time.Millisecond
	maxText        = 10_000 // Messages names no limit; no one reads more in a bubble
	maxMine        = 256
)

// Options are what Messages needs.
type Options struct {
	Command string        // the program; empty: imsg, looked up in PATH
	SMS     bool          // take messages that are no iMessages, too
	Every   time.Duration // how often it looks for new messages; 0: 2 s
	Timeout time.Duration // of one run of imsg; 0: 30 s
	Settle  time.Duration // how long a message is left to come to rest; 0: 500 ms
	System  string        // as runtime.GOOS, for tests; empty: the one that this is
}

// Channel is the account that Messages is signed in with. Its methods may be called from several
// goroutines, Poll from one at a time.
type Channel struct {
	opt  Options
	env  []string      // of imsg
	turn chan struct{} // holds one element while imsg runs

	// Of Poll alone.
	seen map[int64]time.Time // when the last message of each chat was, as last listed

	mu   sync.Mutex
	mine []string              // ids of what was sent, the last ones
	rows channel.Recent[int64] // of the last messages that were seen or sent
}

var _ channel.Channel = (*Channel)(nil)

// New returns the channel. It looks for imsg and runs nothing yet.
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
	return &Channel{opt: opt, env: env, turn: make(chan struct{}, 1), seen: map[int64]time.Time{}}, nil
}

// Name is "imessage".
func (c *Channel) Name() string { return "imessage" }

// Probe runs imsg once.
func (c *Channel) Probe(ctx context.Context) (string, error) {
	out, err := c.run(ctx, nil, "chats", "--limit", "1", "--json")
	if err == nil {
		_, err = lines[chat](out)
	}
	if err != nil {
		return "", fmt.Errorf("imessage: %w", err)
	}
	return "Messages", nil
}

// Limits are those of Messages: no buttons, no formatting.
func (c *Channel) Limits() channel.Limits {
	return channel.Limits{Text: maxText, Files: true, Format: channel.Plain}
}

const (
	maxOutput = 64 << 20
	maxWords  = 200             // of what imsg says when it fails
	grace     = 2 * time.Second // for its output, when it was ended
)

// environment is what imsg needs of ours; the secrets of other channels are none of its business.
func environment() (env []string) {
	for _, name := range []string{"HOME", "PATH", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "SHELL", "__CF_USER_TEXT_ENCODING"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// run runs imsg, when it is this call's turn, and returns what it prints. An error wraps
// channel.ErrNotSent if it was not started.
func (c *Channel) run(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
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

// capped is a buffer with an end.
type capped struct {
	bytes.Buffer
	max  int
	drop bool // what is too much is dropped, else it is an error
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

// lines decodes what imsg prints with --json: an object a line.
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
