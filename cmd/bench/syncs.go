package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
)

var syncLine = regexp.MustCompile(`(?m)\b(fsync|fdatasync)\(`)

// syncs counts the data syncs of both programs with strace, where there is one.
func syncs(command func(...string) *exec.Cmd, ours, theirs []string) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		fmt.Printf("%-52s (strace is not installed)\n", "  its data syncs")
		return
	}
	counts := [2]int{}
	for i, argv := range [][]string{ours, theirs} {
		cmd := command(append([]string{strace, "-f", "-e", "trace=fsync,fdatasync"}, argv...)...)
		var trace bytes.Buffer
		cmd.Stderr = &trace
		if err := cmd.Run(); err != nil {
			check(fmt.Errorf("strace: %w\n%s", err, trace.Bytes()))
		}
		counts[i] = len(syncLine.FindAll(trace.Bytes(), -1))
	}
	fmt.Printf("%-52s %10d %10d %-9s more  %5d  (at most 3)\n", "  its data syncs", counts[0], counts[1], "", counts[0]-counts[1])
}
