package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
)

// lookEvery is how often a log that is followed is looked at when something has come in the last
// lookAlert, and lookIdle how often else. A look asks SQLite whether its write-ahead log has
// grown: it reads no event and a few bytes of shared memory, 10 µs a time. Where the system tells
// of what is written in the log's folder nothing is looked at while it tells of nothing, except
// every lookRest, should a file system not tell it.
const (
	lookEvery = 50 * time.Millisecond
	lookIdle  = 200 * time.Millisecond
	lookRest  = 30 * time.Second
	lookAlert = 2 * time.Second
)

// Changes tells when something was appended to a log, by whatever process. It is for one
// goroutine.
type Changes struct {
	conn    *sql.Conn
	stmt    *sql.Stmt
	folders *folders // nil: the system does not tell
	seen    int64
	last    time.Time // of the last look
	came    time.Time // when something was found, or changed by the system; at first, when the looking began
}

// Changes begins to look at the log: the first Wait tells of what is committed from now on. Of
// what happens in the other folders Wait only ends. The caller must Close it, before the Reader.
func (r *Reader) Changes(ctx context.Context, others ...string) (*Changes, error) {
	// The number that is asked for is a connection's own.
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return nil, disk.Explain(err)
	}
	// What is being committed in this moment may have been written before the system was asked to tell: it is on
	// the alert from the beginning.
	c := &Changes{conn: conn, folders: watchFolders(append(others, filepath.Dir(r.path))...), came: time.Now()}
	if c.stmt, err = conn.PrepareContext(ctx, `PRAGMA data_version`); err == nil {
		c.seen, err = c.version(ctx)
	}
	if err != nil {
		_ = c.Close() // the error that matters is the first
		return nil, disk.Explain(err)
	}
	return c, nil
}

func (c *Changes) version(ctx context.Context) (v int64, err error) {
	err = c.stmt.QueryRowContext(ctx).Scan(&v)
	return v, err
}

// Quiet reports whether nothing has happened for a while and the system will tell when something
// does, in the log's folder or in the others: then no one has to look.
func (c *Changes) Quiet() bool { return c.folders != nil && time.Since(c.came) >= lookAlert }

func (c *Changes) every() time.Duration {
	switch {
	case c.Quiet():
		return lookRest
	case time.Since(c.came) < lookAlert:
		return lookEvery
	}
	return lookIdle
}

// Wait returns true as soon as something was committed since the last Wait. It returns false
// when most has passed, where zero is no limit, or when the system has changed, after a quiet time,
// of something else. It fails when ctx ends.
func (c *Changes) Wait(ctx context.Context, most time.Duration) (bool, error) {
	var late <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		late = timer.C
	}
	look := time.NewTimer(c.every() - time.Since(c.last))
	defer look.Stop()
	for {
		var changed <-chan struct{}
		if c.Quiet() {
			changed = c.folders.changed
		}
		woken := false
		select {
		case <-look.C:
		case <-changed:
			woken, c.came = true, time.Now()
		case <-late:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
		v, err := c.version(ctx)
		if err != nil {
			return false, disk.Explain(err)
		}
		c.last = time.Now()
		if v != c.seen {
			c.seen, c.came = v, c.last
			return true, nil
		}
		if woken {
			return false, nil
		}
		look.Reset(c.every())
	}
}

// Close ends the looking.
func (c *Changes) Close() error {
	if c.folders != nil {
		c.folders.close()
	}
	if c.stmt != nil {
		_ = c.stmt.Close() // the connection's end ends it
	}
	return c.conn.Close()
}
