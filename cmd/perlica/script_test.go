package main

import (
	"encoding/json"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptCommands are the commands that scripts have in addition to testscript's own.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"field":    cmdField,
	"exitcode": cmdExitCode,
	"sql":      cmdSQL,
	"tamper":   cmdTamper,
	"begun":    cmdBegun,
	"resend":   cmdResend,
	"until":    cmdUntil,
	"gone":     cmdGone,
	"capture":  cmdCapture,
	"race":     cmdRace,
	"replace":  cmdReplace,
	"forge":    cmdForge,
}

// cmdExitCode runs a command and checks its exit code:
//
//	exitcode 5 perlica run hello
func cmdExitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// cmdField checks a member of a JSON object in a file. Dots separate the names of nested members, and a number names
// an element of an array:
//
//	field stdout error.error_type auth
func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: field FILE PATH VALUE")
	}
	var v any
	text := strings.TrimSpace(ts.ReadFile(args[0]))
	if !json.Valid([]byte(text)) {
		text = text[strings.LastIndexByte(text, '\n')+1:] // The object is in the last line of the output.
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		ts.Fatalf("%s: %v: %s", args[0], err, text)
	}
	for name := range strings.SplitSeq(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i := 0
			for _, c := range name {
				i = i*10 + int(c-'0')
			}
			if i >= len(x) {
				ts.Fatalf("%s: no element %s", args[1], name)
			}
			v = x[i]
		default:
			ts.Fatalf("%s: %v has no member %s", args[1], v, name)
		}
	}
	got, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		ts.Check(err)
		got = string(b)
	}
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %s, want %s%s", args[1], got, map[bool]string{true: "not "}[neg], args[2])
	}
}
