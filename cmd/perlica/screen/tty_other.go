//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package screen

import (
	"context"
	"errors"
	"time"
)

const ttyPath = "/dev/tty"

// device is the terminal, which cannot be opened on this system. A question then has no answer, and this means no.
type device struct{}

func openDevice(string) (*device, error)      { return nil, errors.ErrUnsupported }
func (*device) closeAll()                     {}
func (*device) setRaw() (func() error, error) { return nil, errors.ErrUnsupported }
func (*device) readBytes(context.Context, time.Duration) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
func (*device) discardTyped() error { return errors.ErrUnsupported }
func (*device) echoText(string)     {}
