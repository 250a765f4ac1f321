//go:build !unix

package hook_test

import "testing"

// checkEnded checks nothing, because the job object of the program ends its children.
func checkEnded(*testing.T, string) {}
