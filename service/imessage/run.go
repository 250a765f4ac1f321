package imessage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/perlica/perlica/service/channel"
)

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
