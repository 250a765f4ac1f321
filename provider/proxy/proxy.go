// Package proxy connects an agent without a network to the hosts of a list.
//
// The package makes four promises. The agent reaches only listed hosts. The proxy resolves names outside the sandbox
// and checks the IP address to which it connects. It records each connection and each refusal, without content. The
// agent cannot make it store more than a fixed number of connections, header bytes or records.
//
// The network namespace of the agent has only the loopback device. Enter runs there before the agent. It opens a
// listener and sends the listener to Perlica through an inherited socket. Perlica then accepts the agent's connections
// on this listener. So the sandbox needs no process that passes on bytes, and no path in the file system leads to the
// proxy. An agent that ignores the proxy variables reaches nothing.
//
// One goroutine receives the listeners, each listener has one, and each connection has one. Close ends all of them and
// waits for them.
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
	maxConnections = 128              // open connections of the agent; further ones wait
	maxHeader      = 16 << 10         // bytes
	headerTime     = 10 * time.Second // for the agent to send a whole header
	dialTime       = 30 * time.Second
	idleTime       = 10 * time.Minute // without a byte in either direction
)

// Proxy serves one agent's process.
type Proxy struct {
	hosts []Host
	tally tally
	slots chan struct{} // has one element for each open connection of the agent
	child *os.File      // the socket for Enter; nil after Started
	own   net.Conn      // the socket to Enter

	ctx    context.Context // ends when Close is called
	cancel context.CancelFunc

	mu      sync.Mutex // guards closed, live, and the additions to open
	closed  bool
	live    map[*conn]bool // the connections to hosts
	open    sync.WaitGroup // has one for the receiver and each listener, request and connection to a host
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
		// Each request uses a new connection to the host, so that the record of the connection has exactly this
		// request.
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

// begin adds one to the WaitGroup open. After Close it returns false and adds nothing.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.open.Add(1)
	}
	return !p.closed
}

// Started closes the file that the agent's process has inherited. The caller must call it after the process has started
// or failed to start. A nil Proxy does nothing.
func (p *Proxy) Started() {
	if p != nil && p.child != nil {
		_ = p.child.Close() // nothing was written
		p.child = nil
	}
}

// Close ends all connections and waits until they are recorded. Later calls do nothing. A nil Proxy does nothing.
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

// serve answers the proxy requests on one listener until Close. The caller must have called begin.
func (p *Proxy) serve(l net.Listener) {
	defer p.open.Done()
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: headerTime, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return p.ctx }, ErrorLog: log.New(io.Discard, "", 0),
		DisableGeneralOptionsHandler: true,
	}
	stop := context.AfterFunc(p.ctx, func() { _ = server.Close() }) // Close does not wait for pending requests
	defer stop()
	_ = server.Serve(listener{l, p}) // Serve returns only after Close, always with an error
}

// serveLocal connects each connection on a listener with one host. The caller must have called begin.
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
			_ = agent.Close() // Close was called
			return
		}
		go func() {
			defer p.open.Done()
			to, err := p.dial(p.ctx, host.String())
			if err != nil {
				_ = agent.Close() // dial has recorded the reason
				return
			}
			tunnel(agent.(*conn), agent, to)
		}()
	}
}

// ServeHTTP answers a CONNECT request with a tunnel. It passes on requests with an absolute URL.
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
	to, err := p.dial(p.ctx, r.URL.Host) // p.ctx, because the request's context ends after the agent's last byte
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

// refusedError tells the agent the reason why a connection to a host failed.
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

// refuse answers a request for which the proxy has no connection to the host.
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

// refused records a refused connection and returns a refusedError for it.
func (p *Proxy) refused(c Connection) error {
	p.tally.add(c)
	return &refusedError{c: c}
}

// judge returns the host and the port of an address, and the entry that admits them. If no entry does, c.Refused is the
// reason.
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

// public is a check for net.Dialer. It admits only public IP addresses.
var public = ssrf.New(ssrf.WithAnyPort())

// errSpecial means that an IP address is not the address of a single host.
var errSpecial = errors.New("a link-local, multicast or unspecified address")

// anyHost is a check for net.Dialer. It also admits private IP addresses, but not link-local ones, at which clouds
// often serve credentials.
func anyHost(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	ip := a.Addr().Unmap()
	if err == nil && (ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified()) {
		err = errSpecial
	}
	return err
}

// dial connects to a listed host. The proxy records the connection when it is closed. If dial fails, it records the
// refusal and returns a *refusedError. After Close it returns net.ErrClosed.
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
