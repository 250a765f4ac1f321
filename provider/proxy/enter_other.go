//go:build !linux

package proxy

import (
	"errors"
	"os/exec"
)

// Open returns an error, because the sandbox exists only on Linux.
func Open(*exec.Cmd, []Host, func(Connection)) (*Proxy, error) { return nil, errors.ErrUnsupported }

// Locals returns nil, because the sandbox exists only on Linux.
func Locals([]Host) []string { return nil }

// Enter returns an error, because the sandbox exists only on Linux.
func Enter(_, _, _ []string) error { return errors.ErrUnsupported }
