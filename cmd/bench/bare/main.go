// Command bare is the program that perlica run is compared with. It opens an SQLite file, commits one durable row and
// closes the file.
package main

import (
	"database/sql"
	"fmt"
	"os"

	_ "modernc.org/sqlite"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	db, err := sql.Open("sqlite", "file:"+path+
		"?_pragma=busy_timeout(10000)&_pragma=page_size(8192)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	if _, err := db.Exec(`CREATE TABLE IF NOT EXISTS t (x TEXT)`); err != nil {
		return err
	}
	if _, err := db.Exec(`INSERT INTO t VALUES ('hello')`); err != nil {
		return err
	}
	return db.Close()
}
