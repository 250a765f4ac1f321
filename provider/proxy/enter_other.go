//go:build !linux

package proxy

import (
	"errors"
	"os/exec"
)

// Open returns an error: only Linux has the sandbox.
func Open(*exec.Cmd, []Host, func(Connection)) (*Proxy, error) { return nil, errors.ErrUnsupported }

// Locals returns nothing: only Linux has the sandbox.
func Locals([]Host) []string { return nil }

// Enter returns an error: only Linux has the sandbox.
func Enter(_, _, _ []string) error { return errors.ErrUnsupported }
