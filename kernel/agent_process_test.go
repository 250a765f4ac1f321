package kernel

import (
	"context"
	"os"
	"testing"

	"github.com/perlica/perlica/provider/predictable"
)

// scenarioVar makes the test binary the predictable agent with a scenario.
const scenarioVar = "KERNEL_TEST_SCENARIO"

// stateVar names the folder in which the test agent keeps its sessions.
const stateVar = "KERNEL_TEST_STATE"

// TestAgentProcess is the agent of this package's tests.
func TestAgentProcess(t *testing.T) {
	scenario, ok := os.LookupEnv(scenarioVar)
	if !ok {
		t.Skip("started by other tests")
	}
	if err := predictable.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr,
		predictable.Options{Scenario: scenario, State: os.Getenv(stateVar)}); err != nil {
		os.Exit(1)
	}
	os.Exit(0) // before the testing package prints anything
}
