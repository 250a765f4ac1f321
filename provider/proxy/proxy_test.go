package proxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// start starts a proxy for these entries on a port of this machine. The function "end" closes the proxy and returns the
// recorded connections.
func start(t *testing.T, entries ...string) (p *Proxy, address string, end func() []Connection) {
	t.Helper()
	var hosts []Host
	for _, e := range entries {
		h, err := ParseHost(e)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	var rows []Connection
	p = newProxy(hosts, func(c Connection) { rows = append(rows, c) })
	a, b := net.Pipe()
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	p.own = a
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.open.Add(1)
	go p.serve(l)
	t.Cleanup(p.Close)
	return p, l.Addr().String(), func() []Connection { p.Close(); return rows }
}

// connect sends CONNECT to the proxy and returns the connection and the HTTP status of the response.
func connect(t *testing.T, proxy, to string) (c *net.TCPConn, r *bufio.Reader, status int) {
	t.Helper()
	conn, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", to); err != nil {
		t.Fatal(err)
	}
	r = bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn), r, answer.StatusCode
}

// echo starts a server outside the sandbox that sends back all bytes and then ends its side. It returns the address.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func TestParseHost(t *testing.T) {
	for text, want := range map[string]string{
		"api.example.org": "api.example.org", "API.Example.org.": "api.example.org",
		"*.example.org:8443": "*.example.org:8443",
		"localhost:11434":    "localhost:11434", "127.0.0.1:80": "127.0.0.1:80", "[::1]:8080": "[::1]:8080",
		"": "", "*": "", "*.": "", "a b": "", "https://example.org": "", "example.org/x": "", "example.org:0": "",
		"example.org:65536": "", "example.org:x": "", "1.2.3.4": "", "::1": "", "*.1.2.3.4:80": "", "localhost": "",
		"a..b": "", ".a": "", "a*.example.org": "", "*.*.example.org": "", "user@example.org": "", "exämple.org": "",
	} {
		h, err := ParseHost(text)
		if got := h.String(); err == nil && got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestJudge(t *testing.T) {
	p, _, _ := start(t, "api.example.org", "*.example.net:8443", "localhost:11434", "10.0.0.1:80")
	for address, want := range map[string]Refusal{
		"api.example.org:443": "", "API.EXAMPLE.ORG.:80": "", "api.example.org:8443": wrongPort,
		"api.example.org:22":    wrongPort,
		"x.api.example.org:443": unlisted, "example.org:443": unlisted, "api.example.org.evil.test:443": unlisted,
		"a.example.net:8443": "", "a.b.example.net:8443": "", "example.net:8443": unlisted, "a.example.net:443": wrongPort,
		"evilexample.net:8443": unlisted, "localhost:11434": "", "localhost:22": wrongPort, "127.0.0.1:11434": literal,
		"[::1]:11434": literal, "[::ffff:127.0.0.1]:11434": literal, "8.8.8.8:443": literal, "10.0.0.1:80": "",
		"10.0.0.1:81": wrongPort, "2130706433:443": unlisted, "0x7f.1:443": unlisted, "127.1:443": unlisted,
		"api.example.org": malformed, ":443": malformed, "api.example.org:0": malformed, "api.example.org:https": malformed,
		"api.example.org%00.evil.test:443": malformed, "api.example.org@evil.test:443": malformed, "[fe80::1%lo]:80": literal,
		"[::ffff:10.0.0.1]:80": literal,
	} {
		if c, _ := p.judge(address); c.Refused != want {
			t.Errorf("%s: %q, want %q", address, c.Refused, want)
		}
	}
}

// TestPrivate checks the IP address to which the proxy connects. A name may lead to a private address only if its entry
// has the port, and never to a link-local address.
func TestPrivate(t *testing.T) {
	p, _, end := start(t)
	p.hosts = []Host{{name: "localhost"}} // an entry without a port: 80 and 443
	if _, err := p.dial(t.Context(), "localhost:443"); err == nil || !strings.Contains(err.Error(), string(private)) {
		t.Errorf("%v", err)
	}
	if rows := end(); len(rows) != 1 || rows[0].Refused != private {
		t.Errorf("%v", rows)
	}
	for address, ok := range map[string]bool{"10.0.0.1:80": true, "127.0.0.1:80": true, "[::1]:80": true,
		"169.254.169.254:80": false,
		"[fe80::1]:80":       false, "[::ffff:169.254.169.254]:80": false, "0.0.0.0:80": false, "[::]:80": false,
		"224.0.0.1:80": false} {
		if err := anyHost("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestTunnel checks that a tunnel passes on all bytes, also after one side has ended its bytes, and that its record is
// correct.
func TestTunnel(t *testing.T) {
	to := echo(t)
	_, proxy, end := start(t, to)
	c, r, status := connect(t, proxy, to)
	if status != http.StatusOK {
		t.Fatal(status)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	_, port, _ := net.SplitHostPort(to)
	rows := end()
	if len(rows) != 1 || rows[0].Host != "127.0.0.1" || fmt.Sprint(rows[0].Port) != port || rows[0].Sent != 5 ||
		rows[0].Received != 5 || rows[0].Times != 1 || rows[0].Refused != "" {
		t.Errorf("%+v", rows)
	}
}

// TestEarlyBytes checks that bytes right after the header of CONNECT reach the host.
func TestEarlyBytes(t *testing.T) {
	to := echo(t)
	_, proxy, _ := start(t, to)
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\nearly", to); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(got), "\r\n\r\nearly") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestClose checks that Close ends and records an open tunnel, and that the proxy connects to no host after Close.
func TestClose(t *testing.T) {
	to := echo(t)
	p, proxy, end := start(t, to)
	c, r, _ := connect(t, proxy, to)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); err != nil {
		t.Fatal(err)
	}
	if rows := end(); len(rows) != 1 || rows[0].Sent != 1 || rows[0].Received != 1 {
		t.Errorf("%+v", rows)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("the tunnel is open")
	}
	if _, err := p.dial(t.Context(), to); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestHostGone checks that the agent's connection ends when the host resets its connection.
func TestHostGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, proxy, _ := start(t, l.Addr().String())
	_, r, _ := connect(t, proxy, l.Addr().String())
	host, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(host.(*net.TCPConn).SetLinger(0), host.Close()); err != nil { // a reset
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("the tunnel is open")
	}
}

// TestForward checks plain HTTP requests through the proxy and TLS through a tunnel, with the HTTP client of Go.
func TestForward(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s %s %q", r.Method, r.Host, r.RequestURI, body, r.Header["Proxy-Authorization"])
	})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	a, b := strings.TrimPrefix(plain.URL, "http://"), strings.TrimPrefix(secure.URL, "https://")
	_, proxy, end := start(t, a, b)
	client := &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: proxy, User: url.User("x")}),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	for base, host := range map[string]string{plain.URL: a, secure.URL: b} {
		res, err := client.Post(base+"/p?q=1;2", "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if want := "POST " + host + " /p?q=1;2 body []"; string(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	client.CloseIdleConnections()
	if rows := end(); len(rows) != 2 || rows[0].Sent == 0 || rows[1].Received == 0 {
		t.Errorf("%+v", rows)
	}
}

// TestRaw sends malformed and hostile requests. It checks that no host except the listed host in the request line gets
// a request, and that this host gets at most one.
func TestRaw(t *testing.T) {
	var mu sync.Mutex
	var got []string
	host := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Host+r.URL.Path)
	}))
	defer host.Close()
	to := strings.TrimPrefix(host.URL, "http://")
	_, proxy, end := start(t, to)
	for _, c := range []struct {
		request string
		status  int
		reached bool
	}{
		{"GET http://HOST/a HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n", 200, true},
		{"GET http://evil.test/ HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", 403, false},
		{"GET / HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", 400, false},
		{"GET https://HOST/ HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", 400, false},
		{"GET http://u:p@HOST/ HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", 400, false},
		{"GET ftp://HOST/ HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", 400, false},
		{"OPTIONS * HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", 400, false},
		{"CONNECT HOST HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", 400, false},
		{"CONNECT HOST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", 400,
			false},
		{"CONNECT evil.test:443 HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", 403, false},
		{"POST http://HOST/b HTTP/1.1\r\nHost: HOST\r\nContent-Length: 4\r\nTransfer-Encoding: " +
			"chunked\r\nConnection: close\r\n" +
			"\r\n0\r\n\r\nGET http://HOST/smuggled HTTP/1.1\r\nHost: HOST\r\n\r\n", 200, true},
		{"POST http://HOST/c HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400, false},
		{"GET http://HOST/d HTTP/1.1\r\nHost: HOST\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", 431, false},
	} {
		mu.Lock()
		got = nil
		mu.Unlock()
		conn, err := net.Dial("tcp", proxy)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, strings.ReplaceAll(c.request, "HOST", to)) }()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%.60q: %v", c.request, err)
		} else if res.StatusCode != c.status {
			t.Errorf("%.60q: %s, want %d", c.request, res.Status, c.status)
		}
		_ = conn.Close()
		mu.Lock()
		if len(got) > 1 || (len(got) == 1) != c.reached || c.reached && !strings.HasPrefix(got[0], to+"/") {
			t.Errorf("%.60q: the host got %q", c.request, got)
		}
		mu.Unlock()
	}
	for _, c := range end() {
		if c.Refused == "" && c.Host != "127.0.0.1" {
			t.Errorf("%+v", c)
		}
	}
}

// TestFlood checks that at most maxConnections connections are open at once, and that the others are served afterwards.
func TestFlood(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var now, most atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			go func() {
				_, _ = io.ReadAll(c) // until the agent closes the connection
				now.Add(-1)
				_ = c.Close()
			}()
		}
	}()
	p, proxy, end := start(t)
	h, _ := ParseHost(l.Addr().String())
	p.hosts = []Host{h}
	for range maxConnections - 2 {
		p.slots <- struct{}{}
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			c, r, status := connect(t, proxy, l.Addr().String())
			if status != http.StatusOK {
				t.Error(status)
			}
			_ = c.CloseWrite()
			_, _ = r.ReadByte() // waits until the host has ended the connection
			_ = c.Close()
		})
	}
	all.Wait()
	if rows := end(); len(rows) != 20 || most.Load() > 2 {
		t.Errorf("%d rows, %d connections at once", len(rows), most.Load())
	}
}

// TestIdle checks that a tunnel ends after idleTime without a byte, and not before. It also ends if the peer does not
// read for this time.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unused, other := net.Pipe()
		watch(unused, func(*conn) {})
		opened := time.Now()
		if _, err := other.Read(make([]byte, 1)); err == nil || time.Since(opened) > idleTime {
			t.Errorf("a connection without a byte ended after %s: %v", time.Since(opened), err)
		}
		agent, inner := net.Pipe()
		outer, host := net.Pipe()
		a, b := watch(inner, func(*conn) {}), watch(outer, func(*conn) {})
		done := make(chan struct{})
		go func() { tunnel(a, a, b); close(done) }()
		for range 3 {
			time.Sleep(idleTime - time.Second)
			go func() { _, _ = host.Write([]byte("x")) }()
			var one [1]byte
			if _, err := agent.Read(one[:]); err != nil {
				t.Fatal(err)
			}
		}
		go func() { _, _ = host.Write([]byte("unread")) }()
		began := time.Now()
		<-done
		if waited := time.Since(began); waited > idleTime {
			t.Errorf("it ended after %s", waited)
		}
	})
}

// TestSlowHeader checks that the proxy closes a connection that does not send a whole header within headerTime.
func TestSlowHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProxy(nil, nil)
		agent, inner := net.Pipe()
		p.own = agent
		l := &one{conns: make(chan net.Conn, 1), done: p.ctx.Done()}
		l.conns <- inner
		p.open.Add(1)
		go p.serve(l)
		if _, err := agent.Write([]byte("CONNECT a:443 HTTP/1.1\r\n")); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := io.ReadAll(agent); err != nil {
			t.Log(err)
		}
		if waited := time.Since(began); waited > headerTime {
			t.Errorf("it ended after %s", waited)
		}
		p.Close()
	})
}

// one is a net.Listener that accepts only the connections in the channel conns.
type one struct {
	conns chan net.Conn
	done  <-chan struct{}
}

func (l *one) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *one) Close() error   { return nil }
func (l *one) Addr() net.Addr { return &net.TCPAddr{} }

// TestTally checks that the number of records is limited, and that the sums have all further connections.
func TestTally(t *testing.T) {
	var rows []Connection
	tally := tally{record: func(c Connection) { rows = append(rows, c) }, seen: map[kind]bool{},
		rest: map[kind]Connection{}}
	const n = 5000
	for i := range n {
		tally.add(Connection{Host: "same", Refused: unlisted})
		tally.add(Connection{Host: fmt.Sprint("other", i), Refused: unlisted})
		tally.add(Connection{Host: fmt.Sprint("open", i), Sent: 2, Received: 3})
	}
	tally.finish()
	if len(rows) > maxRows+maxKinds+10 {
		t.Errorf("%d rows", len(rows))
	}
	times, sent := 0, int64(0)
	for _, c := range rows {
		times += c.Times
		sent += c.Sent
	}
	if times != 3*n || sent != 2*n {
		t.Errorf("%d connections, %d bytes", times, sent)
	}
	same := slices.IndexFunc(rows, func(c Connection) bool { return c.Host == "same" && c.Times > 1 })
	if same < 0 || rows[same].Times != n-1 {
		t.Error("the refusals of one host are not added up")
	}
}
