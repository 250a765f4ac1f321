package eventlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
)

// Removal is what Prune did.
type Removal struct {
	event.Pruning       // what was asked; Events and Bytes are what was removed now
	Resumed       bool  // an earlier log.pruned said it already; it was not finished
	Before, After int64 // bytes of the log's files
}

// Prune empties the payloads that p covers and has the file shrink, so that none of their
// bytes is left in it. Headers and hashes stay, and with them the tree, its checkpoints and
// proofs. An event, log.pruned, says so before anything is removed. Runs without an outcome
// are passed over; a run that p names must have one, else it is ErrUnfinished.
//
// If it fails or the process dies, nothing but covered payloads is lost; the same call again
// goes on where it ended. It fails with ErrBusy if another process uses the log all the time,
// and with ErrFull if there is no room for the copy that shrinking takes; both leave the log
// usable, other errors are final as those of Append. Other processes that write wait in the meantime,
// as long as they do: see that no call is under way.
//
// Views are files of their own: anyone who keeps some removes them afterwards (view.Remove).
func (l *Log) Prune(ctx context.Context, p event.Pruning) (done Removal, err error) {
	if err := l.Sync(); err != nil { // what is recorded is there to be removed
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
		// If we die behind this, what is covered and still there is removed by the next call.
		r := l.await(entry{events: []event.Event{event.NewFact(event.LogPruned, "user", event.Refs{}, p)}, checkpoint: true})
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
		// If we die before this, the next call rewrites the file once more.
		_, err = l.Append(context.WithoutCancel(ctx), event.NewFact(event.LogRewritten, "perlica", event.Refs{}, struct{}{}))
	}
	return done, err
}

// roomFor returns ErrFull unless a log of which size bytes remain can be rewritten: SQLite
// makes a copy in the folder for temporary files and writes that back through the write-ahead
// log. The two may lie on one disk.
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
