// Command perlica stands between a person and a coding agent: one input makes at most one call,
// and everything is on the record.
//
// This package is the door: commands, flags, printing and signals. What happens is
// decided in package kernel.
package main

import (
	"os"
	"runtime/debug"
)

// version is set by the release build.
var version = "devel"

// softLimit is the memory from which on garbage is collected before the heap doubles, in bytes:
// a hundred open questions of 1 MB each stay below 300 MB. GOMEMLIMIT overrides it.
const softLimit = 200 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	os.Exit(newApp(version).main(os.Args[1:]))
}
