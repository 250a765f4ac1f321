// Command perlica stands between a person and a coding agent: one input makes at most one call,
// and everything is on the record.
//
// This package is the door: commands, flags, printing and signals. What happens is
// decided in package kernel.
package main

import "os"

// version is set by the release build.
var version = "devel"

func main() { os.Exit(newApp(version).main(os.Args[1:])) }
