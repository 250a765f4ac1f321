package kernel

import (
	"context"
	"os"
	"testing"

	"github.com/perlica/perlica/provider/predictable"
)

// scenarioVar is a variable of the environment. It makes the test binary the predictable agent, and its value is the
// agent's scenario.
const scenarioVar = "KERNEL_TEST_SCENARIO"

// stateVar is the name of the variable with the folder in which the test agent stores its sessions.
const stateVar = "KERNEL_TEST_STATE"

// TestAgentProcess is not a test. It is the agent process that this package's tests start.
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
