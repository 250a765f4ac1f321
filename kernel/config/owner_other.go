//go:build !unix

package config

import "io/fs"

// foreign is not known here.
func foreign(fs.FileInfo, string) bool { return false }
