package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// Limits of Secret.
const (
	secretTimeout = 30 * time.Second
	maxSecret     = 16 << 10 // bytes
)

// Secret runs a program without a shell and returns the only line of its output. The program gets no input
// and may run for secretTimeout. No error contains the output, which may be the secret.
func Secret(ctx context.Context, argv []string) (string, error) {
	name := filepath.Base(argv[0])
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	var out limited
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	err := cmd.Run()
	var left *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s: no such command on PATH", name)
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not end within %v", name, secretTimeout)
	case errors.As(err, &left):
		return "", fmt.Errorf("%s ended with %v", name, left.ProcessState)
	case err != nil:
		return "", fmt.Errorf("%s cannot be run: %w", name, errors.Unwrap(err))
	}
	secret := strings.TrimSpace(out.String())
	switch {
	case secret == "":
		return "", fmt.Errorf("%s printed nothing", name)
	case out.Len() > maxSecret, strings.ContainsFunc(secret, func(r rune) bool {
		return unicode.IsSpace(r) ||
			unicode.IsControl(r)
	}):
		return "", fmt.Errorf("%s printed something other than one key", name)
	}
	return secret, nil
}

// limited keeps just enough of an output to show that it is too long.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	_, _ = l.Buffer.Write(p[:min(len(p), max(maxSecret+1-l.Len(), 0))]) // never fails
	return len(p), nil
}
