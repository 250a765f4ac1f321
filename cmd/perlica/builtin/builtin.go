// Package builtin is the process of the built-in agent. Its init function serves the agent and exits before Go
// initialises the packages of the front end. It does nothing for every other command line. With flags or a scenario,
// the front end serves the agent as an ordinary command.
//
// Go initialises packages in the order of their import paths, and each package after its imports. Package builtin
// and [predictable] therefore import only small packages of the standard library. They import no package that is
// initialised late, such as path/filepath.
package builtin

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/perlica/perlica/provider/predictable"
)

func init() {
	// The front end serves an agent with a scenario, because only the front end can report errors in the scenario.
	if len(os.Args) == 0 || !slices.Equal(os.Args[1:], []string{"agent", "predictable"}) ||
		os.Getenv(predictable.EnvScenario) != "" {
		return
	}
	if err := Serve(context.Background(), predictable.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, "perlica:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve runs the agent on the standard streams.
func Serve(ctx context.Context, opt predictable.Options) error {
	opt.IgnoreTerm = func() { signal.Ignore(syscall.SIGTERM) }
	// A script such as @ignore stdin blocks every goroutine. Without cgo, the Go runtime ends such a process with "all
	// goroutines are asleep", unless a timer is pending.
	defer time.AfterFunc(math.MaxInt64, func() {}).Stop()
	return predictable.Serve(ctx, os.Stdin, os.Stdout, os.Stderr, opt)
}
