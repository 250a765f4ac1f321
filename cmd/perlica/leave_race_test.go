//go:build race && unix

package main

import (
	"os"
	"syscall"
)

// leaveAtOnce has a process of a race build leave without the second that it waits for others to
// be told of a race. An agent gets none of the variables that would say so, and that second is
// half of the time that it has to leave: so it begins anew, with the variable.
func leaveAtOnce() {
	if _, ok := os.LookupEnv("GORACE"); ok {
		return
	}
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, os.Args, append(os.Environ(), "GORACE=atexit_sleep_ms=0"))
	}
	panic(err)
}
