package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// figure collects the values of one measurement of one revision: Perlica's values and their ratios to the bare
// program. Each run adds one value and one ratio.
type figure struct {
	unit         string
	ours, ratios []float64
}

// compareWith runs the comparisons of this tree and of another revision alternately. It prints the measurements that
// both revisions have. Each revision is measured with its own version of this program.
func compareWith(rev string, turns int, names []string, dir string) {
	other := filepath.Join(dir, "other")
	output(exec.Command("git", "worktree", "add", "--detach", other, rev))
	defer output(exec.Command("git", "worktree", "remove", "--force", other))
	trees := [2]string{must(os.Getwd()), other}
	var programs [2]string
	for i, tree := range trees {
		programs[i] = filepath.Join(dir, fmt.Sprintf("bench%d", i))
		cmd := exec.Command("go", "build", "-o", programs[i], "./cmd/bench")
		cmd.Dir = tree
		output(cmd)
	}
	figures := [2]map[string]*figure{{}, {}}
	var order []string
	for turn := range turns {
		for i, program := range programs {
			fmt.Fprintf(os.Stderr, "turn %d of %d, %s\n", turn+1, turns, [2]string{"this tree", rev}[i])
			cmd := exec.Command(program, names...)
			cmd.Dir = trees[i]
			for _, name := range addLines(figures[i], output(cmd)) {
				if turn == 0 && i == 0 {
					order = append(order, name)
				}
			}
		}
	}
	fmt.Printf("%-64s %10s %10s %-9s %8s  %s\n", "", "this tree", rev, "", "quotient", "spread; ratio to the bare program")
	for _, name := range order {
		here, there := figures[0][name], figures[1][name]
		if there == nil {
			continue
		}
		fmt.Printf("%-64s %10.2f %10.2f %-9s %8.2f  %.2f..%.2f, %.2f..%.2f; %.2f, %.2f\n", name, middle(here.ours),
			middle(there.ours), here.unit, middle(here.ours)/middle(there.ours), slices.Min(here.ours), slices.Max(here.ours),
			slices.Min(there.ours), slices.Max(there.ours), middle(here.ratios), middle(there.ratios))
	}
}

// ratioLine matches a line of ratio: the name, two values, the unit and their ratio.
var ratioLine = regexp.MustCompile(`^(.{52,}?) +([0-9.]+) +([0-9.]+) (\S+) +ratio +([0-9.]+)  \(`)

// addLines parses the output of one run, adds the values to the figures and returns the names of the measurements.
// The name of an indented line begins with the name of the last line that is not indented. A processor time instead
// belongs to the line above, because a group of lines can have several.
func addLines(to map[string]*figure, out []byte) (names []string) {
	head, above := "", ""
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		m := ratioLine.FindStringSubmatch(sc.Text())
		if m == nil {
			continue
		}
		name := strings.TrimSpace(m[1])
		switch {
		case name == processorTime:
			name = above + ": " + name
		case strings.HasPrefix(m[1], " "):
			name = head + ": " + name
		default:
			head = name
		}
		above = name
		if to[name] == nil {
			to[name] = &figure{unit: m[4]}
		}
		to[name].ours = append(to[name].ours, must(strconv.ParseFloat(m[2], 64)))
		to[name].ratios = append(to[name].ratios, must(strconv.ParseFloat(m[5], 64)))
		names = append(names, name)
	}
	return names
}

// middle returns the median of the values and sorts them.
func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
