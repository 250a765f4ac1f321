package main

import (
	"os"
	"runtime"
)

// app is one invocation: the standard streams and the environment, and what all commands
// share.
type app struct {
	stdin          *os.File
	stdout, stderr *os.File
	environ        []string
	getenv         func(string) string
	version        string
	system         string // as runtime.GOOS has it

	contextFlag string // --context
	serviceFlag bool   // --service
}

func newApp(version string) *app {
	return &app{version: version, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), getenv: os.Getenv, system: runtime.GOOS}
}
