package logtrust

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// settled is the minimum age of a file's last change before a check's result is stored for the file. A younger file
// could change once more within the same tick of the clock, and its time would stay the same.
const settled = 100 * time.Millisecond

// recentEvents is the number of newest events that Headers checks after each change of a log. Checking takes 3 ms for
// 1,000 events, so a higher number would delay each command.
const recentEvents = 20_000

// Headers checks the headers of a log that a command shows, as verify.Headers does. It checks nothing if the log's
// files have not changed since the last successful check. Only the system sets the time of a file's last change, so the
// time is reliable. After a change it checks the newest recentEvents and all events that were never checked. So only
// 'perlica log verify' finds a later change of an old header.
func (s Store) Headers(ctx context.Context, r *store.Reader) error {
	newest, _, err := r.Last(ctx, event.Query{})
	if err != nil {
		return verify.Headers(ctx, r, 0) // verify.Headers reports the damage
	}
	size := int64(newest.Seq)
	now := time.Now()
	state, last := stateOf(r.Path())
	if s.Dir == "" || state == "" {
		return verify.Headers(ctx, r, 0)
	}
	kept := s.file(real(r.Path())) + ".sound"
	was, sound := readSound(kept)
	settledNow := now.Sub(last) >= settled
	if settledNow && was == state {
		return nil
	}
	if err := verify.Headers(ctx, r, event.Seq(max(0, min(sound, size-recentEvents)))); err != nil {
		return err
	}
	if after, _ := stateOf(r.Path()); settledNow && after == state {
		_ = replace(kept, fmt.Appendf(nil, "%d\n%s", size, state)) // after an error the next reader checks again
	}
	return nil
}

// readSound returns the state of the log's files at the last successful check, and the number of events at that time.
func readSound(kept string) (state string, size int64) {
	b, err := os.ReadFile(kept)
	if err != nil {
		return "", 0
	}
	first, state, _ := strings.Cut(string(b), "\n")
	size, err = strconv.ParseInt(first, 10, 64)
	if err != nil {
		return "", 0
	}
	return state, size
}

// stateOf returns a text that differs after each change of the log's files, and the time of the last change. If the
// system does not report the times of changes, the text is empty.
func stateOf(path string) (state string, last time.Time) {
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if name != path && (os.IsNotExist(err) || err == nil && info.Size() == 0) {
			continue // an empty write-ahead log does not matter
		}
		if err != nil {
			return "", last
		}
		id, err := identity(name)
		at := changed(info)
		if err != nil || id == "" || at.IsZero() {
			return "", last
		}
		if at.After(last) {
			last = at
		}
		state += fmt.Sprintf("%s %d %d\n", id, info.Size(), at.UnixNano())
	}
	return state, last
}
