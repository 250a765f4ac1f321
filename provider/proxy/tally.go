package proxy

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Connection is one connection of the agent, or several of the same kind.
type Connection struct {
	Host           string
	Port           int
	Sent, Received int64         // bytes to the host and from it
	Took           time.Duration // from the first to the last byte of the longest one
	Times          int           // the number of connections
	Refused        Refusal       // empty means that the host was reached
}

// Refusal is the reason why the agent did not reach a host.
type Refusal string

// The reasons.
const (
	unlisted    Refusal = "not listed"      // no entry has the host
	wrongPort   Refusal = "port not listed" // an entry has the host, and no entry has the port
	literal     Refusal = "address"         // the agent named an address, and no entry has it
	private     Refusal = "private address" // the name leads to an address that is not public
	unreachable Refusal = "unreachable"     // the name or the host does not answer
	malformed   Refusal = "malformed"       // the request names no host
)

// maxRows limits the rows of one agent's process that are recorded at once. maxKinds limits the kinds of the rest.
const (
	maxRows  = 1000
	maxKinds = 100
)

// kind is the part of a connection that its coalesced rows have in common.
type kind struct {
	host    string
	port    int
	refused Refusal
}

// tally records connections. It records each refusal of one kind once at first. It adds up later refusals and all
// connections after maxRows, and records the sums at the end.
type tally struct {
	record func(Connection)

	mu   sync.Mutex // guards the fields below; held during record, so that the order is that of the ends
	rows int
	seen map[kind]bool
	rest map[kind]Connection
}

func (t *tally) add(c Connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := kind{c.Host, c.Port, c.Refused}
	c.Times = 1
	first := !t.seen[k] && len(t.seen) < maxKinds
	if t.rows < maxRows && (c.Refused == "" || first) {
		if c.Refused != "" {
			t.seen[k] = true
		}
		t.rows++
		t.record(c)
		return
	}
	if _, ok := t.rest[k]; !ok && len(t.rest) >= maxKinds {
		k = kind{refused: c.Refused} // other hosts
	}
	sum := t.rest[k]
	t.rest[k] = Connection{Host: k.host, Port: k.port, Sent: sum.Sent + c.Sent, Received: sum.Received + c.Received,
		Took: max(sum.Took, c.Took), Times: sum.Times + 1, Refused: k.refused}
}

// finish records the sums.
func (t *tally) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Connection
	for _, c := range t.rest {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Connection) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Refused, b.Refused))
	})
	for _, c := range list {
		t.record(c)
	}
	clear(t.rest)
}
