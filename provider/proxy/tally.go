package proxy

import (
	"cmp"
	"sort"
	"sync"
	"time"
)

// Connection is the record of one connection of the agent, or the sum of several connections to the same host and port.
type Connection struct {
	Host           string
	Port           int
	Sent, Received int64         // bytes to the host and from it
	Took           time.Duration // the time from the start to the end of the longest connection
	Times          int           // the number of connections
	Refused        Refusal       // empty means that the host was reached
}

// Refusal is the reason why a connection to a host failed.
type Refusal string

// These are the reasons why a connection to a host failed.
const (
	unlisted    Refusal = "not listed"      // no entry has the host name
	wrongPort   Refusal = "port not listed" // an entry has the host name, but not with this port
	literal     Refusal = "address"         // the agent named an IP address that no entry has
	private     Refusal = "private address" // the name leads to an IP address that is not public
	unreachable Refusal = "unreachable"     // the name or the host does not answer
	malformed   Refusal = "malformed"       // the request names no host
)

// The proxy records each connection separately, up to maxRows records for one process of an agent. It adds further
// connections up, in at most maxKinds sums. A refusal has a separate record only if it is the first of its kind, for at
// most maxKinds kinds.
const (
	maxRows  = 1000
	maxKinds = 100
)

// kind has the fields that are equal in all connections of one sum.
type kind struct {
	host    string
	port    int
	refused Refusal
}

// tally records connections. Up to maxRows, it records each connection, and the first refusal of each kind, at once. It
// adds up all others by kind, and records the sums at the end.
type tally struct {
	record func(Connection)

	mu   sync.Mutex // guards the fields below; also locked during record, so that records have the order of the ends
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
		k = kind{refused: c.Refused} // too many sums: add it to the sum of all other hosts
	}
	sum := t.rest[k]
	t.rest[k] = Connection{Host: k.host, Port: k.port, Sent: sum.Sent + c.Sent, Received: sum.Received + c.Received,
		Took: max(sum.Took, c.Took), Times: sum.Times + 1, Refused: k.refused}
}

// finish records the sums. The caller must not add connections afterwards.
func (t *tally) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Connection
	for _, c := range t.rest {
		list = append(list, c)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Refused, b.Refused)) < 0
	})
	for _, c := range list {
		t.record(c)
	}
	clear(t.rest)
}
