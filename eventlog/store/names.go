package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
)

// A log stores each text of a header once, in the table names. The table entries has the ids of these texts. The
// text of an id never changes. If somebody changes a text, the header of each event with this id no longer matches
// its leaf.

// fixed are the names that schema.sql inserts, by their ids. The conditions of its indexes use these ids.
var fixed = []string{"", string(event.Fact), string(event.Frame), string(event.Requested), string(event.Responded),
	string(event.ProviderError), string(event.OutcomeUnknown), string(event.InteractionAnswered),
	string(event.InteractionLapsed), string(event.InteractionResolved)}

// idOf is the SQL expression for the id of the name in a parameter. It is NULL if the log does not have the name.
const idOf = `(SELECT id FROM names WHERE name = ?)`

// NameOf returns the SQL expression for the name with the id in a column.
func NameOf(column string) string { return `(SELECT name FROM names WHERE id = ` + column + `)` }

// literal returns the SQL expression for the id of a name. The ids of fixed names are numbers, because only then
// SQLite can choose a partial index.
func literal(name string) string {
	for id, f := range fixed {
		if f == name {
			return strconv.Itoa(id)
		}
	}
	return `(SELECT id FROM names WHERE name = ` + quote(name) + `)`
}

func quote(name string) string { return "'" + strings.ReplaceAll(name, "'", "''") + "'" }

// literals returns the ids of the types as a list of SQL expressions.
func literals(types []event.Type) string {
	var list []string
	for _, t := range types {
		list = append(list, literal(string(t)))
	}
	return strings.Join(list, ", ")
}

// IDBytes returns the bytes of an event's id. They are nil if the id is not a UUID in its canonical form.
func IDBytes(id string) []byte {
	u, err := uuid.Parse(id)
	if err != nil || u.String() != id {
		return nil
	}
	return u[:]
}

// IDText returns the text of an event's id. ok is false if b does not have the length of a UUID.
func IDText(b []byte) (id string, ok bool) {
	u, err := uuid.FromBytes(b)
	return u.String(), err == nil
}

// textColumns is the number of columns of entries that have the id of a name.
const textColumns = 11

// maxNames limits the memory of Names and nameTexts.
const maxNames = 1 << 15

// Names knows the ids of names for one writer of a log. The zero value knows no name.
type Names struct {
	ids map[string]int64
	// added are the names of ids that the current transaction added or found.
	added []string
}

// Has reports whether the ids of all texts of an event are known.
func (n *Names) Has(e *event.Event) bool {
	for _, text := range e.Texts() {
		if _, ok := n.ids[text]; !ok {
			return false
		}
	}
	return true
}

// Add finds the id of each text of an event. It calls the function "find" for a text with an unknown id. That function
// returns the id from the table, and adds the text to the table if necessary.
func (n *Names) Add(e *event.Event, find func(name string) (int64, error)) error {
	for _, text := range e.Texts() {
		if _, ok := n.ids[text]; ok {
			continue
		}
		id, err := find(text)
		if err != nil {
			return err
		}
		if n.ids == nil {
			n.ids = map[string]int64{}
		}
		n.ids[text] = id
		n.added = append(n.added, text)
	}
	return nil
}

// End says that the transaction has ended. Without a commit, Names forgets the ids of the transaction.
func (n *Names) End(committed bool) {
	if !committed {
		for _, name := range n.added {
			delete(n.ids, name)
		}
	}
	n.added = n.added[:0]
	if len(n.ids) > maxNames {
		clear(n.ids)
	}
}

// These statements find and add a name.
const (
	FindName = `SELECT id FROM names WHERE name = ?`
	AddName  = `INSERT INTO names (name) VALUES (?)`
)

// AppendArgs appends the values of an event's row to args. Names must have all texts of the event.
func (n *Names) AppendArgs(args []any, e *event.Event) []any {
	args = append(args, int64(e.Seq), IDBytes(e.ID), e.Time.UnixNano())
	for _, text := range e.Texts() {
		args = append(args, n.ids[text])
	}
	return append(args, e.PayloadLen, e.PayloadSHA256[:], e.LeafHash[:], Stored(e))
}

// nameBlock is the number of names that a reader reads at a time. Names of one run have ids close to each other.
const nameBlock = 128

// nameTexts are the names that a Reader has read, by their ids.
type nameTexts struct {
	mu   sync.RWMutex
	byID map[int64]string // guarded by mu
}

// text returns the name with an id. ok is false if the log does not have it.
func (t *nameTexts) text(ctx context.Context, db sqlx.QueryerContext, id int64) (name string, ok bool, err error) {
	t.mu.RLock()
	name, ok = t.byID[id]
	t.mu.RUnlock()
	if ok {
		return name, true, nil
	}
	var rows []struct {
		ID   int64
		Name string
	}
	first, last := NameBlock(id)
	if err := sqlx.SelectContext(ctx, db, &rows, ReadNames, first, last); err != nil {
		return "", false, disk.Explain(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil || len(t.byID) > maxNames {
		t.byID = map[int64]string{}
	}
	for _, row := range rows {
		t.byID[row.ID] = row.Name
	}
	name, ok = t.byID[id]
	return name, ok, nil
}

// ReadNames is the statement that reads the names with ids between two numbers, both included.
const ReadNames = `SELECT id, name FROM names WHERE id BETWEEN ? AND ?`

// NameBlock returns the first and the last id of the block that contains this id.
func NameBlock(id int64) (first, last int64) { return id &^ (nameBlock - 1), id | (nameBlock - 1) }

// textsOf returns the texts of the ids in a row of entries.
func (r *Reader) textsOf(ctx context.Context, row []driver.Value) (list [textColumns]string, err error) {
	for i := range list {
		id, ok := row[i].(int64)
		if ok {
			list[i], ok, err = r.names.text(ctx, r.db, id)
		}
		if err == nil && !ok {
			err = fmt.Errorf("%w: the name %v is missing", disk.ErrCorrupt, row[i])
		}
		if err != nil {
			return list, err
		}
	}
	return list, nil
}
