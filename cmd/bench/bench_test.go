package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var runComparisons = flag.Bool("comparisons", false, "run two comparisons, as make torture does")

// TestComparisons checks that the quick comparisons still work with the program of this tree.
func TestComparisons(t *testing.T) {
	if !*runComparisons {
		t.Skip("it links three programs, which takes longer than most packages' tests")
	}
	program := filepath.Join(t.TempDir(), "bench")
	for _, argv := range [][]string{
		{"go", "build", "-o", program, "."},
		{program, "-rounds", "1", "process", "prompt"},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		if argv[0] == program {
			cmd.Dir = filepath.Join("..", "..")
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
		t.Logf("%s", out)
	}
}

// TestAddLines checks that addLines turns the lines of two runs into figures. The name of an indented line begins
// with the name of its head line, and each processor time belongs to the line above.
func TestAddLines(t *testing.T) {
	out, err := os.ReadFile("testdata/output.txt")
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string]*figure{}
	first := addLines(figures, out)
	addLines(figures, out)
	want := "perlica run hello, whole process; resident memory: 100,000 and 10,000 thoughts in one turn; " +
		"one durable line; one durable line: processor time; " +
		"one durable line: against an insert that was prepared before; " +
		"one durable line: against an insert that was prepared before: processor time"
	if got := strings.Join(first, "; "); got != want {
		t.Errorf("got the lines %s, want %s", got, want)
	}
	f := figures["one durable line: processor time"]
	if f == nil || len(f.ours) != 2 || f.ours[1] != 164.93 || f.ratios[0] != 1.10 || f.unit != "µs" {
		t.Errorf("got %+v, want twice 164.93 µs with the ratio 1.10", f)
	}
}
