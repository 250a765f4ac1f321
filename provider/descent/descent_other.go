//go:build unix && !linux && !darwin

package descent

import (
	"syscall"
	"time"
)

// Announce does nothing here: no one could read it.
func Announce(string) error { return nil }

// ancestry is hidden here.
func ancestry(int) ([]link, error) { return nil, ErrHidden }

// namespaced is true here, as far as it matters: no ancestors are shown.
func namespaced() (partial, hidden bool) { return true, true }

// ownBrand finds nothing here: no process can read the brand of another one.
func ownBrand() (mode string, ok bool) { return "", false }

// Born is not known here.
func Born(string) (time.Time, bool) { return time.Time{}, false }

// Terminal names the controlling terminal of this process; empty: it has none.
func Terminal() string { return openTerminal() }

// unixPeer is not known here.
func unixPeer(syscall.Conn) (int, error) { return 0, nil }
