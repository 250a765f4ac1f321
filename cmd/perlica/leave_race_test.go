//go:build race && unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
)

// init starts a process of a race build again with GORACE, because such a process otherwise waits for a second at
// its end. An agent does not inherit GORACE, and this second is half of its grace time. Only the main thread runs
// init functions. The restart must happen there: a process that another thread starts loses its parent-death signal,
// see prctl(2).
func init() {
	if _, ok := os.LookupEnv("GORACE"); ok || filepath.Base(os.Args[0]) != "perlica" {
		return
	}
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, os.Args, append(os.Environ(), "GORACE=atexit_sleep_ms=0"))
	}
	panic(err)
}
