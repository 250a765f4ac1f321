package verify_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/export"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
	"github.com/perlica/perlica/eventlog/verify"
)

// pieces are the parts of a log from which the test makes each source. A tampering changes the pieces before the test
// makes the sources.
type pieces struct {
	path   string // path of the original log
	origin string
	events []event.Event
	heads  []evidence.Checkpoint // signed, by size
	absent []tree.Subtree
	sql    string // SQL that is executed only on the log's file
	bare   bool   // without an anchor
}

// sources make a source from pieces. A new kind of source needs one line here.
var sources = map[string]func(t *testing.T, p pieces) func(verify.Options) (verify.Report, error){
	"a log's file":             asFile,
	"an export":                asExport,
	"tables of another schema": asTables,
	"a copy on a hub":          asCopy,
}

// size is the number of events of the log. at is the event with which the tamperings begin.
const size, at = 600, 150

// newPieces makes a log with a checkpoint after every hundred events.
func newPieces(t *testing.T) (pieces, []note.Verifier) {
	t.Helper()
	dir := t.TempDir()
	keys, err := evidence.MakeKeys(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	p := pieces{path: filepath.Join(dir, "eventlog.db")}
	l, err := eventlog.Open(t.Context(), p.path, eventlog.Options{Context: "default", Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	for i := range size {
		e := event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent",
			Refs: event.Refs{Run: "r", Session: "s"}, Payload: fmt.Appendf(nil, `{"line":%d}`, i)}
		switch {
		case i == 3:
			e = event.NewFact(event.Requested, "perlica", event.Refs{Run: "r", Session: "s", Input: "i"}, map[string]int{"n": i})
		case i == 400:
			e = event.NewFact(event.LogPruned, "user", event.Refs{}, event.Pruning{Until: 200, By: "alice"})
		case i%7 == 0:
			e = event.NewFact(event.ToolBlocked, "perlica", event.Refs{Run: "r", Session: "s"}, map[string]int{"n": i})
		}
		if err := l.Record(e); err != nil {
			t.Fatal(err)
		}
		if (i+1)%100 == 0 {
			c, err := l.Checkpoint(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p.heads, p.origin = append(p.heads, c), c.Origin
		}
	}
	for e, err := range l.Events(t.Context(), event.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		p.events = append(p.events, e)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return p, keys.Verifiers(p.origin)
}

// copyPieces returns pieces that can be changed.
func (p pieces) copyPieces() pieces {
	p.events, p.heads = slices.Clone(p.events), slices.Clone(p.heads)
	return p
}

// root returns the root of the tree of all leaves and subtrees.
func (p pieces) root() tlog.Hash {
	var r tree.Range
	absent := p.absent
	for i := range p.events {
		for len(absent) > 0 && absent[0].Seq < int64(p.events[i].Seq) {
			r.AddSubtree(absent[0].Level, absent[0].Hash)
			absent = absent[1:]
		}
		r.Add(p.events[i].LeafHash)
	}
	return r.Root()
}

// renumber gives each event the number of its position.
func (p *pieces) renumber() {
	for i := range p.events {
		p.events[i].Seq = event.Seq(i + 1)
	}
}

// rewriteEvent changes an event and its leaf.
func (p *pieces) rewriteEvent() {
	e := &p.events[at-1]
	e.Payload = []byte(`{"never":"said"}`)
	e.PayloadLen, e.PayloadSHA256 = int64(len(e.Payload)), sha256.Sum256(e.Payload)
	e.LeafHash = e.Leaf()
}

// removePayload removes a payload.
func (p *pieces) removePayload(i int, why string) {
	p.events[i].Payload, p.events[i].Withheld = nil, why
}

// appendArgs returns the values of an event's row. It adds the event's names to the file.
func appendArgs(tx *sqlx.Tx, names *store.Names, e *event.Event) []any {
	_ = names.Add(e, func(name string) (id int64, err error) {
		tx.MustExec(`INSERT OR IGNORE INTO names (name) VALUES (?)`, name)
		return id, tx.Get(&id, store.FindName, name)
	})
	return names.AppendArgs(nil, e)
}

func asFile(t *testing.T, p pieces) func(verify.Options) (verify.Report, error) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	for from, to := range map[string]string{p.path: path, anchor.Path(p.path): anchor.Path(path)} {
		if b, err := os.ReadFile(from); err != nil {
			t.Fatal(err)
		} else if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if p.bare {
		if err := os.Remove(anchor.Path(path)); err != nil {
			t.Fatal(err)
		}
	}
	db := sqlx.MustOpen("sqlite", store.DSN(path))
	defer db.Close()
	tx := db.MustBegin()
	tx.MustExec(
		`DROP TRIGGER events_are_not_deleted; DROP TRIGGER checkpoints_are_not_deleted;
		DELETE FROM entries; DELETE FROM checkpoints`)
	var names store.Names
	for i := range p.events {
		args := appendArgs(tx, &names, &p.events[i])
		if why := p.events[i].Withheld; why != "" {
			args[len(args)-1] = nil
			if why != event.Missing {
				tx.MustExec(`INSERT INTO withheld (seq, why) VALUES (?, ?)`, int64(p.events[i].Seq), why)
			}
		}
		tx.MustExec(store.InsertOne, args...)
	}
	for _, c := range p.heads {
		tx.MustExec(`INSERT INTO checkpoints (size, note) VALUES (?, ?)`, c.Size, c.Note)
	}
	for _, a := range p.absent {
		tx.MustExec(`INSERT INTO absent (seq, level, hash) VALUES (?, ?, ?); DELETE FROM open_runs`, a.Seq, a.Level,
			a.Hash[:])
	}
	tx.MustExec(p.sql)
	for _, sql := range store.Statements() {
		_, _ = tx.Exec(sql) // A forger restores the triggers. The other statements fail.
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return func(opt verify.Options) (verify.Report, error) { return verify.Log(t.Context(), r, opt) }
}

// lines returns all lines of an export except the last one.
func (p pieces) lines(t *testing.T) (lines []string) {
	head := map[string]any{"perlica_log_export": 1, "origin": p.origin, "size": len(p.events), "root": p.root().String(),
		"selection": struct{}{}}
	if n := len(p.heads); n > 0 {
		head["checkpoint"], head["size"], head["root"], head["origin"] = p.heads[n-1].Note, p.heads[n-1].Size,
			p.heads[n-1].Root.String(), p.heads[n-1].Origin
	}
	add := func(v any) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	add(head)
	absent := p.absent
	for i := range p.events {
		for ; len(absent) > 0 && absent[0].Seq < int64(p.events[i].Seq); absent = absent[1:] {
			a := absent[0]
			add(map[string]any{"absent": map[string]any{"seq": a.Seq, "level": a.Level, "hash": a.Hash.String()}})
		}
		add(p.events[i])
	}
	return lines
}

// ended adds the last line of an export.
func ended(lines []string, withheld, absent int) string {
	text := strings.Join(lines, "\n") + "\n"
	return text + fmt.Sprintf(`{"end":{"events":%d,"withheld":%d,"absent":%d,"sha256":"%x"}}`+"\n", len(lines)-1-absent,
		withheld, absent, sha256.Sum256([]byte(text)))
}

func asExport(t *testing.T, p pieces) func(verify.Options) (verify.Report, error) {
	withheld := 0
	for i := range p.events {
		if p.events[i].Withheld != "" {
			withheld++
		}
	}
	return verifyExport(t, ended(p.lines(t), withheld, len(p.absent)))
}

func verifyExport(t *testing.T, text string) func(verify.Options) (verify.Report, error) {
	return func(opt verify.Options) (verify.Report, error) {
		src, err := export.NewSource(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return verify.Check(t.Context(), src, opt)
	}
}

// tables is a log in a database with another schema, such as a collector of many logs could have.
type tables struct {
	db     *sqlx.DB
	origin string
	next   int64
}

func asTables(t *testing.T, p pieces) func(verify.Options) (verify.Report, error) {
	db := sqlx.MustOpen("sqlite", "file:"+filepath.Join(t.TempDir(), "hub.db"))
	t.Cleanup(func() { db.Close() })
	db.MustExec(
		`CREATE TABLE entries (log TEXT, place INTEGER, level INTEGER, entry TEXT, PRIMARY KEY (log, place)); CREATE TABLE heads (log TEXT, size INTEGER, note TEXT)`)
	tx := db.MustBegin()
	put := func(place event.Seq, level int, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		tx.MustExec(`INSERT INTO entries VALUES (?, ?, ?, ?)`, p.origin, int64(place), level, string(b))
	}
	for _, e := range p.events {
		put(e.Seq, -1, e)
	}
	for _, a := range p.absent {
		put(event.Seq(a.Seq), a.Level, a)
	}
	for _, c := range p.heads {
		tx.MustExec(`INSERT INTO heads VALUES (?, ?, ?)`, p.origin, c.Size, c.Note)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return func(opt verify.Options) (verify.Report, error) {
		return verify.Check(t.Context(), &tables{db, p.origin, 1}, opt)
	}
}

func (s *tables) Head(context.Context) (verify.Head, error) {
	return verify.Head{Checkpoint: evidence.Checkpoint{Origin: s.origin},
		Lacks: []verify.Damage{verify.Tree, verify.Anchor, verify.Schema}}, nil
}

func (s *tables) End(context.Context) error { return nil }

func (s *tables) Next(ctx context.Context) (func(*verify.Block) error, error) {
	var end int64
	first, last := s.next, s.next+99
	s.next += 100
	if err := s.db.GetContext(ctx, &end,
		`SELECT max(coalesce(max(place), 0), (SELECT coalesce(max(size), 0) FROM heads)) FROM entries WHERE log = ?`,
		s.origin); err != nil {
		return nil, err
	}
	if first > end {
		return nil, io.EOF
	}
	return func(b *verify.Block) error {
		var rows []struct {
			Level int
			Entry []byte
		}
		if err := s.db.SelectContext(ctx, &rows,
			`SELECT level, entry FROM entries WHERE log = ? AND place BETWEEN ? AND ? ORDER BY place`, s.origin, first,
			last); err != nil {
			return err
		}
		for _, row := range rows {
			var e event.Event
			var a tree.Subtree
			if row.Level < 0 {
				if err := json.Unmarshal(row.Entry, &e); err != nil {
					b.Unreadable(err)
				} else {
					b.Event(&e)
				}
			} else if err := json.Unmarshal(row.Entry, &a); err != nil {
				b.Unreadable(err)
			} else {
				b.Absent(a)
			}
		}
		var heads []struct {
			Size int64
			Note string
		}
		err := s.db.SelectContext(ctx, &heads,
			`SELECT size, note FROM heads WHERE log = ? AND size BETWEEN ? AND ? ORDER BY size`, s.origin, first, last)
		for _, h := range heads {
			b.Checkpoint(h.Size, h.Note, (&message.Text{Text: "the checkpoint of %d events"}).With(h.Size))
		}
		return err
	}, nil
}
