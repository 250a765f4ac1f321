//go:build !unix

package store

// WriteLockHolder is not known here.
func WriteLockHolder(string) (pid int, err error) { return 0, nil }
