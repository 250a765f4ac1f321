//go:build !linux && !darwin

package logtrust

import (
	"os"
	"time"
)

// identity returns an empty string, because on this system no single call distinguishes a file from its replacement.
func identity(path string) (string, error) {
	_, err := os.Stat(path)
	return "", err
}

// changed returns the zero time, because this system does not report a reliable time of the last change.
func changed(os.FileInfo) time.Time { return time.Time{} }
