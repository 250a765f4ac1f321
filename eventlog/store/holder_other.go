//go:build !unix

package store

// WriteLockHolder returns 0, because the holder is not known on this system.
func WriteLockHolder(string) (pid int, err error) { return 0, nil }
