package main

import (
	"os"
	"syscall"
)

// dataSync syncs the file's data and the metadata that reading it needs.
func dataSync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
