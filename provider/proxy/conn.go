package proxy

import (
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection from the agent to the proxy or from the proxy to a host. It closes after idleTime without a byte
// in either direction.
type conn struct {
	net.Conn
	read, written atomic.Int64
	idle          *time.Timer
	once          sync.Once
	ended         func(*conn) // called once, after the connection was closed
}

func watch(c net.Conn, ended func(*conn)) *conn {
	w := &conn{Conn: c, ended: ended}
	w.idle = time.AfterFunc(math.MaxInt64, w.end)
	w.idle.Reset(idleTime) // starts the timer only now, because end reads the field idle
	return w
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.note(&c.read, n)
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.note(&c.written, n)
	return n, err
}

func (c *conn) note(bytes *atomic.Int64, n int) {
	if n > 0 {
		bytes.Add(int64(n))
		c.idle.Reset(idleTime)
	}
}

// CloseWrite tells the other end that no more bytes follow.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.idle.Stop()
		c.ended(c)
	})
	return err
}

func (c *conn) end() { _ = c.Close() } // the peer sees the end, so no one needs the error

// listener accepts connections of the agent. With maxConnections open connections, Accept waits until one closes.
type listener struct {
	net.Listener
	p *Proxy
}

func (l listener) Accept() (net.Conn, error) {
	select {
	case l.p.slots <- struct{}{}:
	case <-l.p.ctx.Done():
		return nil, net.ErrClosed
	}
	raw, err := l.Listener.Accept()
	if err != nil {
		<-l.p.slots
		return nil, err
	}
	return watch(raw, func(*conn) { <-l.p.slots }), nil
}

// tunnel copies bytes between the agent and the host in both directions. If one side ends its bytes, the other
// direction stays open. After both directions, or after an error, tunnel closes both connections. The parameter "from"
// reads the bytes of the agent.
func tunnel(agent *conn, from io.Reader, to *conn) {
	end := func() { agent.end(); to.end() }
	defer end()
	pass := func(w *conn, r io.Reader) {
		if _, err := io.Copy(w, r); err != nil || w.CloseWrite() != nil {
			end()
		}
	}
	var both sync.WaitGroup
	both.Go(func() { pass(to, from) })
	both.Go(func() { pass(agent, to) })
	both.Wait()
}
