//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package screen

import (
	"context"
	"errors"
	"time"
)

const ttyPath = "/dev/tty"

// device takes the place of the terminal on a system where Perlica cannot open one. Nobody can answer a question
// there, and a question without an answer means no.
type device struct{}

func openDevice(string) (*device, error)      { return nil, errors.ErrUnsupported }
func (*device) closeAll()                     {}
func (*device) setRaw() (func() error, error) { return nil, errors.ErrUnsupported }
func (*device) readBytes(context.Context, time.Duration) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
func (*device) discardTyped() error { return errors.ErrUnsupported }
func (*device) echoText(string)     {}
