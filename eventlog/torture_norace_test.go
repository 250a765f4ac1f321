//go:build !race

package eventlog

const ordinaryStates = 500
