//go:build !linux

package sandbox

func canScope(string) bool { return false }

// Restrict does nothing, because only Linux has Landlock.
func (b *Sandbox) Restrict() error { return nil }
