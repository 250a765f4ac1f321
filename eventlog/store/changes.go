package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
)

// lookEvery is the interval between two looks at a followed log within lookAlert of the last
// change. lookIdle is the interval after that. A look asks SQLite whether the write-ahead log has
// grown. It reads no event and only a few bytes of shared memory; BenchmarkChanges measures it. If
// the system reports changes in the log's folder, a quiet log is not looked at until the system
// reports one. lookRest is the interval for file systems that report nothing.
const (
	lookEvery = 50 * time.Millisecond
	lookIdle  = 200 * time.Millisecond
	lookRest  = 30 * time.Second
	lookAlert = 2 * time.Second
)

// Changes reports when any process has appended to a log. Only one goroutine may use it.
type Changes struct {
	conn    *sql.Conn
	stmt    *sql.Stmt
	folders *folders // nil if the system reports no changes
	seen    int64
	last    time.Time // time of the last look
	// came is the time of the last change. At first it is the time of the start.
	came time.Time
}

// Changes starts to watch the log. The first Wait reports commits from now on. A change in one of
// the other folders only ends Wait. The caller must Close the result before the Reader.
func (r *Reader) Changes(ctx context.Context, others ...string) (*Changes, error) {
	// Each connection has its own data version.
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return nil, disk.Explain(err)
	}
	// A running commit may have been written before the system was asked to report. So the log
	// counts as changed at the start.
	c := &Changes{conn: conn, folders: watchFolders(append(others, filepath.Dir(r.path))...), came: time.Now()}
	if c.stmt, err = conn.PrepareContext(ctx, `PRAGMA data_version`); err == nil {
		c.seen, err = c.dataVersion(ctx)
	}
	if err != nil {
		_ = c.Close() // the first error matters
		return nil, disk.Explain(err)
	}
	return c, nil
}

func (c *Changes) dataVersion(ctx context.Context) (v int64, err error) {
	err = c.stmt.QueryRowContext(ctx).Scan(&v)
	return v, err
}

// Quiet reports whether nothing has happened for a while and the system will report the next change
// in the log's folder or the others. Then the caller need not look.
func (c *Changes) Quiet() bool { return c.folders != nil && time.Since(c.came) >= lookAlert }

func (c *Changes) interval() time.Duration {
	switch {
	case c.Quiet():
		return lookRest
	case time.Since(c.came) < lookAlert:
		return lookEvery
	}
	return lookIdle
}

// Wait returns true when a commit has happened since the last Wait. It returns false after most has
// passed, where zero means no limit. It also returns false if the system reports another change
// after a quiet time. It returns an error when ctx ends.
func (c *Changes) Wait(ctx context.Context, most time.Duration) (bool, error) {
	var late <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		late = timer.C
	}
	look := time.NewTimer(c.interval() - time.Since(c.last))
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
		v, err := c.dataVersion(ctx)
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
		look.Reset(c.interval())
	}
}

// Close stops watching.
func (c *Changes) Close() error {
	if c.folders != nil {
		c.folders.closeWatch()
	}
	if c.stmt != nil {
		_ = c.stmt.Close() // closing the connection ends it
	}
	return c.conn.Close()
}
