package provider_test

import (
	"fmt"
	"os"
	"testing"
)

// testChild is an environment variable that turns the test binary into one of testChildren.
const testChild = "PERLICA_TEST_CHILD"

// testChildren are the programs that the tests start. Each is this binary again. The init function of a file
// adds its own programs.
var testChildren = map[string]func(args []string){}

func TestMain(m *testing.M) {
	name := os.Getenv(testChild)
	if name == "" {
		os.Exit(m.Run())
	}
	child, ok := testChildren[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no test child %q\n", name)
		os.Exit(2)
	}
	child(os.Args[1:])
	os.Exit(0)
}
