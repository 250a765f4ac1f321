//go:build !linux

package sandbox

func canScope(string) bool { return false }

// Restrict does nothing: only Linux has Landlock.
func (b *Sandbox) Restrict() error { return nil }
