package main

import (
	"context"
	"database/sql"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/store/storetest"
)

// cmdSQL changes a database as another program would:
//
//	sql FILE STATEMENT…
func cmdSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: sql FILE STATEMENT…")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, _ = db.Exec(storetest.Editable) // fails if the file is not a log
	for _, statement := range args[1:] {
		_, err := db.Exec(statement)
		ts.Check(err)
	}
}

// cmdTamper changes the rows of a log as a forger would. It drops the triggers before and restores them afterwards:
//
//	tamper LOG STATEMENT…
func cmdTamper(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: tamper LOG STATEMENT…")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	var triggers []string
	for _, statement := range store.Statements() {
		if name, ok := strings.CutPrefix(statement, "CREATE TRIGGER "); ok {
			triggers = append(triggers, statement)
			_, err := db.Exec("DROP TRIGGER " + strings.Fields(name)[0])
			ts.Check(err)
		}
	}
	_, err = db.Exec(storetest.Editable)
	ts.Check(err)
	for _, statement := range append(args[1:], triggers...) {
		_, err := db.Exec(statement)
		ts.Check(err)
	}
}

// cmdReplace replaces the first occurrence of a text in a file:
//
//	replace OLD NEW FILE
func cmdReplace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace OLD NEW FILE")
	}
	text := ts.ReadFile(args[2])
	if !strings.Contains(text, args[0]) {
		ts.Fatalf("%s does not contain %q", args[2], args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Replace(text, args[0], args[1], 1)), 0o600))
}

// cmdBegun records on a log that payloads are being removed: the payloads of a run, or the payloads of all events up to
// one event. The log then looks as if log prune had died after this record:
//
//	begun LOG RUN|UNTIL [CLASS]
func cmdBegun(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: begun LOG RUN|UNTIL [CLASS]")
	}
	ctx := context.Background()
	log, err := eventlog.Open(ctx, ts.MkAbs(args[0]), eventlog.Options{Context: "default"})
	ts.Check(err)
	var p event.Pruning
	if until, err := strconv.Atoi(args[1]); err == nil {
		p.Until = event.Seq(until)
	} else {
		size, _, err := log.Head(ctx)
		ts.Check(err)
		p.Until, p.Run = event.Seq(size), event.RunID(args[1])
	}
	if len(args) > 2 {
		p.Class = event.Class(args[2])
	}
	_, err = log.Append(ctx, event.NewFact(event.LogPruned, "user", event.Refs{}, p))
	ts.Check(err)
	ts.Check(log.Close())
}

// cmdResend records on a log that its last prompt was sent a second time:
//
//	resend LOG
func cmdResend(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: resend LOG")
	}
	ctx := context.Background()
	log, err := eventlog.Open(ctx, ts.MkAbs(args[0]), eventlog.Options{Context: "default"})
	ts.Check(err)
	var prompt event.Event
	for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.RequestSent}}) {
		ts.Check(err)
		if strings.Contains(string(e.Payload), "session/prompt") {
			prompt = e
		}
	}
	_, err = log.Append(ctx, prompt)
	ts.Check(err)
	ts.Check(log.Close())
}

// cmdForge records on a log that an input was called and answered. It copies the write-ahead log that has these
// events:
//
//	forge LOG INPUT WAL
func cmdForge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: forge LOG INPUT WAL")
	}
	ctx := context.Background()
	log, err := eventlog.Open(ctx, ts.MkAbs(args[0]), eventlog.Options{Context: "default"})
	ts.Check(err)
	refs := event.Refs{Run: "01900000-0000-7000-8000-000000000001", Session: "01900000-0000-7000-8000-00000000aaaa"}
	input := refs
	input.Input = event.InputID(args[1])
	_, err = log.EndRun(ctx,
		event.NewFact(event.MessageReceived, "user", input, map[string]string{"text": "hello"}),
		event.NewFact(event.Requested, "perlica", input, map[string]any{"provider": "predictable", "llm_call_index": 1}),
		event.NewFact(event.Responded, "agent", refs, map[string]string{"text": "forged", "stop_reason": "end_turn"}),
		event.NewFact(event.CallEnforced, "perlica", refs, map[string]int{"calls": 1}))
	ts.Check(err)
	frames, err := os.ReadFile(ts.MkAbs(args[0]) + "-wal")
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), frames, 0o600))
	ts.Check(log.Close())
}
