package eventlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
)

// Removal is the result of Prune.
type Removal struct {
	// Pruning is the request. Its Events and Bytes count the payloads that this call removed.
	event.Pruning
	// Resumed means that an earlier log.pruned announced the same removal, and that removal did not finish.
	Resumed       bool
	Before, After int64 // bytes of the log's files
}

// Prune removes the payloads that p covers, and rewrites the file without their bytes. Headers and hashes stay, and
// so do the tree, its checkpoints and proofs. The event log.pruned is on disk before the first removal. Prune keeps
// the payloads of runs without an outcome. If p names such a run, the error is ErrUnfinished.
//
// If Prune fails or the process dies, only payloads that p covers can be lost. The same call again continues the
// work. The error is ErrBusy if another process uses the log all the time. The error is ErrFull if the disk has no
// space for the copy that rewriting needs. The log stays usable after these two errors. Any other error ends the log
// until Reopen. Other processes cannot write during Prune, so no call should be in progress.
//
// Views are separate files and may still contain the payloads. The owner of a view removes it afterwards
// (view.Remove).
func (l *Log) Prune(ctx context.Context, p event.Pruning) (done Removal, err error) {
	if err := l.Sync(); err != nil { // The events must be on disk before their payloads can be removed.
		return done, err
	}
	s, err := l.Selection(ctx, p)
	if err != nil {
		return done, err
	}
	p.Events, p.Bytes = s.Events, s.Bytes
	done = Removal{Pruning: p, Before: l.Size()}
	done.After = done.Before
	said, err := l.Announced(ctx, p, s)
	if err != nil || s.Events == 0 && !said {
		return done, err
	}
	done.Resumed = said
	if err := roomFor(done.Before-s.Bytes, filepath.Dir(l.Path()), disk.FreeSpace); err != nil {
		return done, err
	}
	if !said {
		// If this process dies after this commit, the next call removes the payloads that are left.
		r := l.awaitCommit(entry{events: []event.Event{event.NewFact(event.LogPruned, "user", event.Refs{}, p)},
			checkpoint: true})
		if r.err != nil {
			return done, r.err
		}
	}
	result := make(chan error, 1)
	select {
	case l.prune <- pruneJob{ctx, p, s, result}:
		err = <-result
	case <-l.done:
		err = disk.ErrClosed
	}
	done.After = l.Size()
	if err == nil {
		// If this process dies before this commit, the next call rewrites the file again.
		_, err = l.Append(context.WithoutCancel(ctx), event.NewFact(event.LogRewritten, "perlica", event.Refs{}, struct{}{}))
	}
	return done, err
}

// roomFor returns ErrFull if the disk has no space for rewriting a log. size is the log's size in bytes after the
// removal. SQLite makes a copy in the folder for temporary files and writes that copy back through the write-ahead
// log. Both may be on one disk.
func roomFor(size int64, dir string, free func(string) (uint64, error)) error {
	const margin = 1 << 20
	for _, need := range []struct {
		dir   string
		bytes int64
	}{{dir, 2*max(size, 0) + margin}, {os.TempDir(), max(size, 0) + margin}} {
		there, err := free(need.dir)
		if err == nil && there < uint64(need.bytes) {
			return fmt.Errorf("eventlog: prune: %w: shrinking the log takes %d bytes in %s, and %d are free",
				disk.ErrFull, need.bytes, need.dir, there)
		}
	}
	return nil
}
