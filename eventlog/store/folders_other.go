//go:build !linux

package store

// folders is never used on this system, because this system is not asked to report changes.
type folders struct{ changed chan struct{} }

func watchFolders(...string) *folders { return nil }

func (f *folders) closeWatch() {}
