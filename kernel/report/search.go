package report

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/view"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
)

// Search is the search index of the words on the log. It follows from the facts alone. If its file is deleted, the next
// OpenSearch builds it again.
type Search struct {
	view *view.View
	log  event.Reader
}

// OpenSearch opens the index in the file at path and adds the new events. The first time, these are all events. If
// "progress" is not nil, OpenSearch calls it with the number of each added event. The caller closes the Search before
// the log.
func OpenSearch(ctx context.Context, log event.Reader, path string, progress func(event.Seq)) (*Search, error) {
	v, err := view.Open(ctx, log, path, nil, view.Projection{
		Name: "search", Version: 3, Schema: searchSchema, Types: event.Known().For(event.Search),
		Apply: (&indexer{progress: progress}).applyFact,
	})
	if err != nil {
		return nil, err
	}
	return &Search{view: v, log: log}, nil
}

// Close closes the index's file.
func (s *Search) Close() error { return s.view.Close() }

// Wanted describes a search. A zero field sets no condition.
type Wanted struct {
	// Phrases must all occur in the text. The words of a phrase must occur in the same order.
	Phrases  []string
	Kinds    []Kind // the text has one of these kinds
	Provider string
	Session  event.SessionID
	Since    time.Time // the earliest time of the event
	Before   time.Time // the event is older than this time
	// Width is the width of an excerpt in characters. 0 means 160.
	Width int
}

// Hit is a text that was found.
type Hit struct {
	// Event is the event with the text.
	Event event.Event
	Kind  Kind
	// Provider is the provider of the session, or "".
	Provider string
	Excerpt  []Piece
}

// ErrNoWords means that a phrase has no letter and no digit.
var ErrNoWords = message.New("report.no-words", "the search text has no word to search for")

// Find yields the texts that meet all conditions of w, newest first. Case and accents do not matter. All characters
// except letters and digits only separate words. Find skips a text if the payload was pruned. If a phrase has no words,
// or the search has no phrases, the error wraps ErrNoWords.
func (s *Search) Find(ctx context.Context, w Wanted) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		if err := s.findHits(ctx, w, func(h Hit) bool { return yield(h, nil) }); err != nil {
			yield(Hit{}, err)
		}
	}
}

// findQuery uses CROSS JOIN, so that SQLite reads the words first. They already have the order of their numbers, so no
// sorting is necessary.
const findQuery = `
	SELECT texts.id
	FROM words
	CROSS JOIN texts ON texts.id = words.rowid
	WHERE words MATCH ? AND words.rowid >= ? AND words.rowid < ? AND texts.ts >= ? AND texts.ts < ?
	ORDER BY words.rowid DESC
	LIMIT ?`

func (s *Search) findHits(ctx context.Context, w Wanted, yield func(Hit) bool) error {
	expr, err := w.expression()
	if err != nil {
		return err
	}
	since, before := w.times()
	low, high, err := s.stretch(ctx, since, before)
	if err != nil {
		return err
	}
	providers := providers{}
	for {
		var found []int64
		if err := s.view.DB().SelectContext(ctx, &found, findQuery, expr, low, high, since, before, chunk); err != nil {
			return fmt.Errorf("search: %w", err)
		}
		for _, id := range found {
			h, ok, err := s.readHit(ctx, id, w)
			if err == nil && ok {
				h.Provider, err = providers.of(ctx, s.log, h.Event.Session)
			}
			if err != nil {
				return err
			}
			if ok && !yield(h) {
				return nil
			}
			high = id
		}
		if len(found) < chunk {
			return nil
		}
	}
}

// providers caches the providers of sessions.
type providers map[event.SessionID]string

func (p providers) of(ctx context.Context, log event.Reader, id event.SessionID) (string, error) {
	name, known := p[id]
	if known || id == "" {
		return name, nil
	}
	q := event.Query{Session: id, Types: []event.Type{event.SessionCreated, event.MessageReceived}, Newest: true}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return "", err
		}
		// SessionCreated is enough, because both payloads have the field Provider.
		if f, err := fact.Decode[fact.SessionCreated](e); err == nil && f.Provider != "" {
			name = f.Provider
			break
		}
	}
	p[id] = name
	return name, nil
}

// chunk is the number of texts per query. Between two queries another search can update the index, even if the caller
// waits at a pager.
const chunk = 128

// expression returns the search as an FTS5 expression.
func (w Wanted) expression() (string, error) {
	var terms []string
	for _, p := range w.Phrases {
		m := match(p)
		if m == "" {
			return "", fmt.Errorf("%w: %q", ErrNoWords, p)
		}
		terms = append(terms, m)
	}
	if len(terms) == 0 {
		return "", ErrNoWords
	}
	tag := func(words ...string) { terms = append(terms, `(tags : ("`+strings.Join(words, `" OR "`)+`"))`) }
	if len(w.Kinds) > 0 {
		var kinds []string
		for _, k := range w.Kinds {
			kinds = append(kinds, kindTag(k))
		}
		tag(kinds...)
	}
	if w.Provider != "" {
		tag(providerTag(w.Provider))
	}
	if w.Session != "" {
		tag(sessionTag(w.Session))
	}
	return strings.Join(terms, " AND "), nil
}

func (w Wanted) times() (since, before int64) {
	since, before = math.MinInt64, math.MaxInt64
	if !w.Since.IsZero() {
		since = w.Since.UnixNano()
	}
	if !w.Before.IsZero() {
		before = w.Before.UnixNano()
	}
	return since, before
}

// stretch returns the range of the texts that may belong to a period of time: from the number "low" to the number
// before "high". Each indexed text has a number.
func (s *Search) stretch(ctx context.Context, since, before int64) (low, high int64, err error) {
	var first, last *int64
	err = s.view.DB().QueryRowxContext(ctx, `
		SELECT min(n), max(n)
		FROM stretches
		WHERE newest >= ? AND oldest < ?`, since, before).Scan(&first, &last)
	if err != nil {
		return 0, 0, fmt.Errorf("search: %w", err)
	}
	if first == nil {
		return 0, 0, nil
	}
	return *first * stretch, (*last + 1) * stretch, nil
}

// readHit reads a found text from the log. ok is false if the text no longer exists.
func (s *Search) readHit(ctx context.Context, id int64, w Wanted) (h Hit, ok bool, err error) {
	seq := event.Seq(id / slots)
	e, ok, err := s.log.Last(ctx, event.Query{After: seq - 1, Until: seq})
	if err != nil || !ok {
		return h, false, err
	}
	var q asked
	if e.Interaction != "" && e.Type != event.InteractionRequested {
		if q, err = s.asked(ctx, e.Interaction); err != nil {
			return h, false, err
		}
	}
	width := w.Width
	if width <= 0 {
		width = 160
	}
	if damage := e.Damage(); damage != nil {
		return Hit{Event: e, Kind: Kinds()[min(id%slots, int64(len(Kinds())-1))],
				Excerpt: []Piece{{Text: damage.Row().Text}}},
			true, nil
	}
	for _, p := range passages(e, q) {
		if textID(seq, p.kind) == id {
			return Hit{Event: e, Kind: p.kind, Excerpt: excerpt(p.text, w.Phrases, width)}, true, nil
		}
	}
	return h, false, nil
}

func (s *Search) asked(ctx context.Context, id event.InteractionID) (asked, error) {
	e, ok, err := s.log.Last(ctx, event.Query{Interaction: id, Types: []event.Type{event.InteractionRequested}})
	if err != nil || !ok {
		return asked{}, err
	}
	p, err := fact.Decode[interaction.Question](e)
	if err != nil {
		return asked{}, nil // the payload is missing, or comes from a later version
	}
	return askedBy(p), nil
}

// FindSession works like the function FindSession, but reads the index instead of the log.
func (s *Search) FindSession(ctx context.Context, ref string) (event.SessionID, error) {
	var ids []event.SessionID
	for _, where := range []string{
		`id = ?1`,
		`name = ?1`,
		`length(?1) >= ?2 AND (substr(id, 1, length(?1)) = ?1 OR substr(id, -length(?1)) = ?1)`,
	} {
		err := s.view.DB().SelectContext(ctx, &ids, `SELECT id FROM sessions WHERE `+where, ref, minShort)
		if err != nil {
			return "", fmt.Errorf("search: %w", err)
		}
		if ref == "" || len(ids) == 0 {
			continue
		}
		return matches[event.SessionID]{ids}.single(ref)
	}
	return "", fmt.Errorf("%w: %s", ErrNotFound, ref)
}
