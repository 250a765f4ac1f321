//go:build race && unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
)

// init starts a process of a race build again with GORACE, because a race build otherwise waits for a second at its
// end. An agent gets no such variable, and this second is half of its grace time. The restart happens on the main
// thread, which runs every init, because a process started by another thread loses its parent-death signal: see
// prctl(2).
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
