package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/report"
)

func init() {
	scriptCommands["prints"] = cmdPrints
	scriptCommands["logged"] = cmdLogged
	scriptCommands["audit"] = cmdAudit
	scriptCommands["streamed"] = cmdStreamed
	scriptCommands["mkfile"] = cmdMkfile
	scriptCommands["setvar"] = cmdSetvar
}

// logFile returns the path of the event log in a project's default context.
func logFile(project string) string {
	return filepath.Join(project, ".perlica_config", "contexts", "default", "eventlog.db")
}

// readLog reads a whole log. If there is no log, it returns no events.
func readLog(path string) (events []event.Event, err error) {
	r, err := store.OpenReader(context.Background(), path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for e, err := range r.Events(context.Background(), event.Query{}) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// countEvents counts the events of a type with all parts in their payload.
func countEvents(events []event.Event, typ string, parts ...string) (n int) {
	for _, e := range events {
		if string(e.Type) == typ && !slices.ContainsFunc(parts,
			func(p string) bool { return !strings.Contains(string(e.Payload), p) }) {
			n++
		}
	}
	return n
}

// auditLog checks a log that no process has open. It returns an error for a wrong hash, an intent without exactly
// one outcome, a prompt without an earlier intent, or a question without an end.
func auditLog(path string) error {
	r, err := store.OpenReader(context.Background(), path)
	if err != nil {
		return err
	}
	rep, err := verify.Log(context.Background(), r, verify.Options{Audit: &report.Audit{}})
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if !rep.OK() {
		return fmt.Errorf("damage: %v", rep.Findings)
	}
	events, err := readLog(path)
	if err != nil {
		return err
	}
	intents, prompts, outcomes := map[event.RunID]int{}, map[event.RunID]int{}, map[event.RunID]int{}
	questions := map[event.InteractionID]int{}
	for _, e := range events {
		switch {
		case e.Type == event.Requested:
			intents[e.Run]++
		case e.Type == event.RequestSent && strings.Contains(string(e.Payload), `"method":"session/prompt"`):
			prompts[e.Run]++
			if intents[e.Run] != 1 || outcomes[e.Run] != 0 {
				return fmt.Errorf("event %d: a prompt with %d intents and %d outcomes before it", e.Seq, intents[e.Run],
					outcomes[e.Run])
			}
		case e.Type.Outcome():
			outcomes[e.Run]++
		case e.Type == event.InteractionRequested:
			questions[e.Interaction]++
		case e.Type == event.InteractionResolved:
			questions[e.Interaction]--
		}
	}
	for run := range intents {
		if outcomes[run] != 1 || prompts[run] > 1 {
			return fmt.Errorf("run %s has %d outcomes and %d prompts", run, outcomes[run], prompts[run])
		}
	}
	for q, open := range questions {
		if open != 0 {
			return fmt.Errorf("question %s has no end", q)
		}
	}
	return nil
}

// leftBehind lists the running processes with home in their variable HOME: perlica, its agents, and the processes
// that they have started.
func leftBehind(home string) (list []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // Glob fails only for an invalid pattern.
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), "HOME="+home) {
			continue // The process has ended, or it belongs to another user.
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err == nil && len(line) > 0 { // A zombie has no command line.
			list = append(list, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return list
}

// cmdPrints compares standard output with a text, byte for byte. The text may contain Go's escapes:
//
//	prints 'one\n\n  two'
func cmdPrints(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: prints TEXT")
	}
	want, err := strconv.Unquote(`"` + strings.ReplaceAll(args[0], `"`, `\"`) + `"`)
	ts.Check(err)
	if got := ts.ReadFile("stdout"); got != want {
		ts.Fatalf("standard output is %q, want %q", got, want)
	}
}

// countsKey is the key of a script's value in which cmdLogged stores its counts.
const countsKey = "counts"

// cmdLogged counts the new events of a type with all the texts in their payload. An event is new if the last count with
// the same type and texts has not counted it. A new line in a script then changes no later line. PROJECT=DIR may come
// first:
//
//	logged 1 acp.request.sent '"method":"session/prompt"'
func cmdLogged(ts *testscript.TestScript, neg bool, args []string) {
	project := ts.MkAbs(".")
	if len(args) > 0 && strings.HasPrefix(args[0], "PROJECT=") {
		project, args = ts.MkAbs(strings.TrimPrefix(args[0], "PROJECT=")), args[1:]
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: logged [PROJECT=DIR] N TYPE [TEXT…]")
	}
	events, err := readLog(logFile(project))
	ts.Check(err)
	counts, counted := ts.Value(countsKey).(map[string]int), project+" "+strings.Join(args[1:], " ")
	all := countEvents(events, args[1], args[2:]...)
	got := all - counts[counted]
	counts[counted] = all
	if strconv.Itoa(got) != args[0] {
		for _, e := range events {
			if string(e.Type) == args[1] {
				ts.Logf("%4d %s %.300s", e.Seq, e.Type, e.Payload)
			}
		}
		ts.Fatalf("got %d new events of %q, want %s", got, args[1:], args[0])
	}
}

// cmdAudit checks that the log is undamaged and that no process is left.
func cmdAudit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: audit")
	}
	ts.Check(auditLog(logFile(ts.MkAbs("."))))
	if left := leftBehind(ts.Getenv("HOME")); len(left) > 0 {
		ts.Fatalf("processes are left: %q", left)
	}
}

// cmdStreamed checks stream-json on standard output: the types of the lines in order. Each line must have schema 1
// and its own number:
//
//	streamed run.started text result
func cmdStreamed(ts *testscript.TestScript, neg bool, args []string) {
	types, err := streamTypes(ts.ReadFile("stdout"))
	ts.Check(err)
	if slices.Equal(types, args) == neg {
		ts.Fatalf("the lines are %q, want %q", types, args)
	}
}

func streamTypes(out string) (types []string, err error) {
	for i, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		var v struct {
			Type      string
			Schema, N int
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			return types, fmt.Errorf("line %d: %w: %s", i+1, err, line)
		}
		if v.Schema != 1 || v.N != i+1 {
			return types, fmt.Errorf("line %d: schema %d, n %d", i+1, v.Schema, v.N)
		}
		types = append(types, v.Type)
	}
	return types, nil
}

// cmdMkfile makes a file. Its content is a number of bytes in lines of text, or the given bytes:
//
//	mkfile big.txt 200000
//	mkfile image.png '\x89PNG\r\n\x1a\n'
func cmdMkfile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mkfile FILE SIZE|BYTES")
	}
	var data []byte
	if size, err := strconv.Atoi(args[1]); err == nil {
		data = []byte(strings.Repeat("0123456789abcdef012345678 lines\n", size/32+1)[:size])
	} else {
		text, err := strconv.Unquote(`"` + args[1] + `"`)
		ts.Check(err)
		data = []byte(text)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}

// cmdSetvar sets a variable to a field of the JSON object on standard output:
//
//	setvar SESSION session_id
func cmdSetvar(ts *testscript.TestScript, neg bool, args []string) {
	var v map[string]any
	if neg || len(args) != 2 {
		ts.Fatalf("usage: setvar NAME FIELD")
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	ts.Setenv(args[0], fmt.Sprint(v[args[1]]))
}
