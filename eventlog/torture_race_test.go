//go:build race

package eventlog

import "testing"

// ordinaryStates is the number of crash states in an ordinary run of the tests. It is small in this build. The race
// detector makes the tests ten times slower and finds nothing new in further states.
const ordinaryStates = 50

// leaveToOtherBuild skips a test that uses one goroutine. The race detector finds nothing in it.
func leaveToOtherBuild(t *testing.T) {
	t.Helper()
	t.Skip("it makes one call after the other; go test without -race runs it")
}
