//go:build unix && !linux && !darwin

package descent

import (
	"syscall"
	"time"
)

// Announce does nothing, because no process could read the announcement on this system.
func Announce(string) error { return nil }

// ancestry returns errHidden, because this system shows no ancestors.
func ancestry(int) ([]link, error) { return nil, errHidden }

// namespaced returns true, because this system shows no ancestors.
func namespaced() (partial, hidden bool) { return true, true }

// ownBrand finds nothing, because no process can read the brand of another one on this system.
func ownBrand() (mode string, ok bool) { return "", false }

// Born returns false, because the creation time is unknown on this system.
func Born(string) (time.Time, bool) { return time.Time{}, false }

// Terminal returns the name of this process's controlling terminal, or "".
func Terminal() string { return openTerminal() }

// unixPeer returns 0, because the process is unknown on this system.
func unixPeer(syscall.Conn) (int, error) { return 0, nil }
