//go:build !unix

package sandbox

import "io/fs"

func isOpen(fs.FileInfo) bool { return true }

func isSystems(string) bool { return false }
