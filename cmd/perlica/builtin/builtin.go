// Package builtin is the process of the built-in agent. It promises that this process starts
// with nothing of the front end: its init serves and exits before the packages of the front end
// are initialised. It refuses every other command line, also that of the agent with flags or a
// scenario: those go through the front end as any command does.
//
// The one idea a reader needs: Go initialises packages in the order of their import paths, each
// as soon as what it imports is initialised. So this package and [predictable] may import the
// standard library's small packages, and of those none that comes late and has something to
// initialise, such as path/filepath, or their turn comes too late.
package builtin

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/perlica/perlica/provider/predictable"
)

func init() {
	// The front end says what is wrong with a scenario.
	if len(os.Args) == 0 || !slices.Equal(os.Args[1:], []string{"agent", "predictable"}) || os.Getenv(predictable.EnvScenario) != "" {
		return
	}
	if err := Serve(context.Background(), predictable.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, "perlica:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve is the agent on the standard streams.
func Serve(ctx context.Context, opt predictable.Options) error {
	opt.IgnoreTerm = func() { signal.Ignore(syscall.SIGTERM) }
	return predictable.Serve(ctx, os.Stdin, os.Stdout, os.Stderr, opt)
}
