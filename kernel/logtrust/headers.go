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

// settled is the age of a file's last change from which on a later change has another time. It is longer than a
// tick of any file system's clock.
const settled = 100 * time.Millisecond

// recentEvents is the number of newest events that Headers checks after each change of a log. A larger log would
// hold up each command by 3 ms for 1,000 events.
const recentEvents = 20_000

// Headers is verify.Headers for a log that a command shows. It checks nothing if the log's files have not changed
// since they were last found sound here: only the system sets the time of a file's last change. After a change it
// checks the newest recentEvents and all events that were never found sound here. Then only 'perlica log
// verify' finds a change of an older header.
func (s Store) Headers(ctx context.Context, r *store.Reader) error {
	newest, _, err := r.Last(ctx, event.Query{})
	if err != nil {
		return verify.Headers(ctx, r, 0) // it names the damage
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
		_ = replace(kept, fmt.Appendf(nil, "%d\n%s", size, state)) // otherwise the next reader checks again
	}
	return nil
}

// readSound returns the state in which a log was last found sound, and the number of its events then.
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

// stateOf returns a text that differs after each change of the log's files, and the time of the last change. The
// text is empty if the system does not tell.
func stateOf(path string) (state string, last time.Time) {
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if name != path && (os.IsNotExist(err) || err == nil && info.Size() == 0) {
			continue // an empty write-ahead log says nothing
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
