//go:build race

package eventlog

import "testing"

// The race detector makes all of it ten times slower and sees nothing more in a later state.
const ordinaryStates = 50

// leaveToOtherBuild skips a test that makes one call after the other, in which the race detector finds nothing.
func leaveToOtherBuild(t *testing.T) {
	t.Helper()
	t.Skip("it makes one call after the other; go test without -race runs it")
}
