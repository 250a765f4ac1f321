//go:build !linux

package store

// folders is nothing where the system is not asked to tell of changes.
type folders struct{ changed chan struct{} }

func watchFolders(...string) *folders { return nil }

func (f *folders) close() {}
