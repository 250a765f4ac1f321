//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package screen

import (
	"context"
	"errors"
	"time"
)

const ttyPath = "/dev/tty"

// device cannot be opened here: questions go unanswered, which is no.
type device struct{}

func openDevice(string) (*device, error)   { return nil, errors.ErrUnsupported }
func (*device) close()                     {}
func (*device) raw() (func() error, error) { return nil, errors.ErrUnsupported }
func (*device) read(context.Context, time.Duration) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
func (*device) discard() error { return errors.ErrUnsupported }
func (*device) echo(string)    {}
