package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"time"
)

// barePragmas are the log's, and the comment makes the size of a page the first, as there.
const barePragmas = "?_pragma=busy_timeout(10000)&_pragma=/**/page_size(8192)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
	"&_pragma=wal_autocheckpoint(1000)&_txlock=immediate"

// bareLog is a table of the log's form without anything of ours: no hashes, no indexes.
type bareLog struct {
	db                  *sql.DB
	conn                *sql.Conn // the one of db
	begin, commitTx, in *sql.Stmt
	n                   int64
}

func openBare(dir string) *bareLog {
	path := filepath.Join(dir, fmt.Sprintf("bare-%d.db", time.Now().UnixNano()))
	db := must(sql.Open("sqlite", "file:"+path+barePragmas))
	db.SetMaxOpenConns(1)
	must(db.Exec(`CREATE TABLE e (seq INTEGER PRIMARY KEY, a TEXT, ts INTEGER, b TEXT, c TEXT, d TEXT, e TEXT, f TEXT, g TEXT,
		h TEXT, i TEXT, j TEXT, k TEXT, l TEXT, m INTEGER, n BLOB, o BLOB, p BLOB) STRICT`))
	// All on one connection: a transaction of database/sql would prepare its statements anew.
	conn := must(db.Conn(context.Background()))
	prepare := func(query string) *sql.Stmt { return must(conn.PrepareContext(context.Background(), query)) }
	return &bareLog{db: db, conn: conn, begin: prepare(`BEGIN IMMEDIATE`), commitTx: prepare(`COMMIT`), in: prepare(insertBare)}
}

const insertBare = `INSERT INTO e VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

var bareHash = make([]byte, 32)

// row returns the values of the next row.
func (b *bareLog) row(payload []byte) []any {
	const id = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
	b.n++
	return []any{b.n, id, time.Now().UnixNano(), "acp.notification.received", "frame", "agent", id, "default",
		id, "s", id, "0199aaaabbbb7ccc8dddffffffffffff", "", id, len(payload), bareHash, bareHash, payload}
}

// insert adds one row by the prepared statement: by itself, a durable one.
func (b *bareLog) insert(payload []byte) { must(b.in.Exec(b.row(payload)...)) }

// exec adds one row, a durable one, by a statement that is prepared for it alone, as db.Exec does.
func (b *bareLog) exec(payload []byte) {
	must(b.conn.ExecContext(context.Background(), insertBare, b.row(payload)...))
}

// commit inserts n rows of one payload in one durable transaction.
func (b *bareLog) commit(n int, payload []byte) {
	must(b.begin.Exec())
	for range n {
		b.insert(payload)
	}
	must(b.commitTx.Exec())
}
