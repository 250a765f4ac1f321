package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// A side is one of the programs of a comparison within this process.
type side struct {
	round func() // does ops operations
	ops   int

	took []time.Duration // of an operation, by round
	cpu  time.Duration   // of this process in the meantime, all together
	done int             // operations
}

// compare does rounds of all sides in turn, after one that is not counted: the machine may have
// other work, and so each side gets the same share of it.
func compare(rounds int, sides ...*side) {
	for i := range rounds + 1 {
		for _, s := range sides {
			start, cpu := time.Now(), processCPU()
			s.round()
			if i == 0 {
				continue
			}
			s.took = append(s.took, time.Since(start)/time.Duration(s.ops))
			s.cpu += processCPU() - cpu
			s.done += s.ops
		}
	}
}

// rate is how many operations a second the side does in the round at the median.
func (s *side) rate() float64 { return 1 / median(slices.Clone(s.took)).Seconds() }

// cpuTime is how much processor time an operation takes, in microseconds.
func (s *side) cpuTime() float64 { return float64(s.cpu.Nanoseconds()) / 1e3 / float64(s.done) }

// rates prints how two sides compare.
func rates(what string, ours, bare *side, promise string) {
	ratio(what, ours.rate(), bare.rate(), "1/s", promise)
}

// cpus prints how the processor times of two sides compare, which other work on the machine
// hardly changes.
func cpus(ours, bare *side, promise string) {
	if ours.cpu == 0 {
		fmt.Printf("%-52s (not known on this system)\n", "  processor time")
		return
	}
	ratio("  processor time", ours.cpuTime(), bare.cpuTime(), "µs", promise)
}

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

// commitAll inserts a row for each payload in one durable transaction.
func (b *bareLog) commitAll(payloads [][]byte) {
	must(b.begin.Exec())
	for _, p := range payloads {
		b.insert(p)
	}
	must(b.commitTx.Exec())
}
