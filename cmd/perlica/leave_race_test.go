//go:build race && unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
)

// init has a process of a race build leave without the second that it waits for others to be told of
// a race. An agent gets none of the variables that would say so, and that second is half of the time
// that it has to leave: so it begins anew, with the variable. It does so on the main thread, which runs
// every init: a process that another thread executes loses its parent-death signal, prctl(2).
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
