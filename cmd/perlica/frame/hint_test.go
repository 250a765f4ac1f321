package frame_test

import (
	"fmt"
	"go/build"
	"strings"
	"testing"

	"github.com/perlica/perlica/cmd/perlica/frame"
)

// misuse is an error that has a method Hint. usage says whether the command line is wrong.
type misuse struct{ usage bool }

func (misuse) Error() string { return "wrong" }
func (misuse) Hint() string  { return "do it otherwise" }
func (m misuse) Usage() bool { return m.usage }

// TestErrorsKnowTheirHint checks that frame uses the hint that an error has itself, and the exit code for usage
// errors.
func TestErrorsKnowTheirHint(t *testing.T) {
	for usage, want := range map[bool]frame.ExitCode{true: frame.ExitUsage, false: frame.ExitFailure} {
		err := fmt.Errorf("hub: %w", misuse{usage})
		if got := frame.HintOf(err); got != "do it otherwise" {
			t.Errorf("hint: got %q", got)
		}
		if code, _ := frame.ExitCodeOf(err); frame.ExitCode(code) != want {
			t.Errorf("usage %v: got code %d, want %d", usage, code, want)
		}
		if got := frame.RefusalExitCode(err); got != want {
			t.Errorf("refusal, usage %v: got code %d, want %d", usage, got, want)
		}
	}
}

// TestNoFrontEnd checks that package frame imports no front end.
func TestNoFrontEnd(t *testing.T) {
	p, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range p.Imports {
		if strings.HasPrefix(path, "github.com/perlica/perlica/service") {
			t.Errorf("it imports %s", path)
		}
	}
}
