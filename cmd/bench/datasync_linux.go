package main

import (
	"os"
	"syscall"
)

// dataSync has the file's data on the disk, and of its metadata what is needed to read it.
func dataSync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
