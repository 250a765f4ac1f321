// Package cli is what all commands share: the streams and the environment of one invocation, the project it
// works in, who may use a command, and how commands are put together. It knows no command.
package cli

import (
	"os"
	"runtime"
)

// App is one invocation: the standard streams and the environment, and what all commands
// share.
type App struct {
	Stdin          *os.File
	Stdout, Stderr *os.File
	Environ        []string
	Getenv         func(string) string
	Version        string
	System         string // as runtime.GOOS has it

	ContextFlag string // --context
	UserFlag    bool   // --user: the user's own log in place of a project's
}

// New returns the invocation that this process is.
func New(version string) *App {
	return &App{Version: version, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Getenv: os.Getenv, System: runtime.GOOS}
}
