package web

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perlica/perlica/cmd/perlica/frame"
)

// usualAddress is the address at which the page is served by default.
const usualAddress = "127.0.0.1:8788"

// listenAddress opens the listener. It returns the listener with its address and host names.
func (f settings) listenAddress(getenv func(string) string) (*address, error) {
	at := &address{}
	var proxy netip.Prefix
	var public *url.URL
	var err error
	if f.by != "" {
		if proxy, err = parseNetwork(f.by); err != nil {
			return nil, frame.UsageErrorf("--behind-proxy %q is neither an address nor a network", f.by)
		}
	}
	if f.url != "" {
		if public, err = url.Parse(f.url); err != nil || public.Host == "" || public.Scheme != "http" &&
			public.Scheme != "https" || public.RawQuery != "" || public.Fragment != "" {
			return nil, frame.UsageErrorf("--public-url %q is no http or https address", f.url)
		}
	}
	if at.tls, err = tlsConfig(f.cert, f.key, getenv); err != nil {
		return nil, err
	}
	if at.Listener, err = openListener(f.listen, getenv); err != nil {
		return nil, err
	}
	if err := at.setNames(f, proxy, public); err != nil {
		_ = at.Close() // Nothing was served yet.
		return nil, err
	}
	if public != nil {
		at.base, at.url = strings.TrimSuffix(public.Path, "/"), f.url
		at.hosts = append(at.hosts, strings.ToLower(public.Host))
	}
	return at, nil
}

// setNames sets the URL and the host names of the address. It fails if other machines can reach the address without
// TLS.
func (at *address) setNames(f settings, proxy netip.Prefix, public *url.URL) error {
	scheme := "http"
	if at.tls != nil {
		scheme = "https"
	}
	ip, port := netip.IPv6Unspecified(), ""
	tcp, ok := at.Addr().(*net.TCPAddr)
	if ok {
		ip, port = tcp.AddrPort().Addr().Unmap(), ":"+strconv.Itoa(tcp.Port)
	}
	switch {
	case at.tls == nil && !proxy.IsValid() && !ip.IsLoopback():
		return frame.WithHint(frame.UsageErrorf("%s can be reached from other machines, and nothing there is encrypted",
			at.Addr()),
			"--tls-cert and --tls-key, or --behind-proxy with the address of a proxy that speaks TLS; 127.0.0.1 is this "+
				"machine alone")
	case ip.IsUnspecified() && public == nil:
		return frame.WithHint(frame.UsageErrorf("%s has no name of its own", at.Addr()),
			"--public-url says how browsers ask for it")
	}
	names := []string{"127.0.0.1", "localhost", "[::1]"}
	if !ip.IsLoopback() && !ip.IsUnspecified() {
		names = append(names, strings.TrimSuffix(net.JoinHostPort(ip.String(), ""), ":"))
	}
	for _, name := range names {
		at.hosts = append(at.hosts, name+port)
		if port == ":80" || port == ":443" {
			at.hosts = append(at.hosts, name)
		}
	}
	if at.url = scheme + "://127.0.0.1" + port + "/"; !ip.IsLoopback() && !ip.IsUnspecified() || ip.Is6() &&
		ip.IsLoopback() {
		at.url = scheme + "://" + strings.TrimSuffix(net.JoinHostPort(ip.String(), ""), ":") + port + "/"
	}
	if proxy.IsValid() {
		at.client = func(r *http.Request) string { return clientOf(r, proxy) }
		if ok {
			at.Listener = &proxyListener{at.Listener, proxy}
		}
	}
	return nil
}

// openListener returns the socket that systemd has opened, or opens a new socket.
func openListener(addr string, getenv func(string) string) (net.Listener, error) {
	if n, err := strconv.Atoi(getenv("LISTEN_FDS")); err == nil && n > 0 &&
		getenv("LISTEN_PID") == strconv.Itoa(os.Getpid()) {
		const first = 3 // sd_listen_fds(3) begins with this descriptor.
		file := os.NewFile(first, "systemd")
		l, err := net.FileListener(file)
		_ = file.Close() // The listener has its own copy of the descriptor.
		if n > 1 || err != nil {
			return nil, fmt.Errorf("systemd has handed in %d sockets; one that listens is needed: %w", n, err)
		}
		return l, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError(addr, err)
	}
	return l, nil
}

// tlsConfig returns the TLS configuration. It returns nil if no certificate is configured.
func tlsConfig(cert, key string, getenv func(string) string) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	home := func(name string) string {
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			return filepath.Join(getenv("HOME"), rest)
		}
		return name
	}
	pair, err := tls.LoadX509KeyPair(home(cert), home(key))
	if err != nil {
		return nil, frame.WithHint(frame.UsageErrorf("the certificate cannot be used: %w", err),
			"--tls-cert and --tls-key name a pair of PEM files")
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// parseNetwork parses the address of a machine or of a network.
func parseNetwork(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// clientOf returns the address of a request's client. It believes the header of a request only if the proxy sent it.
func clientOf(r *http.Request, proxy netip.Prefix) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr // On a Unix socket, every connection comes from the proxy.
	} else if ip, err := netip.ParseAddr(host); err != nil || !proxy.Contains(ip.Unmap()) {
		return host
	}
	said := r.Header.Values("X-Forwarded-For")
	if len(said) == 0 {
		return host
	}
	all := strings.Split(strings.Join(said, ","), ",")
	slices.Reverse(all) // The proxy adds an address at the end, so the last address is reliable.
	for _, one := range all {
		ip, err := netip.ParseAddr(strings.TrimSpace(one))
		if err != nil {
			return host
		}
		if !proxy.Contains(ip.Unmap()) {
			return ip.String()
		}
	}
	return host
}

// proxyListener accepts connections only from the proxy and from this machine.
type proxyListener struct {
	net.Listener
	proxy netip.Prefix
}

// Accept waits for the next connection from the proxy or from this machine.
func (p *proxyListener) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, err := netip.ParseAddrPort(c.RemoteAddr().String())
		if ip := from.Addr().Unmap(); err == nil && (ip.IsLoopback() || p.proxy.Contains(ip)) {
			return c, nil
		}
		_ = c.Close() // The connection comes from another machine, so it is refused.
	}
}
