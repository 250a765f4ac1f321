package main

import (
	"database/sql"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdSQL does to a database what another program might:
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
	for _, statement := range args[1:] {
		_, err := db.Exec(statement)
		ts.Check(err)
	}
}
