package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
)

// cursor records the last event that a client has seen of each log. Its keys identify the logs by a hash of their
// place, which is the project and the context. Each mark also has a hash of the log's origin, which is the unique name
// of the log. A log with another origin has been replaced.
type cursor map[string]mark

// mark records the last event that a client has seen of one log.
type mark struct {
	// origin is the hash of the log's origin. It is empty if the log had no event.
	origin string
	seq    event.Seq
}

// beginning is the text of the cursor that lies before the first event of every log.
const beginning = "0"

// short shortens a name for a cursor. A collision between two names of one user is practically
// impossible.
func short(name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:6])
}

func (p place) short() string { return short(p.Project + "\x00" + p.Context) }

// parseCursor reads the text that String wrote.
func parseCursor(text string) (cursor, error) {
	c := cursor{}
	if text == beginning {
		return c, nil
	}
	for part := range strings.SplitSeq(text, "-") {
		f := strings.Split(part, ".")
		if len(f) != 3 || len(f[0]) != 12 || len(f[1]) != 12 && f[1] != "" {
			return nil, badRequest.problem(badCursor)
		}
		seq, err := strconv.ParseInt(f[2], 36, 64)
		if err != nil || seq < 0 {
			return nil, badRequest.problem(badCursor)
		}
		c[f[0]] = mark{f[1], event.Seq(seq)}
	}
	return c, nil
}

func (c cursor) String() string {
	if len(c) == 0 {
		return beginning
	}
	var parts []string
	for _, at := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, c.part(at))
	}
	return strings.Join(parts, "-")
}

// part returns the part of the cursor's text that belongs to one log. The parameter "at" is the log's key in the
// cursor.
func (c cursor) part(at string) string {
	return at + "." + c[at].origin + "." + strconv.FormatInt(int64(c[at].seq), 36)
}

// around splits the cursor's text at the event number of one log. It returns the text before and after the number. The
// parameter "at" is the log's key in the cursor.
func (c cursor) around(at string) (ahead, behind string) {
	for _, other := range slices.Sorted(maps.Keys(c)) {
		switch {
		case other < at:
			ahead += c.part(other) + "-"
		case other > at:
			behind += "-" + c.part(other)
		}
	}
	return ahead + at + "." + c[at].origin + ".", behind
}

// reach returns the mark after which the client continues in a log. It returns an error if the log was replaced, or if
// the cursor lies after the log's end.
func (c cursor) reach(ctx context.Context, l *eventLog, log logReader) (mark, error) {
	origin, err := log.Origin(ctx)
	if err != nil {
		return mark{}, err
	}
	now := mark{origin: short(origin)}
	was, ok := c[l.short()]
	switch {
	case ok && was.origin != "" && was.origin != now.origin:
		p := logReplaced.problem(startAgain)
		p.Project, p.Context = l.Project, l.Context
		return now, p
	case ok:
		now.seq = was.seq
	}
	last, _, err := log.Last(ctx, event.Query{})
	if err == nil && now.seq > last.Seq {
		p := logReplaced.problem(cursorBeyond.With(last.Seq, now.seq))
		p.Project, p.Context = l.Project, l.Context
		return now, p
	}
	return now, err
}
