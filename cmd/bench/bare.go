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

func openBare(dir string) (*bareLog, error) {
	path := filepath.Join(dir, fmt.Sprintf("bare-%d.db", time.Now().UnixNano()))
	db, err := sql.Open("sqlite", "file:"+path+barePragmas)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE e (seq INTEGER PRIMARY KEY, a TEXT, ts INTEGER, b TEXT, c TEXT, d TEXT, e TEXT, f TEXT, g TEXT,
		h TEXT, i TEXT, j TEXT, k TEXT, l TEXT, m INTEGER, n BLOB, o BLOB, p BLOB) STRICT`); err != nil {
		return nil, err
	}
	// All on one connection: a transaction of database/sql would prepare its statements anew.
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	b := &bareLog{db: db, conn: conn}
	for stmt, sql := range map[**sql.Stmt]string{
		&b.begin:    `BEGIN IMMEDIATE`,
		&b.commitTx: `COMMIT`,
		&b.in:       insertBare,
	} {
		if *stmt, err = conn.PrepareContext(context.Background(), sql); err != nil {
			return nil, err
		}
	}
	return b, nil
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
func (b *bareLog) insert(payload []byte) error {
	_, err := b.in.Exec(b.row(payload)...)
	return err
}

// exec adds one row, a durable one, by a statement that is prepared for it alone, as db.Exec does.
func (b *bareLog) exec(payload []byte) error {
	_, err := b.conn.ExecContext(context.Background(), insertBare, b.row(payload)...)
	return err
}

// commit inserts n rows of one payload in one durable transaction.
func (b *bareLog) commit(n int, payload []byte) error {
	if _, err := b.begin.Exec(); err != nil {
		return err
	}
	for range n {
		if err := b.insert(payload); err != nil {
			return err
		}
	}
	_, err := b.commitTx.Exec()
	return err
}
