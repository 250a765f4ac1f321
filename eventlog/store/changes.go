package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
)

// These are the intervals between two looks at a log. A look asks SQLite whether the write-ahead log has grown. It
// reads only a few bytes of shared memory; BenchmarkChanges measures it. The interval is lookEvery until the time
// lookAlert has passed since a change. Later it is lookIdle. If the system reports changes of files, it is the longer
// lookRest, because each report also causes a look. Changes still looks from time to time, because some file systems
// never report.
const (
	lookEvery = 50 * time.Millisecond
	lookIdle  = 200 * time.Millisecond
	lookRest  = 30 * time.Second
	lookAlert = 2 * time.Second
)

// Changes notices when any process appends to a log. Only one goroutine may use it.
type Changes struct {
	conn    *sql.Conn
	stmt    *sql.Stmt
	folders *folders // nil if the system reports no changes
	seen    int64
	last    time.Time // the time of the last look
	// came is the time of the last change. At first it is the time at which the watch began.
	came time.Time
}

// Changes starts to watch the log. The first Wait reports commits after this call. The parameter "others" has further
// folders to watch. A change in one of them ends Wait, and Wait returns false. The caller must Close the result before
// it closes the Reader.
func (r *Reader) Changes(ctx context.Context, others ...string) (*Changes, error) {
	// Each connection has its own data version, so use one connection for all looks.
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return nil, disk.Explain(err)
	}
	// A commit may have started before the system was asked to report changes. The log therefore counts as changed
	// now.
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

// Quiet reports whether nothing has happened for lookAlert, and the system will report the next change in a watched
// folder. The caller then need not look itself.
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

// Wait returns true when a commit has happened since the last Wait. It returns false after the duration in the
// parameter "most"; zero means no limit. It also returns false if the system reports a change without a commit after a
// quiet time. It returns an error when ctx ends.
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
		_ = c.stmt.Close() // Ignore the error, because closing the connection closes the statement.
	}
	return c.conn.Close()
}
