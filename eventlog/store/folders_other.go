//go:build !linux

package store

// folders is empty on systems that are not asked for changes.
type folders struct{ changed chan struct{} }

func watchFolders(...string) *folders { return nil }

func (f *folders) closeWatch() {}
