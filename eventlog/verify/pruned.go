package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
)

// prunings are the events log.pruned of a log. They are read when the first payload is
// found missing, and again when one is that none of them covers: it may have been pruned
// since.
type prunings struct {
	mu   sync.Mutex // guards what follows; held while they are read, which is rare
	at   int64      // all up to this seq were read
	list []pruning
}

type pruning struct {
	seq event.Seq
	event.Pruning
}

// covers reports whether a later event says that the payload of e was removed.
func (p *prunings) covers(conn *sqlite.Conn, e *event.Event) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.covered(e) {
		return true, nil
	}
	head := p.at
	err := query(conn, `SELECT max(seq) FROM events`, func(stmt *sqlite.Stmt) error { head = stmt.ColumnInt64(0); return nil })
	if err == nil && head > p.at {
		err = query(conn, `SELECT seq, payload_sha256, payload FROM events
			WHERE seq > ? AND seq <= ? AND class = 'fact' AND type = 'log.pruned' ORDER BY seq`, p.read, p.at, head)
		p.at = head
	}
	if fault.IsBroken(err) {
		err = nil // what cannot be read covers nothing
	}
	return p.covered(e), err
}

func (p *prunings) covered(e *event.Event) bool {
	for i := range p.list {
		if p.list[i].seq > e.Seq && p.list[i].Covers(e) {
			return true
		}
	}
	return false
}

// read takes in a log.pruned whose payload is whole. That its header is, too, is found out in
// its place.
func (p *prunings) read(stmt *sqlite.Stmt) error {
	sum, payload := make([]byte, sha256.Size), make([]byte, stmt.ColumnLen(2))
	stmt.ColumnBytes(1, sum)
	stmt.ColumnBytes(2, payload)
	if have := sha256.Sum256(payload); !bytes.Equal(have[:], sum) {
		return nil
	}
	one := pruning{seq: event.Seq(stmt.ColumnInt64(0))}
	if json.Unmarshal(payload, &one.Pruning) == nil {
		p.list = append(p.list, one)
	}
	return nil
}
