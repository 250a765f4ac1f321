package model

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perlica/perlica/provider/agentside"
)

// agentVariable turns the test binary into an agent with the settings in its value. Some settings come from
// the environment, so they need their own process.
const agentVariable = "TEST_MODEL_AGENT"

func TestMain(m *testing.M) {
	text := os.Getenv(agentVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var s Settings
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = Serve(context.Background(), os.Stdin, os.Stdout, s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// connectProcess starts the agent as a process with additional variables.
func connectProcess(t *testing.T, s Settings, environ ...string) *peer {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	unset := oneOf("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
		"ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !unset(name) {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, environ...), "GORACE=atexit_sleep_ms=0",
		agentVariable+"="+string(agentside.Encode(s)))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	out, oerr := cmd.StdoutPipe()
	if err = errors.Join(err, oerr); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	lines, fromAgent := io.Pipe()
	go func() {
		_, err := io.Copy(fromAgent, out) // Wait closes the unread rest
		_ = fromAgent.Close()             // never fails
		if err = errors.Join(err, cmd.Wait()); err != nil {
			err = fmt.Errorf("%w: %s", err, &stderr)
		}
		served <- err
	}()
	return speak(t, in, lines, served, true)
}

// certificate returns a certificate for 127.0.0.1 and example.com, and a file that contains it.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	file := filepath.Join(t.TempDir(), "cert.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.TLS.Certificates[0], file
}

// proxy tunnels every request to a server. The parameter "line" is the proxy's answer to CONNECT. If it is empty,
// the proxy closes the connection instead. The bodies of the returned server are the received CONNECT requests.
func proxy(t *testing.T, to *server, line string) *server {
	return listen(t, func(s *server, c net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.requests++
		s.bodies = append(s.bodies, req.Method+" "+req.Host)
		s.mu.Unlock()
		if line == "" {
			return
		}
		if _, err := io.WriteString(c, "HTTP/1.1 "+line+"\r\nContent-Length: 0\r\n\r\n"); err != nil ||
			!strings.HasPrefix(line, "200") {
			return
		}
		_, addr, _ := strings.Cut(to.url, "://")
		there, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		var both sync.WaitGroup
		for _, pair := range [][2]net.Conn{{there, c}, {c, there}} {
			both.Go(func() {
				_, _ = io.Copy(pair[0], pair[1]) // either side may close first
				_ = pair[0].Close()
			})
		}
		both.Wait()
	})
}

// secure describes a request over TLS.
type secure struct {
	protocols  []string // offered by the server
	demand     string   // the protocol that the server requires
	distrusted bool     // the client does not trust the server's certificate
	proxy      string   // the proxy's answer to CONNECT
	breaks     bool     // the proxy sends no answer
}

// TestSecure is TestOnce over TLS. It needs a process, because trusted certificates and the proxy come from
// the environment.
func TestSecure(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SSL_CERT_FILE is for Unix systems that are not macOS")
	}
	cert, file := certificate(t)
	for _, f := range faults {
		if f.secure == nil {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			protocol := ""
			config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: f.secure.protocols}
			config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				if f.secure.demand != "" && !slices.Contains(hello.SupportedProtos, f.secure.demand) {
					return nil, errors.New("another protocol is demanded")
				}
				return nil, nil
			}
			s := listenTLS(t, config, func(s *server, c net.Conn, r *bufio.Reader) {
				if f.serveFault(s, c, r); s.requests > 0 {
					protocol = c.(*tls.Conn).ConnectionState().NegotiatedProtocol
				}
			})
			settings, environ := Settings{API: openAIChat, Model: "m", BaseURL: s.url, Key: "sk-a-secret"}, []string{}
			if !f.secure.distrusted {
				environ = append(environ, "SSL_CERT_FILE="+file)
			}
			var between *server
			if f.secure.proxy != "" || f.secure.breaks {
				between = proxy(t, s, f.secure.proxy)
				settings.BaseURL = "https://example.com/v1"
				environ = append(environ, "HTTPS_PROXY="+between.url, "HTTP_PROXY=http://127.0.0.1:1")
			}
			p := connectProcess(t, settings, environ...)
			f.checkOutcome(t, p.awaitAnswer(p.sendPrompt(p.session(), "Hi"), nil), p, s)
			if protocol == "h2" {
				t.Error("HTTP/2 was spoken")
			}
			if between != nil {
				if c, n := between.counts(); c != 1 || n != 1 || between.bodies[0] != "CONNECT example.com:443" {
					t.Errorf("the proxy: %d connections, %q", c, between.bodies)
				}
			}
		})
	}
}

// TestProxySettings checks that the configured proxy takes precedence over the environment's, and that NO_PROXY
// applies. An address of this machine uses no proxy. No error quotes a password.
func TestProxySettings(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SSL_CERT_FILE is for Unix systems that are not macOS")
	}
	cert, file := certificate(t)
	ok := func(s *server, c net.Conn, r *bufio.Reader) {
		if s.readRequest(r) != nil {
			_, _ = io.WriteString(c, streamHead+"\r\n"+whole)
		}
	}
	s := listenTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}}, ok)
	plain := listen(t, ok)
	between := proxy(t, s, "200 OK")
	for _, c := range []struct {
		name     string
		settings Settings
		environ  []string
		outcome  string
		proxied  int
	}{
		{"configured", Settings{BaseURL: "https://example.com", Proxy: between.url},
			[]string{"HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=*"}, "answered", 1},
		{"excepted", Settings{BaseURL: "https://models.invalid"}, []string{"HTTPS_PROXY=" + between.url,
			"NO_PROXY=models.invalid"}, "provider error", 0},
		{"all", Settings{BaseURL: "https://example.com"}, []string{"ALL_PROXY=" + between.url}, "answered", 1},
		{"all, in small letters", Settings{BaseURL: "https://example.com"},
			[]string{"all_proxy=" + between.url, "ALL_PROXY=http://127.0.0.1:1"}, "answered", 1},
		{"the scheme before all", Settings{BaseURL: "https://example.com"},
			[]string{"https_proxy=" + between.url, "ALL_PROXY=http://127.0.0.1:1"}, "answered", 1},
		{"all, excepted", Settings{BaseURL: "https://models.invalid"},
			[]string{"ALL_PROXY=" + between.url, "no_proxy=.invalid"}, "provider error", 0},
		{"all, for this machine", Settings{BaseURL: s.url}, []string{"ALL_PROXY=" + between.url}, "answered", 0},
		{"all, without a scheme", Settings{BaseURL: "https://example.com"},
			[]string{"ALL_PROXY=" + strings.TrimPrefix(between.url, "http://")}, "answered", 1},
		{"all, of SOCKS 4", Settings{BaseURL: "https://example.com"},
			[]string{"ALL_PROXY=socks4://me:password@" + strings.TrimPrefix(between.url, "http://")}, "provider error", 0},
		{"this machine", Settings{BaseURL: s.url}, []string{"HTTPS_PROXY=" + between.url}, "answered", 0},
		{"in clear text", Settings{BaseURL: plain.url}, []string{"HTTP_PROXY=" + between.url}, "answered", 0},
		{"no address", Settings{BaseURL: "https://example.com"}, []string{"HTTPS_PROXY=http://me:pass%zzword@proxy.invalid"},
			"provider error", 0},
		{"a password, and no proxy there", Settings{BaseURL: "https://example.com"},
			[]string{"HTTPS_PROXY=http://me:password@127.0.0.1:1"}, "provider error", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, before := between.counts()
			c.settings.API, c.settings.Model = openAIChat, "m"
			p := connectProcess(t, c.settings, append(c.environ, "SSL_CERT_FILE="+file)...)
			m := p.awaitAnswer(p.sendPrompt(p.session(), "Hi"), nil)
			_, after := between.counts()
			if outcome(m) != c.outcome || after-before != c.proxied {
				t.Errorf("%s, %d through the proxy: %+v", outcome(m), after-before, m.Error)
			}
			if m.Error != nil && slices.ContainsFunc([]string{"word", "me:"},
				func(s string) bool { return strings.Contains(m.Error.Message, s) }) {
				t.Errorf("a password: %s", m.Error.Message)
			}
		})
	}
	for _, bad := range []Settings{
		{BaseURL: "https://example.com", Proxy: "http://me:hunter2@proxy.example.org"},
		{BaseURL: "https://example.com", Proxy: "proxy:3128"},
		{BaseURL: plain.url, Proxy: "http://proxy.example.org:3128"},
		{BaseURL: "https://example.com", Proxy: "ftp://proxy.example.org"},
	} {
		bad.API, bad.Model = openAIChat, "m"
		if err := bad.Check(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf(`%q: got %v; want err != nil && !strings.Contains(err.Error(), "hunter2")`, bad.Proxy, err)
		}
	}
}
