// Package proxy connects an agent without a network to the hosts of a list.
//
// The package makes four promises. The agent reaches listed hosts only. Names are resolved outside of the sandbox, and
// the address that is dialled is checked. Each connection and each refusal is recorded, without content. Nothing that
// the agent sends makes the proxy keep more than a fixed number of connections, header bytes or rows.
//
// The central idea is a listener of another network namespace. The agent's namespace has the loopback device only.
// Enter runs there before the agent. It opens a listener, and sends it to Perlica through an inherited socket. Perlica
// accepts the agent's connections on it. So no process carries the bytes inside, no path in the file system leads to
// the proxy, and an agent that ignores the variables reaches nothing.
//
// Goroutines: one receives the listeners, one serves each listener, and each connection has its own. Close ends all of
// them and waits.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

const (
	maxConnections = 128              // of the agent at once; more wait
	maxHeader      = 16 << 10         // bytes
	headerTime     = 10 * time.Second // for a header of the agent
	dialTime       = 30 * time.Second
	idleTime       = 10 * time.Minute // without a byte in either direction
)

// Proxy serves one agent's process.
type Proxy struct {
	hosts []Host
	tally tally
	slots chan struct{} // one for each connection of the agent
	child *os.File      // the socket for Enter; nil after Started
	own   net.Conn      // the socket to Enter

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex // guards closed, live, and the additions to open
	closed  bool
	live    map[*conn]bool // the connections to hosts
	open    sync.WaitGroup // the receiver, the listeners, the requests and the connections to hosts
	forward *httputil.ReverseProxy
}

func newProxy(hosts []Host, record func(Connection)) *Proxy {
	if record == nil {
		record = func(Connection) {}
	}
	p := &Proxy{hosts: hosts, slots: make(chan struct{}, maxConnections), live: map[*conn]bool{},
		tally: tally{record: record, seen: map[kind]bool{}, rest: map[kind]Connection{}}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // otherwise Rewrite loses parts with a semicolon
		},
		// Each request has a connection of its own, so that its record is complete.
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				to, err := p.dial(ctx, address)
				if err != nil {
					return nil, err
				}
				return to, nil
			},
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 1 << 20,
		},
		FlushInterval: -1,
		ErrorHandler:  refuse,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	return p
}

// begin adds one to open. It returns false after Close.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.open.Add(1)
	}
	return !p.closed
}

// Started closes the file that the child has inherited. The caller calls it after the child was started, or could not
// be started. A nil Proxy does nothing.
func (p *Proxy) Started() {
	if p != nil && p.child != nil {
		_ = p.child.Close() // nothing was written
		p.child = nil
	}
}

// Close ends all connections and returns after they are recorded. Later calls do nothing. A nil Proxy does nothing.
func (p *Proxy) Close() {
	if p == nil {
		return
	}
	p.Started()
	p.mu.Lock()
	p.closed = true
	live := slices.Collect(maps.Keys(p.live))
	p.mu.Unlock()
	p.cancel()
	for _, to := range live {
		to.end()
	}
	_ = p.own.Close() // nothing was written
	p.open.Wait()
	p.tally.finish()
}

// serve answers the requests of one listener until Close. The caller has called begin.
func (p *Proxy) serve(l net.Listener) {
	defer p.open.Done()
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: headerTime, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return p.ctx }, ErrorLog: log.New(io.Discard, "", 0),
		DisableGeneralOptionsHandler: true,
	}
	stop := context.AfterFunc(p.ctx, func() { _ = server.Close() }) // no request is worth waiting for
	defer stop()
	_ = server.Serve(listener{l, p}) // always an error, after Close
}

// serveLocal connects each connection of a listener to one host. The caller has called begin.
func (p *Proxy) serveLocal(l net.Listener, host Host) {
	defer p.open.Done()
	stop := context.AfterFunc(p.ctx, func() { _ = l.Close() }) // ends Accept
	defer stop()
	for {
		agent, err := listener{l, p}.Accept()
		if err != nil {
			return
		}
		if !p.begin() {
			_ = agent.Close() // after Close
			return
		}
		go func() {
			defer p.open.Done()
			to, err := p.dial(p.ctx, host.String())
			if err != nil {
				_ = agent.Close() // the record has the reason
				return
			}
			tunnel(agent.(*conn), agent, to)
		}()
	}
}

// ServeHTTP answers CONNECT, and requests in absolute form.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		return
	}
	defer p.open.Done()
	switch {
	case r.Method == http.MethodConnect && r.ContentLength == 0:
		p.connect(w, r)
	case r.Method != http.MethodConnect && r.URL.Scheme == "http" && r.URL.Host != "" && r.URL.User == nil:
		p.forward.ServeHTTP(w, r)
	default:
		refuse(w, r, p.refused(Connection{Refused: malformed}))
	}
}

func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	to, err := p.dial(p.ctx, r.URL.Host) // the request's context ends when the agent has sent its last byte
	if err != nil {
		refuse(w, r, err)
		return
	}
	agent, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = to.Close() // nothing was written
		return
	}
	if _, err := agent.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_, _ = agent.Close(), to.Close() // nothing was written
		return
	}
	tunnel(agent.(*conn), buffered.Reader, to)
}

// refusedError explains to the agent why it did not reach a host.
type refusedError struct {
	c     Connection
	cause error
}

func (e *refusedError) Error() string {
	to := net.JoinHostPort(e.c.Host, strconv.Itoa(e.c.Port))
	switch e.c.Refused {
	case unreachable:
		return fmt.Sprintf("%s cannot be reached: %v", to, e.cause)
	case malformed:
		return "the request names no host: send CONNECT, or an http address in full"
	}
	return fmt.Sprintf("%s is refused (%s): the person can add it to sandbox_hosts", to, e.c.Refused)
}

func (e *refusedError) Unwrap() error { return e.cause }

// refuse answers a request that reached no host.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	status := http.StatusBadGateway
	if e := (*refusedError)(nil); errors.As(err, &e) && e.c.Refused != unreachable {
		status = http.StatusForbidden
		if e.c.Refused == malformed {
			status = http.StatusBadRequest
		}
	}
	http.Error(w, "Perlica's sandbox: "+err.Error(), status)
}

// refused records a refusal and returns its error.
func (p *Proxy) refused(c Connection) error {
	p.tally.add(c)
	return &refusedError{c: c}
}

// judge returns the host and the port of an address, and the entry that admits it.
func (p *Proxy) judge(address string) (c Connection, entry Host) {
	name, port, err := net.SplitHostPort(address)
	n, perr := strconv.ParseUint(port, 10, 16)
	c.Host, c.Port = normalize(name), int(n)
	if err != nil || perr != nil || n == 0 || c.Host == "" {
		return Connection{Refused: malformed}, Host{}
	}
	c.Refused = unlisted
	if _, err := netip.ParseAddr(c.Host); err == nil {
		c.Refused = literal
	}
	for _, h := range p.hosts {
		switch {
		case h.admits(c.Host, uint16(n)):
			c.Refused = ""
			if entry == (Host{}) || h.private() {
				entry = h
			}
		case h.names(c.Host) && c.Refused != "":
			c.Refused = wrongPort
		}
	}
	return c, entry
}

// public lets a connection go to public addresses only.
var public = ssrf.New(ssrf.WithAnyPort())

// errSpecial says that an address belongs to no host.
var errSpecial = errors.New("a link-local, multicast or unspecified address")

// anyHost lets a connection go to private addresses, too. A link-local address often gives credentials of a cloud.
func anyHost(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	ip := a.Addr().Unmap()
	if err == nil && (ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified()) {
		err = errSpecial
	}
	return err
}

// dial connects to a listed host. The connection is recorded when it is closed. The error is a *refusedError.
func (p *Proxy) dial(ctx context.Context, address string) (*conn, error) {
	c, entry := p.judge(address)
	if c.Refused != "" {
		return nil, p.refused(c)
	}
	dialer := net.Dialer{Timeout: dialTime, Control: public.Safe}
	if entry.private() {
		dialer.Control = anyHost
	}
	began := time.Now()
	raw, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(c.Host, strconv.Itoa(c.Port)))
	if err != nil {
		c.Refused = unreachable
		if errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, errSpecial) {
			c.Refused = private
		}
		p.tally.add(c)
		return nil, &refusedError{c, err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = raw.Close() // nothing was written
		return nil, net.ErrClosed
	}
	p.open.Add(1)
	to := watch(raw, func(to *conn) {
		c.Sent, c.Received, c.Took = to.written.Load(), to.read.Load(), time.Since(began)
		p.tally.add(c)
		p.mu.Lock()
		delete(p.live, to)
		p.mu.Unlock()
		p.open.Done()
	})
	p.live[to] = true
	return to, nil
}
