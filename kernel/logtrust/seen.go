package logtrust

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/eventlog/store"
)

// setNewest stores the newest event of the log at path in the entry.
func (e *entry) setNewest(n store.Newest, path string) {
	e.Size, e.Leaf, e.Context = n.Seq, hex.EncodeToString(n.Leaf[:]), contextOf(path)
}

// contextOf returns the name of the context that has the log at path in its folder. It returns "" if the folder is not
// a context's folder.
func contextOf(path string) string {
	dir := filepath.Dir(path)
	if filepath.Base(filepath.Dir(dir)) != "contexts" {
		return ""
	}
	return filepath.Base(dir)
}

// newest returns the newest event of a log.
func newest(ctx context.Context, r *store.Reader) (n store.Newest, err error) {
	e, ok, err := r.Last(ctx, event.Query{})
	if err != nil || !ok {
		return n, err
	}
	return store.Newest{Seq: int64(e.Seq), Leaf: e.LeafHash, Context: e.Context}, nil
}

// Seen stores the newest event of the log at path, which was just closed. From then on, an older copy of the log is
// refused. If Seen cannot store the event, such a copy is not noticed.
func (s Store) Seen(path string, n store.Newest) {
	if s.Dir == "" {
		return
	}
	if e, ok := s.readEntry(path); ok && n.Seq > e.Size {
		e.setNewest(n, e.Path)
		_ = s.writeEntry(e) // after an error, an older copy of the log will not be noticed
	}
}

// Compare returns an *UnknownError if the log is older than it was seen here, or belongs to another context. See
// compareNewest.
func (s Store) Compare(ctx context.Context, r *store.Reader) error {
	if s.Dir == "" {
		return nil
	}
	n, err := newest(ctx, r)
	if err != nil {
		return err
	}
	return s.compareNewest(ctx, r, n)
}

// compareNewest returns an *UnknownError if the log lacks an event that was seen here, or has another event with the
// same number. It also returns one if the log belongs to another context than its folder. At a new path, compareNewest
// uses all entries with the log's name, because the log may be a copy or may have moved. A moved log is accepted.
func (s Store) compareNewest(ctx context.Context, r *store.Reader, n store.Newest) error {
	if n.Seq == 0 {
		return nil // a new log
	}
	own, known := s.readEntry(r.Path())
	name := contextOf(real(r.Path()))
	if known && own.isAt(n) && (n.Context == name || name == "") {
		return nil // the usual case, in which the log need not be read
	}
	origin, err := r.Origin(ctx)
	if err != nil {
		return err
	}
	known = known && own.Origin == origin
	refuse := func(reason Reason, format string, args ...any) error {
		log, err := Describe(ctx, r)
		return errors.Join(err, &UnknownError{log, reason, fmt.Sprintf(format, args...)})
	}
	if name != "" && n.Context != name && !(known && own.Context == name) {
		return refuse(otherContext,
			"its newest event is of the context %q, and it lies in the folder of %q; if the folder was renamed, trust it",
			n.Context, name)
	}
	seen := []entry{own}
	if !known {
		seen, _ = s.entries() // without a readable list, no event was seen
	}
	for _, e := range seen {
		if e.Origin != origin || e.isAt(n) {
			continue
		}
		there, err := e.isIn(ctx, r)
		if err != nil {
			return err
		}
		if !there && !namesLater(r.Path(), n.Seq) {
			return refuse(rolledBack,
				"at %s it had %d events, here are %d, or others; an input that was called since would be called again", e.Path,
				e.Size, n.Seq)
		}
	}
	return nil
}

// isAt reports whether n is the newest event that was seen.
func (e entry) isAt(n store.Newest) bool {
	return e.Size == n.Seq && e.Leaf == hex.EncodeToString(n.Leaf[:])
}

// isIn reports whether the log contains the newest event that was seen. It reads the log's newest event itself, because
// another process may have appended and closed the log since the caller read it.
func (e entry) isIn(ctx context.Context, r *store.Reader) (bool, error) {
	if e.Size == 0 {
		return true, nil
	}
	now, err := newest(ctx, r)
	if err != nil || e.Size > now.Seq {
		return false, err
	}
	list, err := r.Hashes(ctx).Stored(0, e.Size-1, 1)
	return err == nil && hex.EncodeToString(list[0][:]) == e.Leaf, err
}

// namesLater reports whether the .intents file next to the log names a later call than the log. In that case the file
// prevents another call for the lost inputs, and Perlica reports the loss.
func namesLater(path string, size int64) bool {
	c, err := intents.Read(path)
	return err == nil && len(c.Lines) > 0 && c.Lines[len(c.Lines)-1].Seq > size
}
