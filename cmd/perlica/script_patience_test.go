package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() {
	scriptCommands["limit"] = cmdLimit
	scriptCommands["phone"] = cmdPhone
}

// cmdLimit runs a command that makes one call, with a time limit that replaces LIMIT in its arguments. The limit
// must pass during the call. If it passes before the prompt was sent, cmdLimit tries again with a longer limit. The
// variable LIMIT has the last limit:
//
//	limit 3 perlica run --timeout LIMIT @hang
func cmdLimit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || !slices.Contains(args, "LIMIT") {
		ts.Fatalf("usage: limit CODE COMMAND…, with LIMIT in it")
	}
	prompts := func() int {
		events, err := readLog(logFile(ts.MkAbs(".")))
		ts.Check(err)
		return countEvents(events, "acp.request.sent", `"method":"session/prompt"`)
	}
	before := prompts()
	for _, limit := range []string{"1s", "5s", "30s", "2m"} {
		try := slices.Clone(args)
		try[slices.Index(try, "LIMIT")] = limit
		cmdExitCode(ts, false, try)
		if prompts() > before {
			ts.Setenv("LIMIT", limit)
			return
		}
	}
	ts.Fatalf("no prompt leaves in time")
}

// cmdPhone sends the lines of a file as a person at a phone would. It ends when each pattern has matched a message.
// Standard output then has all received messages:
//
//	phone alice hello.txt '^You said: hello'
func cmdPhone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: phone NAME FILE PATTERN…")
	}
	var patterns []*regexp.Regexp
	for _, arg := range args[2:] {
		p, err := regexp.Compile("(?m)" + arg)
		ts.Check(err)
		patterns = append(patterns, p)
	}
	heard, enough := ts.MkAbs("heard"), ts.MkAbs("enough")
	for _, name := range []string{heard, enough} {
		ts.Check(os.RemoveAll(name))
	}
	lacks := func() string {
		text, _ := os.ReadFile(heard) // The file may not exist yet.
		if i := slices.IndexFunc(patterns, func(p *regexp.Regexp) bool { return !p.Match(text) }); i >= 0 {
			return patterns[i].String()
		}
		return ""
	}
	ended := make(chan struct{})
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		again := time.NewTicker(untilPause)
		defer again.Stop()
		for end := time.After(untilMost); lacks() != ""; {
			select {
			case <-again.C: // The pause gives another process time to act.
				continue
			case <-end:
			case <-ended:
			}
			break
		}
		// If this file cannot be written, the script does not end, and that shows the fault.
		_ = os.WriteFile(enough, nil, 0o600)
	}()
	line := "(cat " + shellWords(args[1:2]) +
		"; while [ ! -e enough ]; do sleep 0.05; done) | perlica phone --wait 100ms --as " + shellWords(args[:1]) + " >heard"
	err := ts.Exec("/bin/sh", "-c", line)
	close(ended)
	<-listened
	ts.Check(err)
	ts.Check(ts.Exec("cat", "heard"))
	if p := lacks(); p != "" {
		ts.Fatalf("%s was not heard in %s", p, strings.TrimSpace(ts.ReadFile("stdout")))
	}
}
