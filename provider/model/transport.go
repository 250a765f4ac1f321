package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// connectTimeout limits the time to make a connection. The model's own time has no limit.
const connectTimeout = 30 * time.Second

// maxFailure limits the body of a response other than a stream, in bytes.
const maxFailure = 1 << 20

// exchange is one HTTP request and its response. Go's transport may send a request again: on a kept
// connection that was closed, over HTTP/2, and in http.Client after a redirect. Each exchange therefore has
// its own HTTP/1.1 transport without kept connections and without a client, and its body can be read only
// once.
type exchange struct {
	method string
	url    string
	header []field // as sent, without the key's field
	key    field   // the field with the key; empty without a key
	body   []byte
	proxy  string // empty means the environment's
	// early receives the responses before the final one, such as 103. It may be nil.
	early func(status string, header http.Header) error

	left atomic.Bool // a connection existed: a part of the request may have been written
}

// newExchange prepares the request of a prompt.
func newExchange(s Settings, body []byte) *exchange {
	m := mappings[s.API]
	x := &exchange{method: http.MethodPost, url: s.base() + m.path(s.Model), body: body, proxy: s.Proxy}
	if s.Key != "" {
		x.key = field{m.header, m.prefix + s.Key}
	}
	x.header = append([]field{
		{"Accept", "text/event-stream"},
		{"Accept-Encoding", "identity"},
		{"Connection", "close"},
		{"Content-Length", strconv.Itoa(len(body))},
		{"Content-Type", "application/json"},
		{"User-Agent", "perlica"},
	}, m.headers...)
	return x
}

var errSecondConnection = errors.New("a second connection for one request was refused")

// sendOnce sends the request once. The caller must close the body, and must end ctx, which closes the connection.
// x.left reports whether any part of the request may have left.
func (x *exchange) sendOnce(ctx context.Context) (*http.Response, error) {
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { x.left.Store(true) }}
	if x.early != nil {
		trace.Got1xxResponse = func(code int, header textproto.MIMEHeader) error {
			return x.early(fmt.Sprintf("%d %s", code, http.StatusText(code)), http.Header(header))
		}
	}
	ctx = httptrace.WithClientTrace(ctx, trace)
	var body io.Reader
	if x.body != nil {
		body = io.NopCloser(bytes.NewReader(x.body))
	}
	req, err := http.NewRequestWithContext(ctx, x.method, x.url, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength, req.GetBody, req.Close = int64(len(x.body)), nil, true
	for _, f := range x.header {
		if f.Name != "Connection" && f.Name != "Content-Length" { // the transport itself writes these two
			req.Header.Set(f.Name, f.Value)
		}
	}
	if x.key.Name != "" {
		req.Header.Set(x.key.Name, x.key.Value)
	}
	var dials atomic.Int32
	dialer := &net.Dialer{Timeout: connectTimeout}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	t := &http.Transport{
		Proxy: x.proxyFor, Protocols: protocols, DisableKeepAlives: true, DisableCompression: true,
		TLSHandshakeTimeout: connectTimeout, MaxResponseHeaderBytes: maxFailure,
		DialContext: func(dialing context.Context, network, addr string) (net.Conn, error) {
			if dials.Add(1) > 1 {
				return nil, errSecondConnection
			}
			conn, err := dialer.DialContext(dialing, network, addr)
			if err == nil { // otherwise the transport finishes an abandoned handshake
				context.AfterFunc(ctx, func() { _ = conn.Close() })
			}
			return conn, err
		},
	}
	return t.RoundTrip(req)
}

// proxyFor returns the proxy of the request, or nil. As in curl, ALL_PROXY is the default for both schemes, and
// NO_PROXY lists exceptions. The error quotes no address, because an address may contain a password.
func (x *exchange) proxyFor(req *http.Request) (*url.URL, error) {
	if x.proxy != "" {
		return url.Parse(x.proxy) // Check accepted the proxy
	}
	c := httpproxy.FromEnvironment()
	all := cmp.Or(os.Getenv("all_proxy"), os.Getenv("ALL_PROXY"))
	c.HTTPProxy, c.HTTPSProxy = cmp.Or(c.HTTPProxy, all), cmp.Or(c.HTTPSProxy, all)
	u, err := c.ProxyFunc()(req.URL)
	if err != nil || u != nil && !oneOf(proxySchemes...)(u.Scheme) {
		return nil,
			errors.New("the proxy of HTTPS_PROXY or ALL_PROXY is not an address that begins with http://, https:// or socks5://")
	}
	return u, nil
}

// reachTimeout is the time limit of Reach.
const reachTimeout = 5 * time.Second

// Reach connects to the API's address, or to the proxy before it, and closes the connection without sending
// anything. It returns the address that it connected to.
func (s Settings) Reach(ctx context.Context) (where string, err error) {
	x := newExchange(s, nil)
	req, err := http.NewRequestWithContext(ctx, x.method, x.url, nil)
	if err != nil {
		return s.Address(), err
	}
	to, err := x.proxyFor(req)
	if err != nil {
		return "the proxy", err
	}
	if to == nil {
		to = req.URL
	}
	port := cmp.Or(to.Port(), map[string]string{"http": "80", "https": "443"}[to.Scheme], "1080")
	where = net.JoinHostPort(to.Hostname(), port)
	conn, err := (&net.Dialer{Timeout: reachTimeout}).DialContext(ctx, "tcp", where)
	if err != nil {
		return where, err
	}
	return where, conn.Close()
}

// sentHeader returns the header fields as they leave, without the key's field.
func (x *exchange) sentHeader() []field {
	host := ""
	if u, err := url.Parse(x.url); err == nil {
		host = u.Host
	}
	return append([]field{{"Host", host}}, x.header...)
}

// tee is a reader that calls a function with the bytes that it reads, before its caller gets them.
type tee struct {
	io.ReadCloser
	each func(b []byte) error
}

func (t tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		if terr := t.each(p[:n]); terr != nil {
			return 0, terr
		}
	}
	return n, err
}
