package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// untilMost is the longest time that await tries. untilPause is its pause between two tries.
const (
	untilMost  = 5 * time.Minute // A busy machine may stop a process for a while.
	untilPause = 50 * time.Millisecond
)

// cmdUntil repeats a command until its standard output matches:
//
//	until 'Run tests' perlica pending list
func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND…")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	await(ts, "match for "+args[0], func() bool {
		_ = ts.Exec(args[1], args[2:]...) // The command may fail at first.
		return pattern.MatchString(ts.ReadFile("stdout"))
	})
}

// cmdGone waits until the processes that outlive their command have ended.
func cmdGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: gone")
	}
	await(ts, "end of all processes", func() bool { return len(leftBehind(ts.Getenv("HOME"))) == 0 })
}

// await repeats a check until it is true.
func await(ts *testscript.TestScript, what string, is func() bool) {
	again := time.NewTicker(untilPause)
	defer again.Stop()
	for end := time.After(untilMost); !is(); {
		select {
		case <-again.C: // The pause gives another process time to act.
		case <-end:
			ts.Fatalf("no %s within %s", what, untilMost)
		}
	}
}

// cmdCapture sets a variable to the first group of a pattern that it finds in standard output:
//
//	capture ID '^([0-9a-f]{8}) '
func cmdCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME PATTERN")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	m := pattern.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) < 2 {
		ts.Fatalf("no match for %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// cmdRace runs two commands at the same time. Standard output and standard error then have the texts of both
// commands:
//
//	race perlica pending allow X -- perlica pending deny X
func cmdRace(ts *testscript.TestScript, neg bool, args []string) {
	cut := slices.Index(args, "--")
	if neg || cut < 1 || cut == len(args)-1 {
		ts.Fatalf("usage: race COMMAND… -- COMMAND…")
	}
	script := shellWords(args[:cut]) + " & " + shellWords(args[cut+1:]) + " & wait"
	ts.Check(ts.Exec("/bin/sh", "-c", script))
}

// shellWords quotes words for a shell.
func shellWords(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(quoted, " ")
}
