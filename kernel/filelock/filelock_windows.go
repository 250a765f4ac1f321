package filelock

import "os"

// removed reports whether the file lies in no folder any more: none that is open can be removed.
func removed(os.FileInfo) bool { return false }
