//go:build linux

package hubtest

import (
	"encoding/binary"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy is a network between clients and a server that a test can cut.
type Proxy struct {
	dir      string
	listener net.Listener
	trips    atomic.Int64
	all      sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	change *sync.Cond
	target *Server
	cut    bool // nothing passes in either direction
	deaf   bool // nothing from the server passes
	conns  map[net.Conn]bool
	closed bool
}

// NewProxy makes a network to a server. It ends with the test.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	p := &Proxy{dir: t.TempDir(), target: s, conns: map[net.Conn]bool{}}
	p.change = sync.NewCond(&p.mu)
	l, err := net.Listen("unix", filepath.Join(p.dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	p.listener = l
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close() // a listener loses no data
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Reset()
		p.all.Wait()
	})
	return p
}

// URL returns the connection string of a role to a database through the network.
func (p *Proxy) URL(role, database string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Replace(p.target.URL(role, database), p.target.dir, p.dir, 1)
}

// Aim directs new connections to another server and ends the existing ones.
func (p *Proxy) Aim(s *Server) {
	p.mu.Lock()
	p.target = s
	p.mu.Unlock()
	p.Reset()
}

// Cut stops all traffic in both directions. Restore then passes the stopped bytes in their order, as a network does
// with repeated packets.
func (p *Proxy) Cut() { p.set(true, false) }

// Deafen stops all traffic from the server. Traffic to the server still passes.
func (p *Proxy) Deafen() { p.set(false, true) }

// Restore ends Cut and Deafen.
func (p *Proxy) Restore() { p.set(false, false) }

func (p *Proxy) set(cut, deaf bool) {
	p.mu.Lock()
	p.cut, p.deaf = cut, deaf
	p.mu.Unlock()
	p.change.Broadcast()
}

// Reset ends all existing connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close() // this also tells the other side
	}
	clear(p.conns)
	p.mu.Unlock()
	p.change.Broadcast()
}

// Trips returns the number of round trips: how often a server was ready for the next request.
func (p *Proxy) Trips() int64 { return p.trips.Load() }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		server, err := net.Dial("unix", filepath.Join(target.dir, ".s.PGSQL.5432"))
		if err != nil {
			_ = client.Close() // the server is gone
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.all.Go(func() { p.pass(server, client, nil) })
		p.all.Go(func() { p.pass(client, server, new(counter)) })
	}
}

// pass forwards the bytes that it reads from the connection "from". The parameter c is not nil if that connection leads
// to the server.
func (p *Proxy) pass(to, from net.Conn, c *counter) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for (p.cut || p.deaf && c != nil) && !p.closed && p.conns[from] {
			p.change.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if c != nil {
				p.trips.Add(c.count(buf[:n]))
			}
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			_ = to.Close() // the other side is gone
			return
		}
	}
}

// counter finds the messages in a server's output.
type counter struct {
	head []byte // the received part of an incomplete message
	skip int    // remaining bytes of a message
}

// count returns how many of the messages that begin in b are ReadyForQuery.
func (c *counter) count(b []byte) (n int64) {
	for len(b) > 0 {
		if c.skip > 0 {
			cut := min(c.skip, len(b))
			c.skip, b = c.skip-cut, b[cut:]
			continue
		}
		cut := min(5-len(c.head), len(b))
		c.head, b = append(c.head, b[:cut]...), b[cut:]
		if len(c.head) == 5 {
			if c.head[0] == 'Z' {
				n++
			}
			c.skip = int(binary.BigEndian.Uint32(c.head[1:])) - 4
			c.head = c.head[:0]
		}
	}
	return n
}
