package hub

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/view"
)

// ErrEdited says that an event of a copy does not match its hash.
var ErrEdited = errors.New("hub: an event is not what its hash says: somebody edited the copy")

// CopyReader reads the events of a copy as the hub has them now. It is for display and not for evidence. It never
// returns an event with a wrong hash. Only a Keeper decides whether the copy equals the worker's log.
type CopyReader struct {
	Worker string // the owner of the log

	hub    *Hub
	origin string
	views  string
	gone   int64 // number of removed payloads
}

// NewCopyReader returns a reader of a worker's copy. It holds no resources.
func NewCopyReader(h *Hub, worker string) *CopyReader { return &CopyReader{Worker: worker, hub: h} }

// CopyReaders returns readers of all copies, by the workers' names. It omits a copy if its first event belongs to
// another log. views is the folder of this machine's views of copies.
func CopyReaders(ctx context.Context, h *Hub, views string) (list []*CopyReader, err error) {
	all, err := ListCopies(ctx, h)
	if err != nil {
		return nil, err
	}
	gone := map[string]int64{}
	err = h.Do(ctx, func(ctx context.Context, c *Conn) error {
		var worker string
		var n int64
		rows, err := c.query(ctx, `SELECT worker, count(*) FROM perlica.events WHERE payload IS NULL GROUP BY worker`)
		if err == nil {
			err = rows.each([]any{&worker, &n}, func() error { gone[worker] = n; return nil })
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		r := &CopyReader{Worker: c.Worker, hub: h, origin: c.Origin, views: views, gone: gone[c.Worker]}
		first, ok, err := r.Last(ctx, event.Query{Until: 1})
		if err != nil && !errors.Is(err, ErrEdited) {
			return nil, err
		}
		if !ok || store.OriginOf(first.ID) == c.Origin { // if the first event was edited, a later read finds out
			list = append(list, r)
		}
	}
	return list, nil
}

// Origin returns the name of the copied log.
func (r *CopyReader) Origin(context.Context) (string, error) { return r.origin, nil }

// mostOpen limits the runs of a worker that may be open at once.
const mostOpen = 1000

// OpenRuns returns the runs of the worker's inputs without a reported outcome, oldest first. It
// finds only runs that the copy already contains.
func (r *CopyReader) OpenRuns(ctx context.Context) (runs []event.RunID, err error) {
	var inputs []event.InputID
	err = r.hub.Do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT input
			FROM perlica.claims
			WHERE worker = $1 AND NOT reported
			LIMIT $2`, r.Worker, mostOpen)
		if err == nil {
			inputs, err = collect[event.InputID](rows)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	received := []event.Event{}
	for _, id := range inputs {
		e, ok, err := r.Last(ctx, event.Query{Input: id, Types: []event.Type{event.MessageReceived}})
		if err != nil {
			return nil, err
		}
		if ok {
			received = append(received, e)
		}
	}
	sort.Slice(received, func(i, j int) bool { return received[i].Seq < received[j].Seq })
	for _, e := range received {
		runs = append(runs, e.Run)
	}
	return runs, nil
}

// View returns the path of a view of the copy and makes its folder. It deletes an older view if
// payloads were removed from the copy since, because the view may contain them.
func (r *CopyReader) View(name string) (string, error) {
	if err := os.MkdirAll(r.views, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(r.views, r.Worker+"."+name)
	mark := path + ".gone"
	now := strconv.FormatInt(r.gone, 10)
	if before, err := os.ReadFile(mark); err == nil && string(before) == now {
		return path, nil
	}
	if err := view.Remove(path); err != nil {
		return "", err
	}
	return path, os.WriteFile(mark, []byte(now), 0o600)
}

// Head returns the number of the copy's last event, or 0.
func (r *CopyReader) Head(ctx context.Context) (seq event.Seq, err error) {
	err = r.hub.Carry(ctx, 0, func(ctx context.Context, c *Conn) error {
		return c.QueryRow(ctx, `
			SELECT coalesce(max(seq), 0)
			FROM perlica.events
			WHERE worker = $1`, r.Worker).Scan(&seq)
	})
	return seq, err
}

// page is the number of events that are read at once. Between two pages other callers can use the
// hub.
const page = 256

// pagePatience limits the time of a page, because the server may scan all events of a long copy for
// it.
const pagePatience = 5 * time.Minute

// Events yields the events that the query selects. The server filters by the headers and sends only
// the possible events. The error wraps ErrEdited if an event has a wrong hash.
func (r *CopyReader) Events(ctx context.Context, q event.Query) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		n, rest := 0, q
		for {
			list, more, err := r.page(ctx, &rest)
			for _, e := range list {
				if q.Selects(&e) {
					if !yield(e, nil) {
						return
					}
					if n++; n == q.Limit {
						return
					}
				}
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// Last returns the newest event that the query selects. ok is false if it selects none.
func (r *CopyReader) Last(ctx context.Context, q event.Query) (e event.Event, ok bool, err error) {
	q.Newest, q.Limit = true, 1
	for e, err := range r.Events(ctx, q) {
		return e, err == nil, err
	}
	return e, false, nil
}

// page reads the next events and advances the query. If it returns an error, list holds the events before the fault.
func (r *CopyReader) page(ctx context.Context, q *event.Query) (list []event.Event, more bool, err error) {
	order, limit := "ASC", page
	if q.Newest {
		order = "DESC"
	}
	if q.Limit > 0 && q.Since.IsZero() && q.Before.IsZero() { // the server checks all conditions except times
		limit = min(limit, q.Limit)
	}
	until := int64(q.Until)
	if until == 0 {
		until = 1<<63 - 1
	}
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	n := 0
	err = r.hub.Do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT seq, leaf, header, payload
			FROM perlica.events
			WHERE worker = $1 AND seq > $2 AND seq <= $3
			  AND NOT EXISTS (SELECT FROM unnest($4::bytea[]) f WHERE position(f IN header) = 0)
			  AND (cardinality($5::bytea[]) = 0 OR EXISTS (SELECT FROM unnest($5::bytea[]) f WHERE position(f IN header) > 0))
			  AND (payload IS NULL OR NOT $6)
			ORDER BY seq `+order+`
			LIMIT $7`, r.Worker, int64(q.After), until, fields(q), types(q), q.Gone, limit)
		if err != nil {
			return err
		}
		var seq int64
		var leaf, header, payload []byte
		return rows.each([]any{&seq, &leaf, &header, &payload}, func() error {
			text := slices.Concat(leaf, header, payload)
			row := row{seq: seq, leaf: len(leaf), header: len(leaf) + len(header), payload: len(text),
				gone: payload == nil}
			e, err := row.event(text, 0)
			if err != nil {
				return fmt.Errorf("%w: event %d of %s: %w", ErrEdited, row.seq, r.Worker, err)
			}
			if e.Leaf() != e.LeafHash || e.Withheld == "" && !e.PayloadMatches() {
				return fmt.Errorf("%w: event %d of %s", ErrEdited, e.Seq, r.Worker)
			}
			n++
			list = append(list, e)
			return nil
		})
	})
	if n > 0 {
		if last := list[n-1].Seq; q.Newest {
			q.Until = last - 1
		} else {
			q.After = last
		}
	}
	return list, n == limit && (!q.Newest || q.Until > 0), err
}

// field returns a text as a field of a header.
func field(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}

// fields returns the header fields that the query requires.
func fields(q *event.Query) [][]byte {
	list := [][]byte{}
	for _, s := range []string{q.ID, string(q.Class), string(q.Session), string(q.Run), string(q.Interaction),
		string(q.Input)} {
		if s != "" {
			list = append(list, field(s))
		}
	}
	return list
}

// types returns the header fields for the query's types. An event needs one of them.
func types(q *event.Query) [][]byte {
	list := [][]byte{}
	for _, t := range q.Types {
		list = append(list, field(string(t)))
	}
	return list
}
