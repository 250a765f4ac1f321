package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// side is one of the compared programs, which run within this process.
type side struct {
	round func() // does the operations; ops is their number
	ops   int

	took []time.Duration // the time of one operation; one value for each round
	cpu  time.Duration   // total processor time of this process during the rounds
	done int             // operations of all rounds so far
}

// compare runs rounds of all sides in turn, after one warm-up round. Other work on the machine then affects each side
// equally.
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

// opsPerSecond returns the side's operations per second in the median round.
func (s *side) opsPerSecond() float64 { return 1 / median(slices.Clone(s.took)).Seconds() }

// cpuTime returns the processor time of an operation in microseconds.
func (s *side) cpuTime() float64 { return float64(s.cpu.Nanoseconds()) / 1e3 / float64(s.done) }

// rates prints the rates of two sides.
func rates(what string, ours, bare *side, promise string) {
	ratio(what, ours.opsPerSecond(), bare.opsPerSecond(), "1/s", promise)
}

// processorTime is the name of the lines that cpus prints.
const processorTime = "processor time"

// cpus prints the processor times of two sides. Other work on the machine hardly changes these times.
func cpus(ours, bare *side, promise string) {
	if ours.cpu == 0 {
		fmt.Printf("%-52s (not known on this system)\n", "  "+processorTime)
		return
	}
	ratio("  "+processorTime, ours.cpuTime(), bare.cpuTime(), "µs", promise)
}

// barePragmas are the log's own pragmas. SQLite needs page_size before journal_mode, and the driver sorts the
// pragmas. The empty SQL comment puts page_size first.
const barePragmas = "?_pragma=busy_timeout(10000)&_pragma=/**/page_size(8192)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
	"&_pragma=wal_autocheckpoint(1000)&_txlock=immediate"

// bareLog is an SQLite table with the columns of the log, but without its hashes and indexes.
type bareLog struct {
	db                  *sql.DB
	conn                *sql.Conn // the connection of db
	begin, commitTx, in *sql.Stmt
	n                   int64
}

func openBare(dir string) *bareLog {
	path := filepath.Join(dir, fmt.Sprintf("bare-%d.db", time.Now().UnixNano()))
	db := must(sql.Open("sqlite", "file:"+path+barePragmas))
	db.SetMaxOpenConns(1)
	must(db.Exec(
		`CREATE TABLE e (seq INTEGER PRIMARY KEY, a TEXT, ts INTEGER, b TEXT, c TEXT, d TEXT, e TEXT, f TEXT, g TEXT,
		h TEXT, i TEXT, j TEXT, k TEXT, l TEXT, m INTEGER, n BLOB, o BLOB, p BLOB) STRICT`))
	// The rows go through this one connection, because a transaction of database/sql would prepare the statements
	// again.
	conn := must(db.Conn(context.Background()))
	prepare := func(query string) *sql.Stmt { return must(conn.PrepareContext(context.Background(), query)) }
	return &bareLog{db: db, conn: conn, begin: prepare(`BEGIN IMMEDIATE`), commitTx: prepare(`COMMIT`),
		in: prepare(insertBare)}
}

const insertBare = `INSERT INTO e VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

var bareHash = make([]byte, 32)

// rowValues returns the values of the next row.
func (b *bareLog) rowValues(payload []byte) []any {
	const id = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
	b.n++
	return []any{b.n, id, time.Now().UnixNano(), "acp.notification.received", "frame", "agent", id, "default",
		id, "s", id, "0199aaaabbbb7ccc8dddffffffffffff", "", id, len(payload), bareHash, bareHash, payload}
}

// insertRow adds one durable row with the prepared statement.
func (b *bareLog) insertRow(payload []byte) { must(b.in.Exec(b.rowValues(payload)...)) }

// execRow adds one durable row and prepares a statement for it, as db.Exec does.
func (b *bareLog) execRow(payload []byte) {
	must(b.conn.ExecContext(context.Background(), insertBare, b.rowValues(payload)...))
}

// commitRows inserts n rows of one payload in one durable transaction.
func (b *bareLog) commitRows(n int, payload []byte) {
	must(b.begin.Exec())
	for range n {
		b.insertRow(payload)
	}
	must(b.commitTx.Exec())
}

// commitAll inserts a row for each payload in one durable transaction.
func (b *bareLog) commitAll(payloads [][]byte) {
	must(b.begin.Exec())
	for _, p := range payloads {
		b.insertRow(p)
	}
	must(b.commitTx.Exec())
}
