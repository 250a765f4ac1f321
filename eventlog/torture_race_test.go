//go:build race

package eventlog

// The race detector makes all of it ten times slower and sees nothing more in a later state.
const ordinaryStates = 50
